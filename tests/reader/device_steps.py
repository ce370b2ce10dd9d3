"""Batches for a simulated GPU, and steps on it that read them as late as possible."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fluidlite import backend
from fluidlite.base.place import CUDAPlace
from tests.simulated_cuda.memory import device_view
from tests.simulated_cuda.streams import enqueue

ROWS, WIDTH = 8, 4000  # a batch of images is big enough to have a block of its own


def samples(count: int = 10 * ROWS) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Samples with their number as label, which is all the image shows."""
    for i in range(count):
        yield np.full(WIDTH, i, "float32"), np.array([i], "int64")


def refilled(count: int = 10) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """A reader of batches that stand in the same two arrays."""
    image, label = np.empty((ROWS, WIDTH), "float32"), np.empty((ROWS, 1), "int64")
    for i in range(count):
        image[:] = np.arange(i * ROWS, (i + 1) * ROWS)[:, None]
        label[:] = np.arange(i * ROWS, (i + 1) * ROWS)[:, None]
        yield image, label


def fresh(count: int = 10) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """A reader of batches with memory of their own."""
    for image, label in refilled(count):
        yield image.copy(), label.copy()


def check(seen: list[list[np.ndarray]], first: int = 0, step: int = 1) -> None:
    """Whether each step saw its batch."""
    for k, (image, label) in enumerate(seen):
        rows = np.arange(ROWS)[:, None] + (first + k * step) * ROWS
        np.testing.assert_array_equal(label, rows)
        np.testing.assert_array_equal(image, np.broadcast_to(rows, (ROWS, WIDTH)))


class Steps:
    """Queues steps on the compute stream of GPU `number`; what they read is in `seen` when they have happened.

    A step knows where its arrays stand, and does not keep them: whoever writes there too early is found out.
    """

    def __init__(self, number: int = 0) -> None:
        device = backend.device_at(CUDAPlace(number))
        assert device is not None
        self.device = device
        self.queued = 0
        self.seen: list[list[np.ndarray]] = []

    def __call__(self, *arrays: Any) -> None:
        """Queue a step that reads `arrays` (of CuPy)."""
        for array in arrays:
            assert backend.on_device(array) and array.device.id == self.device.number
            assert array.flags.c_contiguous
        where = [(array.data.ptr, array.shape, array.dtype) for array in arrays]

        def step() -> None:
            self.seen.append([device_view(*place).copy() for place in where])

        enqueue(self.device.main.ptr, step)
        self.queued += 1

    def finish(self) -> list[list[np.ndarray]]:
        """Wait for all steps; what they have read."""
        self.device.synchronize()
        assert len(self.seen) == self.queued
        return self.seen


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something that another thread does has happened."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.001)
