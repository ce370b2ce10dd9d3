"""Steps of a program that finalisers or signal handlers run in the middle of another step of it, in the same thread."""

from __future__ import annotations

import gc
import os
import signal
from typing import Any

import numpy as np

import fluidlite as fluid
from fluidlite import layers


def test_finalisers_run_steps_within_steps() -> None:
    x = fluid.data("x", [-1], "float32")
    y = layers.scale(layers.relu(x), 2.0)
    exe = fluid.Executor(fluid.CPUPlace())

    def step(value: float, n: int) -> np.ndarray:
        return exe.run(feed={"x": np.full(n, value, "float32")}, fetch_list=[y])[0]

    found: list[np.ndarray] = []
    active = [True]

    class Circle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            if active:
                Circle()
                found.append(step(7.0, 30))

    threshold = gc.get_threshold()
    step(1.0, 10), step(1.0, 20)
    gc.freeze()  # so that collections are quick
    Circle()
    try:
        for each in (2, 5, 9):
            gc.set_threshold(each)
            made = step(2.0, 10)
            gc.set_threshold(*threshold)
            np.testing.assert_array_equal(made, np.full(10, 4.0))
    finally:
        gc.set_threshold(*threshold)
        active.clear()
        gc.unfreeze()
    gc.collect()
    assert found and all(np.array_equal(each, np.full(30, 14.0)) for each in found)


def test_signal_handlers_run_steps_within_steps() -> None:
    found: list[Any] = []
    x = fluid.data("x", [-1], "float32")
    y = fluid.default_main_program().global_block().create_var(name="y", dtype="float32", shape=[-1])

    def interrupt(value: np.ndarray) -> np.ndarray:
        array = np.array(value)
        if array[0] > 0:
            os.kill(os.getpid(), signal.SIGUSR1)
        return array

    layers.py_func(interrupt, layers.relu(x), y)
    exe = fluid.Executor(fluid.CPUPlace())
    step = lambda value: exe.run(feed={"x": np.full(5, value, "float32")}, fetch_list=[y])[0]  # noqa: E731
    before = signal.signal(signal.SIGUSR1, lambda *_: found.append(step(-1.0)))
    try:
        for value in (1.0, 2.0):
            np.testing.assert_array_equal(step(value), np.full(5, value))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(found) == 2 and not any(each.any() for each in found)
