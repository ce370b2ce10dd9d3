"""Predication: small branches evaluated unconditionally, for targets that cannot jump (GPUs, split plans).

    conditional_block(c) { assign(a) -> lr }      assign(a) -> lr@BRANCH0
                                                  where(c, lr@BRANCH0, lr) -> lr@BRANCH0@CHOSEN
                                                  assign(lr@BRANCH0@CHOSEN) -> lr

That covers the branches of learning-rate schedules: pure operators on single elements that write persistable variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...base.dtypes import VarType
from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ..ir.inference import in_place_of, renamed
from .blocks import is_inlinable, written_outside


def predicated(ops: Iterable[Operator]) -> Iterator[Operator]:
    """The operators, with those of small branches in the place of each branch, followed by a select per result."""
    for number, op in enumerate(ops):
        if _updates_persistable_only(op) and _is_small(op):
            yield from _selected(op, f"@BRANCH{number}")
        else:
            yield op


def _updates_persistable_only(op: Operator) -> bool:
    """True for a branch without gradient whose results are all persistable variables."""
    return (
        op.type == "conditional_block"
        and is_inlinable(op)
        and kept_names(op) is None
        and not written_outside(op)
    )


def _is_small(op: Operator) -> bool:
    """True if the block consists of pure operators on tensors of one element."""
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
    """The operators of a branch on renamed results, then `where` and `assign` for each variable of the scope."""
    block = op.attrs["sub_block"]
    new_names: dict[str, str] = {}
    for inner in block.ops:
        made = renamed(inner, new_names, outputs=False)
        new_names.update((name, name + suffix) for name in inner.writes() if name not in block.vars)
        yield renamed(made, new_names, inputs=False)
    for name, new in new_names.items():
        selected = name + suffix + "@CHOSEN"
        inputs = {"Condition": list(op.inputs["Cond"]), "X": [new], "Y": [name]}
        yield in_place_of(op, "where", inputs, {"Out": [selected]}, {})
        yield in_place_of(op, "assign", {"X": [selected]}, {"Out": [name]}, {})
