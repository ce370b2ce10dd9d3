"""Branches in plans: the operators of a conditional block stand in line with the others, behind a jump past them."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator

from ..base.dtypes import VarType
from ..base.sizes import is_fixed
from ..framework import Operator
from ..framework.backward_blocks import kept_names
from ..ops.registry import EMPTY, OpDef, OpView
from .planning import CannotPlan, takes_no_part


def _infer(op: OpView) -> None:
    shape = op.shape("Cond")
    if op.dtype("Cond") != VarType.BOOL or not is_fixed(shape) or math.prod(shape) != 1:
        raise CannotPlan(f"the condition {op.name('Cond')!r} is not one bool")


BEGIN = OpDef(
    "branch", inputs=("Cond",), outputs=(), infer=_infer, doc="Goes on behind `branch_end` unless Cond."
)
END = OpDef("branch_end", inputs=(), outputs=(), infer=lambda op: None, doc="Where a branch ends.")


def in_line(op: Operator) -> bool:
    """Whether an operator is a branch that may be in a plan, as far as can be said without knowing what varies.

    That is if it has one condition and no gradient, and changes no variables of outside but those that last: these
    are in their places whether the block runs or not.
    """
    if op.type != "conditional_block" or not op.attr("is_scalar_condition") or kept_names(op) is not None:
        return False
    block = op.attrs["sub_block"]
    for inner in block.ops:
        if inner.definition.control and not in_line(inner):
            return False
        for name in inner.writes():
            if name == EMPTY or name in block.vars:
                continue
            var = block._find_var_recursive(name)
            if (var is None or not var.persistable) and not inner.definition.control:
                return False
    return all(op.block._find_var_recursive(name) is None for name in block.vars)


def expanded(ops: Iterable[Operator]) -> Iterator[Operator]:
    """Operators with the blocks of branches in their places."""
    for op in ops:
        if not in_line(op):
            yield op
            continue
        yield _marker(op, BEGIN, {"Cond": list(op.inputs["Cond"])})
        yield from expanded(inner for inner in op.attrs["sub_block"].ops if not takes_no_part(inner))
        yield _marker(op, END, {})


def _marker(op: Operator, definition: OpDef, inputs: dict[str, list[str]]) -> Operator:
    """An operator in the place of `op`, whose attributes tell that it belongs to it."""
    made = copy.copy(op)
    made.type, made.definition = definition.type, definition
    made.inputs, made.outputs = inputs, {}
    return made
