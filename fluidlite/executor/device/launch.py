"""Instructions for a GPU: functions that queue the work of operators on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...framework import Operator
from ...ops.registry import LodArray, OpView
from ..plan.instructions import Instruction
from .calls import call

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

Get = Callable[[str], Any]
"""Gives the array of a variable."""

Run = Callable[["CudaDevice", Get], Mapping[str, Any]]
"""`Instruction.action` for a GPU: has the work queued on the device's compute stream, which must be current, and
returns the arrays of `writes` by name; updates return the arrays that `get` gave them."""


def of_operator(op: Operator, view: OpView) -> Instruction:
    """The launch of one operator: its launcher, or its reference kernel on arrays of the device."""
    definition = op.definition

    def run(device: CudaDevice, get: Get) -> Mapping[str, Any]:
        inputs = {slot: [get(name) for name in names] for slot, names in op.inputs.items() if names}
        made: dict[str, Any] = {}
        for slot, result in zip(definition.output_slots, call(op, inputs, device), strict=True):
            names = op.outputs.get(slot.name) or []
            for name, value in zip(names, result if slot.many else [result], strict=False):
                if value is not None:
                    made[name] = value.array if isinstance(value, LodArray) else value
        return made

    reads, writes = tuple(dict.fromkeys(op.input_arg_names)), tuple(dict.fromkeys(op.output_arg_names))
    return Instruction((op,), reads, writes, run, view)


def one_by_one(launches: Iterable[Instruction], device: CudaDevice, get: Get) -> Mapping[str, Any]:
    """Run launches in order; returns what all of them write."""
    made: dict[str, Any] = {}
    for launch in launches:
        made.update(launch.action(device, lambda name: made[name] if name in made else get(name)))
    return made
