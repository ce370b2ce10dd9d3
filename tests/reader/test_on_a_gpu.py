"""Loaders, pinned memory and the double buffer on a real GPU, if there is one: batches that queued work reads late."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import backend
from fluidlite.backend.cupy_ import pools
from fluidlite.base.place import CPUPlace, CUDAPlace
from fluidlite.fluid.data import data
from fluidlite.framework import Program, program_guard
from fluidlite.reader import DataLoader, TensorDataset, batch, leaks
from tests.conftest import real_gpu

REAL = real_gpu()
ROWS, WIDTH = 32, 20_000 if REAL else 1_000
PLACE = CUDAPlace(0)

pytestmark = pytest.mark.usefixtures("programs")


def refilled(count: int = 12):
    """Batches of numbered rows, all in the same two arrays."""
    image, label = np.empty((ROWS, WIDTH), "float32"), np.empty((ROWS, 1), "int64")
    for k in range(count):
        image[:] = label[:] = np.arange(k * ROWS, (k + 1) * ROWS)[:, None]
        yield image, label


def samples():
    for image, label in refilled():
        yield from zip(image.copy(), label.copy(), strict=True)


READERS = {
    "samples": lambda loader: loader.set_sample_generator(samples, ROWS, True, PLACE),
    "lists": lambda loader: loader.set_sample_list_generator(batch(samples, ROWS), PLACE),
    "batches": lambda loader: loader.set_batch_generator(refilled, PLACE),
}


class LateSteps:
    """Steps queued behind long work on the compute stream; `check` compares what they read with numbered rows."""

    def __init__(self) -> None:
        device = backend.device_at(PLACE)
        assert device is not None
        self.device = device
        with device.active():
            self.work = device.put(np.zeros(1 << 24 if REAL else 1 << 10, "float32"))
        self.results: list[Any] = []

    def __call__(self, image: Any, label: Any) -> None:
        with self.device.active():
            for _ in range(10):
                self.work = self.work * 1
            self.results.append((image.max(axis=1), image.min(axis=1), label.ravel() * 1))

    def check(self, numbers: Any) -> None:
        """Compare the results with those of the batches `numbers`, in order."""
        found = np.array([[self.device.get(each) for each in step] for step in self.results])
        rows = np.array(list(numbers))[:, None] * ROWS + np.arange(ROWS)
        np.testing.assert_array_equal(found, np.broadcast_to(rows[:, None], (len(rows), 3, ROWS)))


@pytest.fixture
def gpu(cuda):
    """A GPU, whose loaders have let go of all memory when the test is done."""
    yield cuda
    gc.collect()
    assert not any(leaks().values())


@pytest.fixture
def feeds():
    return [data("image", [None, WIDTH], "float32"), data("label", [None, 1], "int64")]


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "at once"])
@pytest.mark.parametrize("kind", READERS)
def test_batches_are_whole_and_in_order(gpu, feeds, kind: str, ahead: bool, process: bool) -> None:
    loader = DataLoader.from_generator(
        feeds, capacity=2, use_double_buffer=ahead, return_list=True, use_multiprocess=process
    )
    READERS[kind](loader)
    steps = LateSteps()
    for _ in range(2):
        for ((image, label),) in loader():
            steps(image.array, label.array)
            del image, label
    steps.check(list(range(12)) * 2)


def test_memory_of_epochs_is_used_again(gpu, feeds) -> None:
    """Epochs, whole or left early, need no more page-locked memory and memory of the GPU than the first two."""
    loader = DataLoader.from_generator(feeds, capacity=3, return_list=True)
    READERS["samples"](loader)
    steps, expected, held = LateSteps(), [], []
    for epoch in range(30 if REAL else 9):
        for k, ((image, label),) in enumerate(loader()):
            steps(image.array, label.array)
            expected.append(k)
            del image, label
            if epoch % 3 == 1 and k == 4:
                break
        if epoch % 3 == 2:
            loader.close()
        steps.check(expected)
        steps.results.clear()
        expected.clear()
        held.append(pools.counters()["bytes"] + pools.counters()["cached"])
    assert max(held[2:]) <= 2 * max(held[:2])


def test_batches_that_are_held(gpu, feeds) -> None:
    loader = DataLoader.from_generator(feeds, capacity=2, return_list=True)
    READERS["batches"](loader)
    held = [batches for (batches,) in loader()]
    loader.close()
    steps = LateSteps()
    for image, label in reversed(held):
        steps(image.array, label.array)
    steps.check(reversed(range(12)))


def test_an_error_behind_batches_under_way(gpu, feeds) -> None:
    def broken():
        yield from refilled(5)
        raise OSError("the disk is full")

    loader = DataLoader.from_generator(feeds, capacity=2, return_list=True).set_batch_generator(broken, PLACE)
    steps = LateSteps()
    with pytest.raises(OSError, match="disk is full"):
        for ((image, label),) in loader():
            steps(image.array, label.array)
    steps.check(range(5))
    del image, label


@pytest.mark.parametrize("workers", [0, 2])
def test_data_sets(gpu, workers: int) -> None:
    """Workers are forked from a process that uses the GPU, and never use it themselves."""
    numbers = np.arange(6 * ROWS)[:, None]
    images = np.repeat(numbers.astype("float32"), WIDTH, axis=1)
    loader = DataLoader(
        TensorDataset([images, numbers]),
        places=PLACE,
        batch_size=ROWS,
        num_workers=workers,
        feed_list=[data("image", [None, WIDTH], "float32"), data("label", [None, 1], "int64")],
        return_list=True,
    )
    steps = LateSteps()
    for _ in range(2):
        for batches in loader:
            image, label = batches[0] if len(batches) == 1 else batches
            steps(image.array, label.array)
            del image, label, batches
    steps.check(list(range(6)) * 2)


@pytest.mark.parametrize("place", [PLACE, fluid.CUDAPinnedPlace(), CPUPlace()], ids=["gpu", "pinned", "host"])
def test_tensors_that_are_set_at_a_place(gpu, place) -> None:
    """What is fed may be on the GPU, in page-locked memory, or on the host; it may be overwritten after the step."""
    main = Program()
    with program_guard(main), fluid.scope_guard(fluid.Scope()):
        total = fluid.layers.reduce_sum(fluid.data("rows", [ROWS, WIDTH], "float32"), dim=1)
        exe = fluid.Executor(PLACE)
        tensor, found = fluid.LoDTensor(), []
        for k in range(10):
            tensor.set(np.full((ROWS, WIDTH), k, "float32"), place)
            found += exe.run(main, feed={"rows": tensor}, fetch_list=[total], return_numpy=False)
        values = [np.array(each) for each in found]
        exe.close()
    assert [set(value.tolist()) for value in values] == [{float(k * WIDTH)} for k in range(10)]
