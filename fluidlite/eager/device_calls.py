"""Calls of operators on eager tensors on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._ext import eager as core
from ..backend.cupy_ import library
from ..base.selected_rows import SelectedRows
from ..ops.host_fallback import call_on_host
from ..ops.registry import LodArray, OpDef
from . import placing

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice

Run = Callable[[list[Any]], list[Any]]
"""Computes the results of an operator for a list of arrays."""

Layout = tuple[np.dtype, tuple[int, ...]]

Own = Callable[[Any, Layout | None, list[Any]], Any]
"""Turns a kernel's result into an array that owns its memory: (result, declared layout, arguments) -> array."""

UPDATES = frozenset({"Param", "LearningRate"})
"""Kernels of operators with these inputs update them in place."""


def guarded(device: CudaDevice, op_type: str, run: Run) -> Run:
    """`run` with the device active; errors of CUDA name the operator."""
    what = f"operator {op_type} on GPU {device.number}"

    def call(arrays: list[Any]) -> list[Any]:
        try:
            with device.active():
                return run(arrays)
        except Exception:
            with library.errors(what):  # translates errors of CUDA
                raise

    return call


def call(
    definition: OpDef,
    form: core.Form,
    inputs: dict[str, list[Any]],
    lods: dict[str, list[Any]] | None,
    device: CudaDevice,
) -> list[Any]:
    """Run an operator's kernel on arrays of `device`, which must be active. Raises MemoryError if it is full."""
    try:
        if definition.effects.host:
            return call_on_host(definition, inputs, form.attrs, lods, device)
        if UPDATES.intersection(form.inputs):
            # Launchers of updates write into their arguments, but eager results own their memory.
            return definition.call(device.xp, inputs, form.attrs, lods)
        return definition.call(device.xp, inputs, form.attrs, lods, device, form.outputs)
    except Exception:
        with library.errors(f"operator {definition.type} on GPU {device.number}"):
            raise


def reshaped(device: CudaDevice, outputs: list[Layout | None]) -> Run:
    """A Run for operators whose first result is the reshaped input; further results are empty."""
    (_, shape), *others = [layout for layout in outputs if layout is not None]
    empty = [placing.zeros(device, shape, dtype) for dtype, shape in others]

    def run(arrays: list[Any]) -> list[Any]:
        return [arrays[0].reshape(shape), *empty]

    return run


def from_host(device: CudaDevice, run: Run) -> Run:
    """A Run for operators without arguments: `run` computes on the host, the results are copied to the device."""

    def compute(arrays: list[Any]) -> list[Any]:
        return [placing.to_device(array, device) for array in run(arrays)]

    return compute


def owner(device: CudaDevice) -> Own:
    """An Own for `device`: results become contiguous arrays of the declared type."""
    kind = library.array_type
    assert kind is not None
    xp = device.xp

    def own(value: Any, declared: Layout | None, arrays: list[Any]) -> Any:
        if isinstance(value, LodArray):
            value = value.array
        if type(value) is SelectedRows:
            return placing.to_device(value, device)
        dtype = declared[0] if declared is not None else None
        if not isinstance(value, kind):
            return device.put(np.array(value, dtype))
        array = xp.ascontiguousarray(value, dtype)
        part = array.base is not None and array.base.nbytes != array.nbytes
        if part or any(array.data.mem is held for held in map(_memory, arrays)):
            array = array.copy()
        return array

    return own


def _memory(array: Any) -> Any:
    """The memory object of an array or of the values of SelectedRows."""
    return array.values.data.mem if type(array) is SelectedRows else array.data.mem
