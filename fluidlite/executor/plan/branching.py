"""Branches in plans: the operators of a conditional block stand in line with the others, behind a jump past them."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator

from ...base.dtypes import VarType
from ...base.sizes import is_fixed
from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.registry import EMPTY, OpDef, OpView
from .shapes import CannotPlan, in_place_of, takes_no_part


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
    if not op.definition.may_skip or not op.attr("is_scalar_condition") or kept_names(op) is not None:
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
        yield in_place_of(op, BEGIN, {"Cond": list(op.inputs["Cond"])}, {})
        yield from expanded(inner for inner in op.attrs["sub_block"].ops if not takes_no_part(inner))
        yield in_place_of(op, END, {}, {})


def chosen(ops: Iterable[Operator]) -> Iterator[Operator]:
    """Operators with those of small branches in their places, run whether the condition holds or not.

    What these would change is made beside it, and then the one or the other chosen. That goes without a jump, for
    branches of operators on single elements, like those of learning rates.
    """
    for number, op in enumerate(ops):
        if in_line(op) and _is_small(op):
            yield from _chosen(op, f"@BRANCH{number}")
        else:
            yield op


def _is_small(op: Operator) -> bool:
    for inner in op.attrs["sub_block"].ops:
        definition = inner.definition
        if definition.control or definition.random or definition.host or definition.kernel is None:
            return False
        if not all(_is_single(inner, name) for name in (*inner.reads(), *inner.writes())):
            return False
    return _is_single(op, op.inputs["Cond"][0])


def _is_single(op: Operator, name: str) -> bool:
    var = op.block._find_var_recursive(name)
    return var is not None and var.type == VarType.LOD_TENSOR and var._shape == (1,)


def _chosen(op: Operator, suffix: str) -> Iterator[Operator]:
    block = op.attrs["sub_block"]
    beside: dict[str, str] = {}
    for inner in block.ops:
        made = copy.copy(inner)
        made.inputs = {slot: [beside.get(n, n) for n in names] for slot, names in inner.inputs.items()}
        beside.update((name, name + suffix) for name in inner.writes() if name not in block.vars)
        made.outputs = {slot: [beside.get(n, n) for n in names] for slot, names in inner.outputs.items()}
        yield made
    for name, new in beside.items():
        takes = {"Condition": list(op.inputs["Cond"]), "X": [new], "Y": [name]}
        picked = name + suffix + "@CHOSEN"
        yield in_place_of(op, "where", takes, {"Out": [picked]}, {})
        yield in_place_of(op, "assign", {"X": [picked]}, {"Out": [name]}, {})
