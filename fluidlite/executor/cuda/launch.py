"""Instructions for a GPU: functions that queue the kernels of operators on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...framework import Operator
from ...ops.registry import LodArray, OpView
from ..ir.instructions import Instruction
from .calls import call

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

Get = Callable[[str], Any]
"""Returns the array of a variable by name."""

Run = Callable[["CudaDevice", Get], Mapping[str, Any]]
"""`Instruction.action` for a GPU: queues kernels on the device's compute stream, which must be current, and returns the
arrays of `writes` by name; for updates those are the arrays that `get` returned."""


def of_operator(op: Operator, view: OpView) -> Instruction:
    """The instruction of one operator: its launcher, or its reference kernel on arrays of the device."""

    def run(device: CudaDevice, get: Get) -> Mapping[str, Any]:
        inputs = {slot: [get(name) for name in names] for slot, names in op.inputs.items() if names}
        outputs = op._named(call(op, inputs, device))
        return {name: value.array if isinstance(value, LodArray) else value for name, value in outputs}

    reads, writes = tuple(dict.fromkeys(op.input_arg_names)), tuple(dict.fromkeys(op.output_arg_names))
    return Instruction((op,), reads, writes, run, view)


def one_by_one(launches: Iterable[Instruction], device: CudaDevice, get: Get) -> Mapping[str, Any]:
    """Run launches in order; returns the arrays that they write."""
    outputs: dict[str, Any] = {}
    for launch in launches:
        outputs.update(launch.action(device, lambda name: outputs[name] if name in outputs else get(name)))
    return outputs
