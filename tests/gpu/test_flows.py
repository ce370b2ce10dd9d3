"""Whole scripts on a GPU: the losses, and at the end the parameters, of the same script on the CPU."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base import unique_name
from fluidlite.base.place import Place
from fluidlite.executor import Scope, scope_guard
from fluidlite.framework import Program, program_guard

from ..simulated_cuda import simulated


@pytest.fixture(params=[None, 1], ids=lambda seed: f"seed{seed}")
def any_order(request):
    with simulated(seed=request.param) as simulation:
        yield simulation
        gc.collect()


class Script:
    """What a script has: two programs, a scope and an executor; inside `with`, layers go to its programs."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.main, self.startup, self.scope = Program(), Program(), Scope()
        self.main.random_seed = self.startup.random_seed = 7
        self.executor = fluid.Executor(place)
        self.random = np.random.RandomState(0)
        self.found: list[np.ndarray] = []

    def __enter__(self) -> Script:
        self._stack = ExitStack()
        for context in (program_guard(self.main, self.startup), unique_name.guard(), scope_guard(self.scope)):
            self._stack.enter_context(context)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def start(self) -> None:
        self.executor.run(self.startup)

    def step(self, feed: dict[str, Any] | None, *fetch: Any, program: Program | None = None) -> None:
        values = self.executor.run(program or self.main, feed=feed, fetch_list=list(fetch))
        self.found += [np.array(value) for value in values]

    def result(self) -> list[np.ndarray]:
        """What was fetched, and all persistable variables."""
        for name, var in sorted(self.main.global_block().vars.items()):
            kept = self.scope.find_var(name) if var.persistable else None
            if kept is not None:
                self.found.append(np.array(kept.get_tensor()))
        return self.found

    def line(self, rows: int = 5) -> dict[str, np.ndarray]:
        """A batch of four numbers and their sum."""
        x = self.random.randn(rows, 4).astype("float32")
        return {"x": x, "y": x.sum(1, keepdims=True)}

    def regression(self) -> Any:
        """The loss of a small network for `line`."""
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        return layers.mean(layers.square_error_cost(layers.fc(layers.fc(x, 8, act="tanh"), 1), y))


def agree(flow: Any, *args: Any) -> None:
    found, expected = flow(fluid.CUDAPlace(0), *args), flow(fluid.CPUPlace(), *args)
    assert len(found) == len(expected) > 3
    for number, (got, want) in enumerate(zip(found, expected, strict=True)):
        assert got.dtype == want.dtype
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5 * scale, err_msg=f"number {number}")


def words(place: Place, is_sparse: bool, optimizer: Any) -> list[np.ndarray]:
    with Script(place) as script:
        names = [f"word{i}" for i in range(4)]
        given = [fluid.data(name, [None, 1], "int64") for name in names]
        following = fluid.data("next", [None, 1], "int64")
        table = fluid.ParamAttr(name="table")
        rows = [layers.embedding(word, [50, 8], is_sparse=is_sparse, param_attr=table) for word in given]
        hidden = layers.fc(layers.reshape(layers.concat(rows, axis=-1), [-1, 32]), 16, act="sigmoid")
        guess = layers.fc(hidden, 50, act="softmax")
        loss = layers.mean(layers.cross_entropy(guess, following))
        optimizer().minimize(loss)
        script.start()
        for _ in range(5):
            feed = {name: script.random.randint(0, 50, (6, 1)).astype("int64") for name in (*names, "next")}
            script.step(feed, loss)
        return script.result()


BY_NORM = fluid.clip.GradientClipByGlobalNorm(0.1)


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: fluid.optimizer.Adam(0.01, lazy_mode=True),
        lambda: fluid.optimizer.SGD(0.1, grad_clip=BY_NORM),
        lambda: fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.01)),
    ],
    ids=["lazy Adam", "clipped", "decayed"],
)
def test_word2vec(any_order, is_sparse, optimizer) -> None:
    agree(words, is_sparse, optimizer)


def images(place: Place) -> list[np.ndarray]:
    with Script(place) as script:
        image, label = fluid.data("image", [None, 1, 12, 12]), fluid.data("label", [None, 1], "int64")
        hidden = layers.batch_norm(layers.conv2d(image, 4, 3), act="relu")
        hidden = layers.pool2d(hidden, 2, "max", 2)
        hidden = layers.pool2d(layers.conv2d(hidden, 6, 3, padding=1, act="relu"), 2, "avg", 2)
        guess = layers.fc(layers.fc(hidden, 12, act="relu"), 10, act="softmax")
        loss, right = layers.mean(layers.cross_entropy(guess, label)), layers.accuracy(guess, label)
        test = script.main.clone(for_test=True)
        rate = layers.piecewise_decay([2, 3], [0.05, 0.02, 0.01])
        fluid.optimizer.Momentum(rate, 0.9).minimize(loss)
        script.start()
        for _ in range(4):
            feed = {
                "image": script.random.randn(8, 1, 12, 12).astype("float32"),
                "label": script.random.randint(0, 10, (8, 1)).astype("int64"),
            }
            script.step(feed, loss, right, rate)
            script.step(feed, loss, guess, program=test)
        return script.result()


