"""The results of a step: fetched values as arrays or tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...backend import to_host
from ...backend.cupy_ import faults
from ...base.one_element import convertible
from ...base.reports import profiling
from ...ops.registry import GRAD
from ..interpreter.interpreter import Interpreter
from ..ir.step_plan import StepPlan
from ..tensors.lod_tensor import LoDTensor, LoDTensorArray


def of_plan(plan: StepPlan, return_numpy: bool) -> list[Any]:
    """Run a plan with bound feeds; returns its fetches."""
    plan.run()
    recorder = profiling.active
    if return_numpy and not plan.has_levels:
        arrays = plan.fetch() if recorder is None else recorder.timed("fetch", plan.fetch)
        return [convertible(array) for array in arrays]
    tensors = plan.fetch_tensors() if recorder is None else recorder.timed("fetch", plan.fetch_tensors)
    return as_results(tensors, plan.fetched, return_numpy)


def of_run(run: Interpreter, names: tuple[str, ...], return_numpy: bool) -> list[Any]:
    """The fetches of a completed run of an interpreter."""
    recorder = profiling.active
    values = [
        run.fetch(n) if recorder is None else recorder.timed("fetch", partial(run.fetch, n)) for n in names
    ]
    results = as_results(values, names, return_numpy)
    if run.device is not None and results and return_numpy:
        faults.raise_pending(run.device)
    return results


def as_results(values: list[Any], names: Sequence[str], return_numpy: bool) -> list[Any]:
    """The values as `run` returns them: arrays, None for unset tensors, or tensors; lists of these for tensor arrays.

    Raises RuntimeError for sequences as arrays, except for gradients, many of which have no LoD in Fluid.
    """
    if not return_numpy:
        return values
    return [_as_result(value, GRAD in name) for value, name in zip(values, names, strict=False)]


def or_empty(value: Any) -> Any:
    """A fetched value as compiled programs merge it over places: an empty array in the place of none, as in Fluid."""
    if value is None:
        return np.empty(0, np.float32)
    if isinstance(value, LoDTensor) and value.array is None:
        return LoDTensor.wrap(np.empty(0, np.float32))
    return value


def _as_result(value: Any, plain: bool) -> Any:
    if isinstance(value, LoDTensorArray):
        return [_as_result(tensor, plain) for tensor in value]
    if value.array is None:
        return None
    if value.offsets and not plain:
        raise RuntimeError(
            "Some of your fetched tensors hold LoD information. They can not be completely cast to Python ndarray. "
            "Please set the parameter 'return_numpy' as 'False' to return LoDTensor itself directly."
        )
    return convertible(np.asarray(to_host(value.array)))
