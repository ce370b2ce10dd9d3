"""Calls of single operators on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...framework import Operator
from ...ops.host_fallback import call_on_host

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


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
