"""Pruning: the operators of a program that variables, or inference, need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from .common_attrs import OpRole
from .operator import Operator

if TYPE_CHECKING:
    from .block import Block


def needed_ops(
    block: Block,
    asked: Sequence[bool],
    targets: Iterable[str],
    feeds: Collection[str],
    updating: bool = False,
) -> list[Operator]:
    """The operators of a global block that compute `targets` from `feeds`, and those `asked` for.

    Updates of parameters are not needed, as these have values. With `updating` other operators of optimizers may be.
    """
    needed = set(targets).difference(feeds)
    kept = []
    for op, wanted in zip(reversed(block.ops), reversed(asked), strict=True):
        written = needed.intersection(op.writes())
        update = "ParamOut" in op.outputs or (op._is_optimize_op() and not updating)
        if wanted or (written and not (update and all(map(block._is_persistable, written)))):
            kept.append(op)
            needed.update(op.reads())
            for sub in op.sub_blocks():
                needed.update(name for inner in sub.ops for name in inner.input_arg_names)
            needed.difference_update(feeds)
    return kept[::-1]


def touched(ops: Iterable[Operator]) -> set[str]:
    """The names of all variables that the operators read or write."""
    return {name for op in ops for name in (*op.reads(), *op.writes())}


_TRAINING = OpRole.Backward | OpRole.Optimize | OpRole.LRSched

LR_COUNTER, EMA_COUNTER = "@LR_DECAY_COUNTER@", "@EMA_STEP_COUNTER@"
"""The variables that count the steps of training, for schedules of rates and averages of parameters."""


def without_training(blocks: Sequence[Block]) -> list[list[Operator]]:
    """The operators of each block without gradients, updates and learning rates, if a loss is trained, by `minimize` or
    `append_backward`. Otherwise all of them: gradients, and averages, without updates are results. Operators that count
    steps of training are left out.
    """
    start = OpRole.Backward | OpRole.Loss
    trains = any(op.attrs.get("op_role", 0) == start for block in blocks for op in block.ops)
    roles, counter = (_TRAINING, EMA_COUNTER) if trains else (0, LR_COUNTER)
    return [
        [op for op in block.ops if not (op.attrs.get("op_role", 0) & roles or _counts(op, counter))]
        for block in blocks
    ]


def _counts(op: Operator, counter: str) -> bool:
    return op.type == "increment" and op.output("Out") == [counter]
