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

    def run(device: CudaDevice, get: Get) -> Mapping[str, Any]:
        inputs = {slot: [get(name) for name in names] for slot, names in op.inputs.items() if names}
        made = op._named(call(op, inputs, device))
        return {name: value.array if isinstance(value, LodArray) else value for name, value in made}

    reads, writes = tuple(dict.fromkeys(op.input_arg_names)), tuple(dict.fromkeys(op.output_arg_names))
    return Instruction((op,), reads, writes, run, view)


def one_by_one(launches: Iterable[Instruction], device: CudaDevice, get: Get) -> Mapping[str, Any]:
    """Run launches in order; returns what all of them write."""
    made: dict[str, Any] = {}
    for launch in launches:
        made.update(launch.action(device, lambda name: made[name] if name in made else get(name)))
    return made
