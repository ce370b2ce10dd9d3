"""Operators and programs in the middle of which the garbage collector runs finalisers that compute the same."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

LARGE, LARGER = 40_000, 70_000
"""Numbers of elements of results that reuse memory; reporting it to NumPy runs the garbage collector."""

Compute = Callable[[float, int], np.ndarray]


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    threshold = gc.get_threshold()
    with fluid.dygraph.guard():
        yield
    gc.set_threshold(*threshold)
    array.cache_clear()
    trained.cache_clear()


@cache
def array(value: float, n: int) -> np.ndarray:
    return np.full(n, value, "float32")


def tensor(value: float, n: int) -> Any:
    return fluid.dygraph.to_variable(array(value, n))


def wrong(compute: Compute, disturb: Callable[[], Any], expected: float) -> int:
    """How often `compute(2, LARGE)` is wrong when the collector finds objects whose finalisers call `disturb`."""

    class Circle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            if active:
                Circle()  # for the next time
                disturb()

    active = [True]
    compute(2.0, LARGE)
    disturb()
    gc.freeze()  # so that collections are quick
    Circle()
    count = 0
    try:
        for threshold in (1, 2, 3, 4, 5, 7, 9, 12):
            gc.set_threshold(threshold)
            made = compute(2.0, LARGE)
            gc.set_threshold(700)
            count += made.shape != (LARGE,) or not (made == expected).all()
    finally:
        gc.set_threshold(700)
        active.clear()
        gc.unfreeze()
    return count


def relu(value: float, n: int) -> np.ndarray:
    return layers.relu(tensor(value, n)).numpy()


def view(value: float, n: int) -> np.ndarray:
    return layers.reshape(layers.reshape(tensor(value, n), [-1, 10]), [-1]).numpy()


def two_results(value: float, n: int) -> np.ndarray:
    return layers.split(tensor(value, 2 * n), 2)[1].numpy()


def in_place(value: float, n: int) -> np.ndarray:
    x = tensor(0.0, n)
    layers.assign(layers.relu(tensor(value, n)), output=x)
    x += 1.0
    return x.numpy()


def gradient(value: float, n: int) -> np.ndarray:
    x = tensor(value, n)
    x.stop_gradient = False
    layers.reduce_sum(layers.relu(x) * x).backward()
    return x.gradient()


@cache
def trained(n: int) -> tuple[Any, Any]:
    weight = fluid.Layer().create_parameter([n], default_initializer=fluid.initializer.Constant(1.0))
    return weight, fluid.optimizer.SGD(0.25, parameter_list=[weight])


def updated(value: float, n: int) -> np.ndarray:
    # The finaliser's own: two that train the same parameter at one time disturb each other anyway.
    weight, optimizer = trained(n) if value == 2.0 else trained(n + 1)
    n = weight.shape[0]
    weight.set_value(array(value, n))
    weight.clear_gradient()
    layers.reduce_sum(weight * weight).backward()
    optimizer.minimize(weight)
    return weight.numpy()


@fluid.dygraph.jit.declarative
def _traced(x: Any) -> Any:
    return layers.relu(x) * 2.0 + x


def traced(value: float, n: int) -> np.ndarray:
    return _traced(tensor(value, n)).numpy()


CASES: dict[str, tuple[Compute, float]] = {
    "operator": (relu, 2.0), "view": (view, 2.0), "two results": (two_results, 2.0),
    "in place": (in_place, 3.0), "gradient": (gradient, 4.0), "update": (updated, 1.0),
    "traced function": (traced, 6.0),
}  # fmt: skip


@pytest.mark.parametrize("size", [LARGE, LARGER])
@pytest.mark.parametrize("case", CASES)
def test_a_finaliser_that_computes_the_same_disturbs_nothing(case: str, size: int) -> None:
    compute, expected = CASES[case]
    for n in (100, 200, 300):  # from the third on sizes are open
        compute(1.0, n) if size == LARGER else None
    assert wrong(compute, lambda: compute(7.0, size), expected) == 0


def test_a_finaliser_that_has_another_thread_compute_the_same_disturbs_nothing() -> None:
    sevens = tensor(7.0, LARGER)

    def disturb() -> None:
        thread = threading.Thread(target=layers.relu, args=(sevens,))
        thread.start()
        thread.join()

    for n in (100, 200, 300):
        relu(1.0, n)
    assert wrong(relu, disturb, 2.0) == 0
