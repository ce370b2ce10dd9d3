"""Joins instructions of a plan that one native kernel can do together."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from typing import Any

from ..framework import Operator
from ..ops import optim
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
            joined = _with_bias(out[-1][1], action, root, uses) or _with_activation(
                out[-1][1], action, op.definition.epilogue, root, uses
            )
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


def _private(name: str | None, root: Callable[[str], str], uses: Counter[str]) -> bool:
    """Whether only the instruction that writes `name` and the one that reads it know it."""
    return name is not None and uses[root(name)] == 2


def _with_bias(product: Call, add: Call, root: Callable[[str], str], uses: Counter[str]) -> Call | None:
    kind, _, suffix = product.kernel.partition(".")
    if kind != "gemm" or add.kernel != f"elementwise_add_mid.{suffix}" or any(product.operands[3:]):
        return None
    left, right, result = product.operands[:3]
    source, bias, target = add.operands
    rows, columns = product.ints[0], product.ints[1]
    if source is None or result is None or root(source) != root(result) or not _private(result, root, uses):
        return None
    if list(add.ints[:3]) != [rows, columns, 1] or product.floats[1] != 0 or any(product.ints[5:]):
        return None
    act = list(add.ints[3:]) or [0]
    return Call(product.kernel, [left, right, target, bias], [*product.ints[:5], *act], product.floats)


def _with_activation(
    product: Call, activation: Call, epilogue: int, root: Callable[[str], str], uses: Counter[str]
) -> Call | None:
    kind, _, suffix = product.kernel.partition(".")
    _, _, act_suffix = activation.kernel.partition(".")
    if (
        kind != "gemm"
        or not epilogue
        or act_suffix != suffix
        or any(product.ints[5:])
        or product.floats[1] != 0
    ):
        return None
    result, source = product.operands[2], activation.operands[0]
    if source is None or result is None or root(source) != root(result) or not _private(result, root, uses):
        return None
    operands = [*product.operands[:2], activation.operands[1], *product.operands[3:]]
    return Call(product.kernel, operands, [*product.ints[:5], epilogue], product.floats)


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
