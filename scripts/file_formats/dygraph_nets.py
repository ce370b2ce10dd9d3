"""Networks of dygraph mode, what is saved of them and how it is read again; for Fluid 1.8.5 and here."""

import os

import numpy as np
import paddle.fluid as fluid
from nets import PLACE
from paddle.fluid import dygraph


class Pictures(dygraph.Layer):
    """Convolution, normalisation, pooling."""

    def __init__(self):
        super(Pictures, self).__init__()
        self.conv = dygraph.Conv2D(3, 4, 3, act="relu")
        self.norm = dygraph.BatchNorm(4)
        self.pool = dygraph.Pool2D(2, "max", 2)
        self.out = dygraph.Linear(36, 3, act="softmax")

    def forward(self, x):
        return self.out(fluid.layers.reshape(self.pool(self.norm(self.conv(x))), [-1, 36]))

    @staticmethod
    def batch(random, count):
        return random.rand(count, 3, 8, 8).astype("float32")


class Words(dygraph.Layer):
    """A table, a normalised layer and a parameter of its own."""

    def __init__(self):
        super(Words, self).__init__()
        self.table = dygraph.Embedding([20, 6])
        self.norm = dygraph.LayerNorm(6)
        self.out = dygraph.Linear(6, 3)
        self.scale = self.create_parameter([3], default_initializer=fluid.initializer.Constant(0.5))

    def forward(self, ids):
        return fluid.layers.reduce_mean(self.out(self.norm(self.table(ids))), 1) * self.scale

    @staticmethod
    def batch(random, count):
        return random.randint(0, 20, (count, 4)).astype("int64")


OPTIMIZERS = {
    "Adam": lambda model: fluid.optimizer.Adam(
        dygraph.NoamDecay(64, 10), parameter_list=model.parameters()),
    "Momentum": lambda model: fluid.optimizer.Momentum(
        dygraph.ExponentialDecay(0.1, 2, 0.9), 0.9, parameter_list=model.parameters()),
}  # fmt: skip


def _train(model, optimizer, seed):
    random, losses = np.random.RandomState(seed), []
    for _ in range(3):
        out = model(dygraph.to_variable(model.batch(random, 4)))
        loss = fluid.layers.mean(fluid.layers.square(out))
        loss.backward()
        optimizer.minimize(loss)
        model.clear_gradients()
        losses.append(loss.numpy().ravel())
    return {"losses": np.concatenate(losses)}


def _new(kind, optimizer):
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 9
    model = kind()
    return model, OPTIMIZERS[optimizer](model)


def _save(kind, optimizer):
    def save(path):
        with dygraph.guard(PLACE), fluid.unique_name.guard():
            model, updates = _new(kind, optimizer)
            _train(model, updates, 1)
            dygraph.save_dygraph(model.state_dict(), os.path.join(path, "model"))
            dygraph.save_dygraph(updates.state_dict(), os.path.join(path, "model"))
            return _train(model, updates, 2)

    return save


def _load(kind, optimizer):
    def load(path):
        with dygraph.guard(PLACE), fluid.unique_name.guard():
            model, updates = _new(kind, optimizer)
            parameters, state = dygraph.load_dygraph(os.path.join(path, "model"))
            model.set_dict(parameters)
            updates.set_dict(state)
            return _train(model, updates, 2)

    return load


def _trace(kind):
    def save(path):
        with dygraph.guard(PLACE), fluid.unique_name.guard():
            model, updates = _new(kind, "Adam")
            _train(model, updates, 1)
            model.eval()
            _, traced = dygraph.TracedLayer.trace(model, [dygraph.to_variable(model.batch(np.random, 3))])
            traced.save_inference_model(path)
        return _predict(kind)(path)

    return save


def _predict(kind):
    def load(path):
        exe, random, found = fluid.Executor(PLACE), np.random.RandomState(6), {}
        with fluid.scope_guard(fluid.Scope()):
            program, (feed,), targets = fluid.io.load_inference_model(path, exe)
            for count in (2, 5):
                found[str(count)] = exe.run(
                    program, feed={feed: kind.batch(random, count)}, fetch_list=targets
                )[0]
        return found

    return load


FORMS = [
    ("save_dygraph", "%s_%s" % (kind.__name__, optimizer), _save(kind, optimizer), _load(kind, optimizer))
    for kind in (Pictures, Words)
    for optimizer in OPTIMIZERS
] + [
    ("TracedLayer.save_inference_model", kind.__name__, _trace(kind), _predict(kind))
    for kind in (Pictures, Words)
]
