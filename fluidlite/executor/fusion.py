"""Joins instructions of a plan that one native kernel can do together."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from typing import Any

from ..framework import Operator
from ..ops.math import gemm
from ..ops.optimizers import updates as optim
from ..ops.registry import Call, OpDef

Instruction = tuple[Operator, "Call | OpDef | Callable[[], None]"]


def fuse(
    instructions: list[Instruction], touched: Callable[[Operator, Any], Sequence[str]], root: Callable[[str], str],
    keep: Collection[str],
) -> tuple[list[Instruction], list[list[Operator]]]:  # fmt: skip
    """Join products with bias and activation, and runs of like optimizer updates.

    `touched(op, action)`: the variables of an instruction; `root(name)`: the variable whose memory a name means;
    `keep`: variables that must have their values in the end. What nobody else looks at is not computed any more.
    Returns the instructions, and the operators that each stands for.
    """
    uses = Counter(root(name) for op, action in instructions for name in touched(op, action))
    uses.update(root(name) for name in keep)
    out: list[Instruction] = []
    stands_for: list[list[Operator]] = []
    for op, action in instructions:
        joined = None
        if out and isinstance(action, Call) and isinstance(out[-1][1], Call):
            joined = _joined(out[-1][1], action, op.definition.epilogue, root, uses)
        if joined is not None:
            out[-1] = (out[-1][0], joined)
            stands_for[-1].append(op)
        else:
            out.append((op, action))
            stands_for.append([op])
    return _join_updates(out, stands_for)


def named(ops: Sequence[Operator]) -> str:
    """What an instruction or launch is called that stands for these operators: `mul+elementwise_add`, `4 sgd`."""
    types = Counter(op.type for op in ops)
    return "+".join(name if count == 1 else f"{count} {name}" for name, count in types.items())


def operands(ops: Sequence[Operator]) -> tuple[list[str], list[str]]:
    """What operators that are one instruction read and write; what they hand to each other is left out."""
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for op in ops:
        for name in op.input_arg_names:
            if name in writes:
                del writes[name]
            else:
                reads[name] = None
        writes.update(dict.fromkeys(op.output_arg_names))
    return list(reads), list(writes)


def _joined(
    before: Call, action: Call, epilogue: int, root: Callable[[str], str], uses: Counter[str]
) -> Call | None:
    """One call for two, if only the second reads what the first makes."""
    if not gemm.is_product(before):
        return None
    result, source = before.operands[2], action.operands[0]
    if source is None or result is None or root(source) != root(result) or uses[root(result)] != 2:
        return None
    return gemm.with_bias(before, action) or gemm.with_activation(before, action, epilogue)


def _join_updates(
    instructions: list[Instruction], stands_for: list[list[Operator]]
) -> tuple[list[Instruction], list[list[Operator]]]:
    """Join each run of optimizer updates of the same kind into one call over many parameters."""
    out: list[Instruction] = []
    ops: list[list[Operator]] = []
    position = 0
    for updates, group in groupby(instructions, key=_is_update):
        run = list(group)
        counts = [1] * len(run)
        if updates:
            calls, counts = optim.fuse([call for _, call in run if isinstance(call, Call)])
            firsts = itertools.accumulate(counts, initial=0)
            run = [(run[first][0], call) for first, call in zip(firsts, calls, strict=False)]
        out += run
        for count in counts:
            ops.append([op for each in stands_for[position : position + count] for op in each])
            position += count
    return out, ops


def _is_update(item: Instruction) -> bool:
    op, action = item
    return isinstance(action, Call) and op._is_optimize_op()
