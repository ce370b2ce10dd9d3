"""Training from loaders on a GPU: the same losses as on the CPU, whatever order a simulated one's streams work in."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.framework import Program, program_guard
from fluidlite.reader import TensorDataset
from tests.simulated_cuda.install import simulated


@pytest.fixture(params=[None, 1], ids=lambda seed: f"seed{seed}")
def any_order(request):
    with simulated(seed=request.param) as simulation:
        yield simulation
        gc.collect()


def refilled():
    """Batches that stand in the same two arrays."""
    draws = np.random.RandomState(3)
    x, y = np.empty((64, 400), "float32"), np.empty((64, 1), "int64")
    for _ in range(6):
        x[:] = draws.rand(64, 400)
        y[:] = (x.sum(1, keepdims=True) * 3).astype("int64") % 10
        yield x, y


def train(place, ahead: bool, iterable: bool, fetching: bool = True, batches_at=None) -> list[float]:
    """The loss of every step of two epochs (without `fetching`, of the last step only).

    `batches_at`: where an iterable loader puts its batches, if not where the program runs.
    """
    main, startup = Program(), Program()
    main.random_seed = startup.random_seed = 7
    with program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x, y = fluid.data("x", [None, 400], "float32"), fluid.data("y", [None, 1], "int64")
        loader = fluid.io.DataLoader.from_generator([x, y], 4, use_double_buffer=ahead, iterable=iterable)
        hidden = fluid.layers.fc(x, 16, act="relu")
        loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(hidden, 10), y))
        fluid.optimizer.SGD(0.05).minimize(loss)
        last = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="last")
        fluid.layers.assign(loss, last)
        exe = fluid.Executor(place)
        exe.run(startup)
        losses = []

        def step(feed=None) -> None:
            values = exe.run(main, feed=feed, fetch_list=[loss] if fetching else None)
            losses.extend(float(value[0]) for value in values)

        loader.set_batch_generator(refilled, (batches_at or place) if iterable else None)
        for _ in range(2):
            if iterable:
                for feed in loader():
                    step(feed)
                continue
            loader.start()
            try:
                while True:
                    step()
            except fluid.core.EOFException:
                loader.reset()
        losses.append(float(np.array(fluid.global_scope().find_var("last").get_tensor())[0]))
        exe.close()
    return losses


@pytest.mark.parametrize("fetching", [True, False], ids=["fetching", "blind"])
@pytest.mark.parametrize("iterable", [True, False], ids=["iterable", "program"])
@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "at once"])
def test_losses_are_those_of_the_cpu(any_order, ahead: bool, iterable: bool, fetching: bool) -> None:
    expected = train(fluid.CPUPlace(), ahead, iterable)
    found = train(fluid.CUDAPlace(0), ahead, iterable, fetching)
    assert len(found) == (13 if fetching else 1) and expected[0] != pytest.approx(expected[11], rel=1e-2)
    np.testing.assert_allclose(found, expected if fetching else expected[-1:], rtol=1e-4)


CPU, GPU = fluid.CPUPlace(), fluid.CUDAPlace(0)


@pytest.mark.parametrize(("place", "batches_at"), [(GPU, GPU), (GPU, CPU), (CPU, GPU)], ids=str)
def test_batches_may_be_elsewhere(cuda, place, batches_at) -> None:
    found = train(place, True, True, batches_at=batches_at)
    np.testing.assert_allclose(found, train(CPU, True, True), rtol=1e-4)
    gc.collect()


@pytest.mark.parametrize("iterable", [True, False], ids=["iterable", "program"])
@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "at once"])
def test_training(cuda, ahead: bool, iterable: bool) -> None:
    np.testing.assert_allclose(train(GPU, ahead, iterable), train(CPU, ahead, iterable), rtol=1e-4)
    gc.collect()


def train_eagerly(place, workers: int) -> list[float]:
    """The loss of every step of two epochs in dygraph mode, from a data set."""
    losses = []
    draws = np.random.RandomState(3)
    x = draws.rand(96, 400).astype("float32")
    y = (x.sum(1, keepdims=True) * 3).astype("int64") % 10
    with fluid.dygraph.guard(place):
        fluid.default_startup_program().random_seed = 7
        fluid.default_main_program().random_seed = 7
        loader = fluid.io.DataLoader(TensorDataset([x, y]), batch_size=16, num_workers=workers)
        with unique_name.guard():
            layer = fluid.dygraph.Linear(400, 10)
        sgd = fluid.optimizer.SGD(0.05, parameter_list=layer.parameters())
        for _ in range(2):
            for image, label in loader:
                loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(layer(image), label))
                loss.backward()
                sgd.minimize(loss)
                layer.clear_gradients()
                losses.append(float(loss.numpy()[0]))
    return losses


@pytest.mark.parametrize("workers", [0, 2])
def test_eager_training(cuda, workers: int) -> None:
    expected = train_eagerly(CPU, 0)
    np.testing.assert_allclose(train_eagerly(GPU, workers), expected, rtol=1e-4)
    assert len(expected) == 12
    gc.collect()
