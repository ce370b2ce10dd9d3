"""One operator on a GPU."""

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
    """What `OpDef.call` gives for arrays of `device`, which must be active; initial values are drawn on the host."""
    if draws_on_host(op):
        return call_on_host(op.definition, inputs, op.attrs, lods, device)
    wanted = [slot for slot, names in op.outputs.items() if names]
    if op.definition.dispatch.cuda is not None:
        inputs = _kept(op, inputs)
    return op.definition.call(device.xp, inputs, op.attrs, lods, device, wanted)


def _kept(op: Operator, inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The inputs, with copies of what a launcher would write over although the result is another variable.

    Launchers of updates write `ParamOut` into the array of `Param`, `MeanOut` into that of `Mean`.
    """
    for out, names in op.outputs.items():
        slot = out.removesuffix("Out")
        if slot != out and inputs.get(slot) and names and names != op.inputs[slot]:
            inputs = {**inputs, slot: [array.copy() for array in inputs[slot]]}
    return inputs


def draws_on_host(op: Operator) -> bool:
    """Whether `op` draws initial values: all that it makes lasts. Then a seed means the same values as on the CPU."""
    if not op.definition.effects.random:
        return False
    made = [op.block._find_var_recursive(name) for name in op.output_arg_names]
    return all(var is not None and var.persistable for var in made)


def needs_host(op: Operator) -> str | None:
    """Why a step with `op` cannot become a CUDA graph, if that can be told beforehand."""
    if draws_on_host(op):
        return f"operator {op.type} draws numbers on the host"
    if op.definition.effects.host or op.definition.hosted:
        return f"operator {op.type} works on the host"
    return None
