"""Networks for the tests of steps on a GPU."""

import numpy as np

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base import unique_name
from fluidlite.executor import Scope
from fluidlite.framework import Program, program_guard

ROWS, WIDTH, CLASSES = 4, 6, 3


class Net:
    """A small classifier with programs of its own, and a `scope` in which `executor` runs them."""

    def __init__(self, place, optimizer=None, dropout=0.0, before_loss=None, seed=7):
        self.main, self.startup, self.scope = Program(), Program(), Scope()
        self.main.random_seed = self.startup.random_seed = seed
        with program_guard(self.main, self.startup), unique_name.guard():
            x = fluid.data("x", [None, WIDTH])
            y = fluid.data("y", [None, 1], "int64")
            hidden = layers.fc(x, 8, act="relu")
            if dropout:
                hidden = layers.dropout(hidden, dropout, dropout_implementation="upscale_in_train")
            self.hidden = hidden if before_loss is None else before_loss(hidden)
            scores = layers.fc(self.hidden, CLASSES, act="softmax")
            self.loss = layers.mean(layers.cross_entropy(scores, y))
            self.test = self.main.clone(for_test=True)
            made = fluid.optimizer.Adam(0.01) if optimizer is None else optimizer()
            made.minimize(self.loss)
        self.rate = made._global_learning_rate(self.main)
        self.executor = fluid.Executor(place)
        self.executor.run(self.startup, scope=self.scope)

    def step(self, batch, fetch=None, **more):
        """One training step; returns the fetched values, by default the loss."""
        wanted = [self.loss] if fetch is None else fetch
        return self.executor.run(self.main, batch, wanted, scope=self.scope, **more)

    def losses(self, count):
        return np.array([self.step(batch)[0].item() for batch in batches(count)])

    def parameters(self):
        """The values of all persistable variables, by name."""
        names = [name for name, var in self.main.global_block().vars.items() if var.persistable]
        found = {name: self.scope.find_var(name) for name in sorted(names)}
        return {name: np.array(var.get_tensor()) for name, var in found.items() if var is not None}

    def tensor(self, name):
        return self.scope.find_var(name).get_tensor()


def batches(count, rows=ROWS, seed=0):
    """`count` feeds, always the same for a seed."""
    rng = np.random.RandomState(seed)
    return [
        {
            "x": rng.randn(rows, WIDTH).astype("float32"),
            "y": rng.randint(0, CLASSES, (rows, 1)).astype("int64"),
        }
        for _ in range(count)
    ]
