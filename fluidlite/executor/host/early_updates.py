"""Updates of parameters as soon as their gradients are there, so that gradients need not wait for each other."""

from __future__ import annotations

from ...ops.optimizers.updates import parted, update_kind
from ...ops.registry import Call
from ..plan.instructions import Instruction


def updated_early(instructions: list[Instruction], roots: dict[str, str]) -> list[Instruction]:
    """The instructions, with each update behind the last of those in front of it that touch what it touches.

    What is no native call, and jumps, are not passed: they may fail, or run again.
    """
    out: list[list[Instruction]] = [[]]  # behind each instruction that is no update
    touched: dict[str, int] = {}
    fence = 0
    for each in instructions:
        if (
            isinstance(each.action, Call)
            and each.op._is_optimize_op()
            and update_kind(each.action) is not None
        ):
            for part in _parts(each):
                names = {roots.get(name, name) for name in part.touches}
                out[max(fence, *(touched.get(name, 0) for name in names))].append(part)
            continue
        out.append([each])
        names = {roots.get(name, name) for name in each.touches}
        touched.update(dict.fromkeys(names, len(out) - 1))
        if not isinstance(each.action, Call):
            fence = len(out) - 1
    return [each for some in out for each in some]


def _parts(updates: Instruction) -> list[Instruction]:
    """Updates that are one call, one by one."""
    calls = parted(updates.action)
    ops = updates.ops if len(updates.ops) == len(calls) else updates.ops[:1] * len(calls)
    return [
        Instruction(
            (op,),
            tuple(name for name in updates.reads if name in call.operands),
            tuple(name for name in updates.writes if name in call.operands),
            call,
        )
        for op, call in zip(ops, calls, strict=True)
    ]
