"""Small branches without a jump: what they would change is made beside it, and then the one or the other chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...base.dtypes import VarType
from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from .branching import in_line, written_outside
from .shapes import in_place_of, renamed


def _changes_persistable(op: Operator) -> bool:
    """Whether an operator is a branch without gradient that changes only persistable variables."""
    return (
        op.type == "conditional_block" and in_line(op) and kept_names(op) is None and not written_outside(op)
    )


def without_branches(ops: Iterable[Operator]) -> Iterator[Operator]:
    """Operators with those of small branches in their places, run whether the condition holds or not.

    What these would change is made beside it, and then the one or the other chosen. That goes without a jump, for
    branches of operators on single elements, like those of learning rates.
    """
    for number, op in enumerate(ops):
        if _changes_persistable(op) and _is_small(op):
            yield from _selected(op, f"@BRANCH{number}")
        else:
            yield op


def _is_small(op: Operator) -> bool:
    for inner in op.attrs["sub_block"].ops:
        definition = inner.definition
        if (
            definition.effects.control
            or definition.effects.random
            or definition.effects.host
            or definition.kernel is None
        ):
            return False
        if not all(_is_single(inner, name) for name in (*inner.reads(), *inner.writes())):
            return False
    return _is_single(op, op.inputs["Cond"][0])


def _is_single(op: Operator, name: str) -> bool:
    var = op.block._find_var_recursive(name)
    return var is not None and var.type == VarType.LOD_TENSOR and var._shape == (1,)


def _selected(op: Operator, suffix: str) -> Iterator[Operator]:
    block = op.attrs["sub_block"]
    beside: dict[str, str] = {}
    for inner in block.ops:
        made = renamed(inner, beside, outputs=False)
        beside.update((name, name + suffix) for name in inner.writes() if name not in block.vars)
        yield renamed(made, beside, inputs=False)
    for name, new in beside.items():
        takes = {"Condition": list(op.inputs["Cond"]), "X": [new], "Y": [name]}
        picked = name + suffix + "@CHOSEN"
        yield in_place_of(op, "where", takes, {"Out": [picked]}, {})
        yield in_place_of(op, "assign", {"X": [picked]}, {"Out": [name]}, {})
