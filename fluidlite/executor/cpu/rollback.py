"""What a step changes before all of its guards have been evaluated: a step that fails one must leave no trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...base.sizes import current
from ...framework import Operator
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import Call
from ..control_flow.array_ops import MAY_MISS, ON_ELEMENTS
from ..control_flow.rank_ops import RANK
from ..control_flow.scan import SCAN, SCAN_KERNEL
from ..ir import jumps
from ..ir.errors import Unsupported
from ..ir.finite import CHECK_FINITE
from ..ir.instructions import Instruction, outermost_loops
from .code import Code

REPLAYABLE = (*jumps.JUMPS, jumps.ASSERT_DEFINED, jumps.NONEMPTY, RANK, CHECK_FINITE, *ON_ELEMENTS)
"""Operators with effects that may happen twice."""

MOST_COPIED = 1 << 20
"""Bytes of persistable variables that a step copies at most, to restore them if a guard fails."""


def changed_early(code: Code) -> list[str] | None:
    """The persistable variables that are written before the last guard; None if a step cannot be rolled back.

    Raises Unsupported where guards on sizes that only the data know come after something that cannot be rolled back.
    """
    instructions = code.instructions
    finds = [at for at, each in enumerate(instructions) if is_call(each, RESOLVE_SIZES)]
    checked = (jumps.ASSERT_DEFINED, *(MAY_MISS if finds else MAY_MISS[:2]))
    guards = [
        at for at, each in enumerate(instructions) if any(op.definition in checked for op in _all_of(each))
    ]
    # Whether such a loop has a body for each iteration is known when it is reached.
    guards += [
        at for at, each in enumerate(instructions) if finds and at > finds[0] and is_call(each, SCAN_KERNEL)
    ]
    last = max([*finds[-1:], *guards], default=0)
    for begin, end in outermost_loops(instructions):  # what is in a loop comes before the next iteration
        if begin < last < end:
            last = end
    for at, op in [(at, op) for at, each in enumerate(instructions[:last]) for op in _all_of(each)]:
        effects = op.definition.effects
        if effects.random or (effects.host and op.definition not in REPLAYABLE):
            if not finds:
                return None
            finding = next((instructions[find].op for find in finds if find > at), op)
            raise Unsupported(
                f"sizes are found behind operator {op.type}, which cannot be rolled back", finding
            )
    names = sorted(_persistables(code, instructions[:last]))
    if sum(current(code.meta.bytes(name)) for name in names if name in code.meta.shapes) > MOST_COPIED:
        raise Unsupported(f"sizes are found when {names[0]!r} and other persistable variables have changed")
    return names


def is_call(instruction: Instruction, kernel: str) -> bool:
    """True for a call of this kernel."""
    return isinstance(instruction.action, Call) and instruction.action.kernel == kernel


def _persistables(code: Code, instructions: Sequence[Instruction]) -> set[str]:
    written = {name for each in instructions for name in each.writes}
    return {*filter(code.meta.is_persistable, written)}


def _all_of(instruction: Instruction) -> Iterable[Operator]:
    """The operators of an instruction, and those of the iterations that it runs."""
    op = instruction.op
    return (*instruction.ops, *op.attrs["form"].ops) if op.definition is SCAN else instruction.ops
