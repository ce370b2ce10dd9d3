"""Products of matrices and sums of products."""

from __future__ import annotations

from typing import Any

from ...framework import Variable
from .shapes import reshaped
from .values import Node, Size, imports


@imports("MatMul")
def _matmul(n: Node) -> None:
    if n.rank(1) == 2 and n.rank(0) > 2:
        n.out(n.op("mul", {"X": n.var(), "Y": n.var(1)}, x_num_col_dims=n.rank() - 1, y_num_col_dims=1))
        return
    both = n.rank() == n.rank(1) == 1
    x, y = n.var(), n.var(1)
    if min(n.rank(), n.rank(1)) > 2 and n.shape()[:-2] != n.shape(1)[:-2]:
        x, y = _broadcast_batches(n, x, y)
    n.out(n.op("matmul", {"X": x, "Y": y}), scalar=both)


def _broadcast_batches(n: Node, x: Variable, y: Variable) -> tuple[Variable, Variable]:
    """Broadcast the batch axes of two stacks of matrices, by adding zeros."""
    sums = [n.op("reduce_sum", {"X": side}, dim=[-2, -1], keep_dim=True, reduce_all=False) for side in (x, y)]
    zeros = n.filled(n.pair("add", *sums), 0.0, x.dtype)
    return n.pair("add", x, zeros), n.pair("add", y, zeros)


@imports("Gemm")
def _gemm(n: Node) -> None:
    sides: dict[str, Any] = {
        "transpose_X": bool(n.attr("transA", 0)),
        "transpose_Y": bool(n.attr("transB", 0)),
    }
    out = n.op("matmul", {"X": n.var(), "Y": n.var(1)}, alpha=n.attr("alpha", 1.0), **sides)
    if n.has(2):
        more = n.var(2)
        if n.attr("beta", 1.0) != 1:
            more = n.op("scale", {"X": more}, scale=n.attr("beta"))
        out = n.op("elementwise_add", {"X": out, "Y": more}, axis=-1)
    n.out(out)


@imports("Einsum")
def _einsum(n: Node) -> None:
    """Einsum without repeated axes in an operand, two operands at a time: transpose, matmul, transpose."""
    rule = n.attr("equation").replace(" ", "")
    terms, _, result = rule.partition("->")
    parts = terms.split(",")
    if "->" not in rule:
        result = "".join(sorted(axis for axis in {*terms} - {*",."} if terms.count(axis) == 1))
        result = "..." + result if "..." in terms else result
    # The axes of an ellipsis get names of their own, aligned at the last one.
    more = max(n.rank(index) - len(part) + 3 if "." in part else 0 for index, part in enumerate(parts))
    names = "".join(map(str, range(more)))
    for index, part in enumerate(parts):
        parts[index] = part.replace("...", names[more - (n.rank(index) - len(part) + 3) :])
    result = result.replace("...", names)
    if "." in "".join((*parts, result)) or any(len({*part}) < len(part) for part in parts) or not all(parts):
        raise n.fail(f"computes {rule}")
    x, first = n.var(), parts[0]
    for index in range(1, len(parts)):
        wanted = {*result}.union(*parts[index + 1 :])
        x, first = _joined(n, (x, first), (n.var(index), parts[index]), wanted)
    x, first = _summed(n, x, first, [k for k, axis in enumerate(first) if axis not in result])
    n.out(n.transposed(x, [first.index(axis) for axis in result]), scalar=not result)


def _joined(
    n: Node, one: tuple[Variable, str], other: tuple[Variable, str], wanted: set[str]
) -> tuple[Variable, str]:
    """The product of two operands, each with the names of its axes, summed over axes that are not in `wanted`."""
    operands = [
        _summed(
            n, var, part, [k for k, axis in enumerate(part) if axis not in wanted and axis not in partner]
        )
        for (var, part), (_, partner) in ((one, other), (other, one))
    ]
    (x, first), (y, second) = operands
    both = [axis for axis in first if axis in second]
    batch = [axis for axis in both if axis in wanted]
    inner = [axis for axis in both if axis not in wanted]
    rows = [axis for axis in first if axis not in second]
    columns = [axis for axis in second if axis not in first]
    sizes: dict[str, int | Size] = {}
    for var, part in ((y, second), (x, first)):
        for k, axis in enumerate(part):
            known = var.shape[k] >= 0
            sizes[axis] = var.shape[k] if known else sizes.get(axis, Size(var.name, k))
    x = _as_stack(n, x, first, [batch, rows, inner], sizes)
    y = _as_stack(n, y, second, [batch, inner, columns], sizes)
    out = n.op("matmul", {"X": x, "Y": y})
    made = [*batch, *rows, *columns]
    return reshaped(n, out, [sizes[axis] for axis in made] or [1]), "".join(made)


def _summed(n: Node, x: Variable, part: str, axes: list[int]) -> tuple[Variable, str]:
    if not axes:
        return x, part
    left = "".join(axis for k, axis in enumerate(part) if k not in axes)
    return n.op("reduce_sum", {"X": x}, dim=axes, keep_dim=False, reduce_all=not left), left


def _as_stack(
    n: Node, x: Variable, part: str, groups: list[list[str]], sizes: dict[str, int | Size]
) -> Variable:
    """An operand reshaped to three axes, each a group of its axes."""
    x = n.transposed(x, [part.index(axis) for group in groups for axis in group])
    shape: list[int] = []
    for group in groups:
        size = 1
        for axis in group:
            each = sizes[axis]
            size = size * each if isinstance(each, int) and size > 0 else -1
        shape.append(size)
    if shape.count(-1) < 2:
        return n.op("reshape2", {"X": x}, more=["XShape"], shape=shape)
    if max(map(len, groups)) > 1:
        raise n.fail("has several groups of axes whose sizes are unknown until run time")
    for place, group in enumerate(groups):
        if not group:
            x = n.op("unsqueeze2", {"X": x}, more=["XShape"], axes=[place])
    return x
