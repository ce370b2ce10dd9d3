"""Rollback: a step that fails a guard must restore the persistable variables that it has written before."""

from __future__ import annotations

from collections.abc import Iterable

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
"""Side-effecting operators that are safe to replay."""

MOST_COPIED = 1 << 20
"""The limit for bytes of persistable variables that each step copies for a rollback."""


def changed_early(code: Code) -> list[str] | None:
    """The persistable variables that are written before the last guard; None if a step cannot be rolled back.

    Raises Unsupported where guards on data-dependent sizes follow an operator that cannot be rolled back.
    """
    instructions = code.instructions
    ops = [(at, op) for at, each in enumerate(instructions) for op in _all_of(each)]
    resolved = _calls(instructions, RESOLVE_SIZES)
    checked = (jumps.ASSERT_DEFINED, *(MAY_MISS if resolved else MAY_MISS[:2]))
    guards = [at for at, op in ops if op.definition in checked]
    # After data-dependent sizes, a scan checks when it runs whether it has bodies for all of its iterations.
    guards += [at for at in _calls(instructions, SCAN_KERNEL) if resolved and at > resolved[0]]
    last = max([*resolved[-1:], *guards], default=0)
    for begin, end in outermost_loops(instructions):  # a later iteration follows all of the loop
        if begin < last < end:
            last = end
    for at, op in ops:
        if at >= last:
            break
        effects = op.definition.effects
        if effects.random or (effects.host and op.definition not in REPLAYABLE):
            if not resolved:
                return None
            later = next((instructions[place].op for place in resolved if place > at), op)
            raise Unsupported(
                f"data-dependent sizes follow operator {op.type}, which cannot be rolled back", later
            )
    names = sorted(code.persistable_results(instructions[:last]))
    if sum(current(code.meta.bytes(name)) for name in names if name in code.meta.shapes) > MOST_COPIED:
        raise Unsupported(
            f"guards follow writes of more persistable variables ({names[0]!r}, ...) than a step copies for rollback"
        )
    return names


def is_call(instruction: Instruction, kernel: str) -> bool:
    """True for a call of this kernel."""
    return isinstance(instruction.action, Call) and instruction.action.kernel == kernel


def _calls(instructions: Iterable[Instruction], kernel: str) -> list[int]:
    """The calls of this kernel, by index."""
    actions = [each.action for each in instructions]
    return [at for at, action in enumerate(actions) if isinstance(action, Call) and action.kernel == kernel]


def _all_of(instruction: Instruction) -> Iterable[Operator]:
    """The operators of an instruction, and those of the iterations that it runs."""
    op = instruction.ops[0]
    return (*instruction.ops, *op.attrs["spec"].ops) if op.definition is SCAN else instruction.ops
