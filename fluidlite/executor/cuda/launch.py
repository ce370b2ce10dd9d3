"""Instructions for a GPU: functions that queue the kernels of operators on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...framework import Operator
from ...ops.host_fallback import call_on_host
from ...ops.registry import LodArray, OpView
from ..ir.instructions import Instruction

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


def call(
    op: Operator,
    inputs: dict[str, list[Any]],
    device: CudaDevice,
    lods: dict[str, list[Any]] | None = None,
) -> list[Any]:
    """`OpDef.call` on arrays of `device`, which must be active; initial values are drawn on the host."""
    if draws_on_host(op):
        return call_on_host(op.definition, inputs, op.attrs, lods, device)
    wanted = [slot for slot, names in op.outputs.items() if names]
    if op.definition.dispatch.cuda is not None:
        inputs = _with_copies(op, inputs)
    return op.definition.call(device.xp, inputs, op.attrs, lods, device, wanted)


def _with_copies(op: Operator, inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The inputs, with copies of those that a launcher overwrites where the program has another output variable.

    Launchers of updates write `ParamOut` into the array of `Param`, `MeanOut` into that of `Mean`.
    """
    for out, names in op.outputs.items():
        slot = out.removesuffix("Out")
        if slot != out and inputs.get(slot) and names and names != op.inputs[slot]:
            inputs = {**inputs, slot: [array.copy() for array in inputs[slot]]}
    return inputs


def draws_on_host(op: Operator) -> bool:
    """True if `op` draws initial values (all its outputs persist), so that a seed gives the same ones as on the CPU."""
    if not op.definition.effects.random:
        return False
    outputs = [op.block._find_var_recursive(name) for name in op.output_arg_names]
    return all(var is not None and var.persistable for var in outputs)


def needs_host(op: Operator) -> str | None:
    """The reason why a step with `op` cannot become a CUDA graph; None if no reason is visible in the program."""
    if draws_on_host(op):
        return f"operator {op.type} draws numbers on the host"
    if op.definition.effects.host or op.definition.hosted:
        return f"operator {op.type} works on the host"
    return None