def test_convolutions_with_a_test_program(any_order) -> None:
    agree(images)


def averaged(place: Place, kind: str) -> list[np.ndarray]:
    with Script(place) as script:
        loss = script.regression()
        test = script.main.clone(for_test=True)
        optimizer: Any = fluid.optimizer.SGD(0.05)
        if kind == "lookahead":
            optimizer = fluid.optimizer.LookaheadOptimizer(optimizer, 0.5, 2)
        optimizer.minimize(loss)
        average: Any = None
        if kind == "exponential":
            average = fluid.optimizer.ExponentialMovingAverage(0.9)
            average.update()
        elif kind == "model":
            average = fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=4)
        script.start()
        for number in range(6):
            feed = script.line()
            script.step(feed, loss)
            if average is not None and number % 3 == 2:
                with average.apply(script.executor):
                    script.step(feed, loss, program=test)
                script.step(feed, loss, program=test)
        return script.result()


@pytest.mark.parametrize("kind", ["exponential", "model", "lookahead"])
def test_averages_of_parameters(any_order, kind) -> None:
    agree(averaged, kind)


SCHEDULES = {
    "exponential": lambda: layers.exponential_decay(0.1, 2, 0.5, staircase=True),
    "noam": lambda: layers.noam_decay(16, 3),
    "cosine": lambda: layers.cosine_decay(0.1, 2, 4),
    "polynomial": lambda: layers.polynomial_decay(0.1, 3, 0.01, 2.0),
    "warmup": lambda: layers.linear_lr_warmup(layers.piecewise_decay([4, 5], [0.1, 0.05, 0.01]), 3, 0.0, 0.1),
}


def scheduled(place: Place, schedule: str) -> list[np.ndarray]:
    with Script(place) as script:
        loss = script.regression()
        rate = SCHEDULES[schedule]()
        fluid.optimizer.Adam(rate).minimize(loss)
        script.start()
        for _ in range(6):
            script.step(script.line(), loss, rate)
        return script.result()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_learning_rates_follow_their_schedule_in_graphs(simulation, schedule) -> None:
    agree(scheduled, schedule)
    assert simulation.counters.graph_launches == 5


def sequences(place: Place) -> list[np.ndarray]:
    with Script(place) as script:
        word = fluid.data("word", [None, 1], "int64", lod_level=1)
        label = fluid.data("label", [None, 1], "int64")
        rows = layers.embedding(word, [30, 6], is_sparse=True)
        pooled = [layers.sequence_pool(rows, "max"), layers.sequence_last_step(rows)]
        pooled.append(fluid.nets.sequence_conv_pool(rows, 8, 3, act="tanh", pool_type="sqrt"))
        loss = layers.mean(layers.cross_entropy(layers.fc(pooled, 3, act="softmax"), label))
        fluid.optimizer.Adam(0.01).minimize(loss)
        script.start()
        for _ in range(3):
            lengths = [int(n) for n in script.random.randint(1, 5, 3)]
            ids = script.random.randint(0, 30, (sum(lengths), 1)).astype("int64")
            labels = script.random.randint(0, 3, (3, 1)).astype("int64")
            script.step({"word": fluid.create_lod_tensor(ids, [lengths], place), "label": labels}, loss)
        return script.result()


def test_sequences(any_order) -> None:
    agree(sequences)


def from_py_reader(place: Place, ahead: bool) -> list[np.ndarray]:
    with Script(place) as script:
        reader = layers.py_reader(4, [(-1, 4), (-1, 1)], ["float32", "float32"], use_double_buffer=ahead)
        x, y = layers.read_file(reader)
        loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
        fluid.optimizer.Adam(0.05).minimize(loss)
        script.start()
        reader.decorate_tensor_provider(lambda: (tuple(script.line(6).values()) for _ in range(4)))
        for _ in range(2):
            reader.start()
            with pytest.raises(fluid.core.EOFException):
                while True:
                    script.step(None, loss)
            reader.reset()
        return script.result()


@pytest.mark.parametrize("ahead", [True, False])
def test_py_reader(any_order, ahead) -> None:
    agree(from_py_reader, ahead)


def changed(place: Place) -> list[np.ndarray]:
    with Script(place) as script:
        loss = script.regression()
        fluid.optimizer.Adam(0.01).minimize(loss)
        script.start()

        def steps(*fetch: Any) -> None:
            for _ in range(3):
                script.step(script.line(), loss, *fetch)

        steps()
        more = layers.reduce_sum(loss)
        steps(more)
        for op in script.main.global_block().ops:
            if op.type == "adam":
                op._set_attr("beta1", 0.5)
        steps()
        weight = script.scope.find_var("fc_0.w_0").get_tensor()
        weight.set(np.full((4, 8), 0.3, "float32"), fluid.CPUPlace())
        steps()
        script.startup.random_seed = 8
        script.executor.run(script.startup)
        steps()
        return script.result()


def test_changes_between_steps_are_followed(any_order) -> None:
    agree(changed)
