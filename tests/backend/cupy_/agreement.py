"""Do launchers give what the reference kernels give on NumPy?"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

import numpy as np

from fluidlite import backend
from fluidlite.backend.cupy_.device import CudaDevice, device
from fluidlite.backend.cupy_.recording import Recording
from fluidlite.ops.registry import find

TOLERANCE = {"float32": (2e-5, 2e-6), "float64": (1e-10, 1e-12)}
"""Relative and absolute: sums are taken in another order, and CUDA's functions round differently."""


def gpu() -> CudaDevice:
    """The first GPU."""
    return device(0)


def lists(inputs: dict[str, Any]) -> dict[str, list[Any]]:
    return {slot: value if isinstance(value, list) else [value] for slot, value in inputs.items()}


def launched(
    op_type: str, inputs: dict[str, Any], wanted: Collection[str] | None = None, **attrs: Any
) -> list[Any]:
    """The arrays that the launcher of `op_type` makes of device arrays; an error if it does not take the case."""
    definition = find(op_type)
    dispatch = dataclasses.replace(definition.dispatch, rows=None)
    definition = dataclasses.replace(definition, kernel=None, dispatch=dispatch)
    here = gpu()
    with here.active():
        return definition.call(here.xp, lists(inputs), attrs, device=here, wanted=wanted)


def on_gpu(inputs: dict[str, Any]) -> dict[str, list[Any]]:
    return {slot: [gpu().put(array) for array in arrays] for slot, arrays in lists(inputs).items()}


def agree(
    op_type: str,
    inputs: dict[str, Any],
    wanted: Collection[str] | None = None,
    times: float = 1.0,
    **attrs: Any,
) -> list[Any]:
    """Assert that launcher and reference kernel agree in elements, shapes and dtypes; returns the reference's results.

    `times`: how many times the tolerance is allowed.
    """
    definition = find(op_type)
    expected = definition.call(np, lists(inputs), attrs)
    found = launched(op_type, on_gpu(inputs), wanted, **attrs)
    assert len(found) == len(expected)
    for slot, mine, theirs in zip(definition.output_slots, found, expected, strict=True):
        if theirs is None or (wanted is not None and slot.name not in wanted):
            continue
        same(backend.to_host(mine), theirs, f"{op_type} {slot.name}", times)
    return expected


def same(mine: np.ndarray, theirs: np.ndarray, what: str, times: float = 1.0) -> None:
    """Assert that shapes and dtypes are equal and elements nearly."""
    assert isinstance(mine, np.ndarray)
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), what
    relative, absolute = TOLERANCE.get(str(theirs.dtype), (0.0, 0.0))
    np.testing.assert_allclose(mine, theirs, relative * times, absolute * times, err_msg=what)


def refused(op_type: str, inputs: dict[str, Any], **attrs: Any) -> bool:
    """Whether the launcher leaves the case to the reference kernel."""
    try:
        launched(op_type, on_gpu(inputs), **attrs)
    except NotImplementedError:
        return True
    return False


def replayed(op_type: str, first: dict[str, Any], then: dict[str, Any], **attrs: Any) -> list[np.ndarray]:
    """The results for `then` of a graph of the launcher that was recorded on `first`."""
    here, inputs = gpu(), on_gpu(first)
    launched(op_type, inputs, **attrs)
    made: list[Any] = []
    with here.active():
        stream = here.xp.cuda.Stream(non_blocking=True)
        graph = Recording(here, lambda: made.extend(launched(op_type, inputs, **attrs)), stream)
    for slot, arrays in lists(then).items():
        for target, array in zip(inputs[slot], arrays, strict=True):
            here.overwrite(target, array)
    with here.active():
        graph.launch()
    return [backend.to_host(array) for array in made]


def agree_and_replay(op_type: str, inputs: dict[str, Any], times: float = 1.0, **attrs: Any) -> None:
    """`agree`, and check that a replayed graph of the launcher agrees with the reference kernel on new inputs."""
    agree(op_type, inputs, times=times, **attrs)
    shuffle = np.random.default_rng(0).permutation
    other = {slot: shuffle(array.ravel()).reshape(array.shape) for slot, array in inputs.items()}
    expected = find(op_type).call(np, lists(other), attrs)
    for mine, theirs in zip(replayed(op_type, inputs, other, **attrs), expected, strict=True):
        if theirs is not None:
            same(mine, theirs, f"{op_type}, replayed", times)


def rand(
    *shape: int, dtype: str = "float32", seed: int = 0, low: float = -2.0, high: float = 2.0
) -> np.ndarray:
    """Numbers between `low` and `high`."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)
