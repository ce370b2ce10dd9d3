"""`Launch`: one step of a program on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...framework import Operator
from ...ops.registry import LodArray, OpView
from ..fusion import named
from .calls import call

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

Get = Callable[[str], Any]
"""Gives the array of a variable."""

_SHOWN = 6
"""How many variables of a launch are named in its description."""


@dataclass(frozen=True)
class Launch:
    """What to do on a device for operator `op`, or for several operators of which `op` is the first.

    `view`: the operator with exact shapes and dtypes. `reads`, `writes`: the variables concerned. `run(device, get)`
    has the work queued on the device's compute stream, which must be current, and returns the arrays of `writes` by
    name; updates return the arrays that `get` gave them.
    """

    op: Operator
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    run: Callable[[CudaDevice, Get], Mapping[str, Any]]
    joined: tuple[Operator, ...] = ()
    """The other operators that this launch stands for."""
    view: OpView | None = None

    @property
    def name(self) -> str:
        """What to call this: the operators, how many of each type."""
        return named((self.op, *self.joined))

    def describe(self) -> str:
        """The operators, how many of each type, and the variables, as one line."""
        return f"{self.name}({_some(self.reads)}) -> {_some(self.writes)}"


def _some(names: Sequence[str]) -> str:
    """Names with commas between; of many only the first."""
    left = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {left} more" if left > 0 else "")


def of_operator(op: Operator, view: OpView) -> Launch:
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
    return Launch(op, reads, writes, run, view=view)
