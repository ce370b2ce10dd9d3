"""Runs operators of GPU programs on the host if their kernels need it (`hosted`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backend import moved
from ..base.rank_table import RankTable
from ..base.selected_rows import SelectedRows
from ..base.tensor_array import TensorArray
from .op_view import LodArray

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice
    from .op_def import Kernel, OpDef

Slots = dict[str, list[Any]]


def hosted(kernel: Kernel) -> Kernel:
    """Mark a reference kernel that works on the host only.

    On a GPU `OpDef.call` copies its inputs to the host, gives it NumPy as `xp`, and copies the results back. That waits
    for the GPU, so that a step with such an operator cannot become a CUDA graph.
    """
    vars(kernel)["hosted"] = True
    return kernel


def call_on_host(
    definition: OpDef,
    inputs: Slots,
    attrs: dict[str, Any],
    lods: dict[str, list[Any]] | None,
    device: CudaDevice,
) -> list[Any]:
    """Return `definition.call` for arrays of `device`, computed on the host.

    Waits until the inputs are computed. The results, `LodArray`s and lists among them, are on the device.
    """
    given = {
        slot: [carried(value, lambda array: moved(array, None)) for value in values]
        for slot, values in inputs.items()
    }
    return [carried(result, device.put) for result in definition.call(np, given, attrs, lods)]


def carried(value: Any, move: Callable[[Any], Any]) -> Any:
    """`value` with its arrays (in lists, `LodArray`s, `SelectedRows`, tensor arrays) replaced by `move(array)`."""
    if isinstance(value, list):
        return [carried(one, move) for one in value]
    if isinstance(value, LodArray):
        return LodArray(carried(value.array, move), value.lod)
    if isinstance(value, TensorArray):
        array = TensorArray()
        for index, (element, lod) in enumerate(value):
            array.write(index, None if element is None else move(element), lod)
        return array
    if isinstance(value, SelectedRows):
        return SelectedRows(move(value.rows), move(value.values), value.height)
    return value if isinstance(value, RankTable) else move(value)
