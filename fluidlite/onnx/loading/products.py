"""Products of matrices, sums of products, and Fourier transforms as products with tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from ...base.dtypes import to_numpy
from ...framework import Variable
from .indexing import gathered
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
    sums = [n.unary("reduce_sum", side, dim=[-2, -1], keep_dim=True, reduce_all=False) for side in (x, y)]
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
            more = n.unary("scale", more, scale=n.attr("beta"))
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
    return n.unary("reduce_sum", x, dim=axes, keep_dim=False, reduce_all=not left), left


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
        return n.shaped(x, shape)
    if max(map(len, groups)) > 1:
        raise n.fail("has several groups of axes whose sizes are unknown until run time")
    for place, group in enumerate(groups):
        if not group:
            x = n.unsqueezed(x, [place])
    return x


def _transformed(
    n: Node, parts: list[Variable], count: int, inverse: bool = False, onesided: bool = False
) -> Variable:
    """The transform along the last axis of `count` numbers, [..., found, 2]; `parts`: real, or real and imaginary.

    Numbers beyond the last axis are zero.
    """
    given, found = parts[0].shape[-1], count // 2 + 1 if onesided else count
    if given < 1:
        raise n.fail("transforms an axis whose size is unknown until run time")
    if given > count:
        parts = [n.sliced(one, [len(one.shape) - 1], [0], [count]) for one in parts]
    n.table(2.0 * min(given, count) * found)
    angles = np.outer(np.arange(min(given, count)), np.arange(found)) % count * (2 * np.pi / count)
    tables = [np.cos(angles), np.sin(angles) if inverse else -np.sin(angles)]
    tables = [(table / count if inverse else table).astype(to_numpy(parts[0].dtype)) for table in tables]
    cosines, sines = (n.maker.constant(table) for table in tables)
    dims: dict[str, Any] = {"x_num_col_dims": len(parts[0].shape) - 1, "y_num_col_dims": 1}

    def times(x: Variable, table: Variable) -> Variable:
        return n.op("mul", {"X": x, "Y": table}, **dims)

    real, imaginary = times(parts[0], cosines), times(parts[0], sines)
    if len(parts) > 1:
        real = n.pair("sub", real, times(parts[1], sines))
        imaginary = n.pair("add", imaginary, times(parts[1], cosines))
    return n.op("stack", {"X": [real, imaginary]}, "Y", axis=len(real.shape))


def _complex_parts(n: Node, x: Variable) -> list[Variable]:
    """Real, or real and imaginary parts along the last axis."""
    last = len(x.shape) - 1
    if x.shape[last] not in (1, 2):
        raise n.fail(f"has numbers of {x.shape[last]} parts, expected real or complex ones")
    return [n.squeezed(n.sliced(x, [last], [k], [k + 1]), [last]) for k in range(x.shape[-1])]


@imports("DFT")
def _fourier(n: Node) -> None:
    """The axis is an attribute before opset 20."""
    inverse, onesided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    if inverse and onesided:
        raise n.fail("is inverse and onesided")
    axis = (n.ints(2)[0] if n.has(2) else -2) if n.maker.opset >= 20 else n.attr("axis", 1)
    rank, axis = n.rank(), axis % n.rank()
    order = [*(k for k in range(rank - 1) if k != axis), axis, rank - 1]
    x = n.transposed(n.var(), order)
    count = n.ints(1)[0] if n.has(1) else x.shape[-2]
    out = _transformed(n, _complex_parts(n, x), count, inverse, onesided)
    n.out(n.transposed(out, np.argsort(order).tolist()))


@imports("STFT")
def _short_time_fourier(n: Node) -> None:
    signal, step = n.var(), n.ints(1)[0]
    parts = _complex_parts(n, signal) if n.rank() == 3 else [signal]
    long = n.ints(3)[0] if n.has(3) else n.shape(2)[0]
    size = n.shape()[1]
    if size < long:
        raise n.fail(
            f"has frames of {long} of a signal of {size}, expected a known size of at least the frame's"
        )
    frames = (size - long) // step + 1
    n.table(float(frames) * long)
    places = n.maker.constant((np.arange(frames)[:, None] * step + np.arange(long)).ravel())
    cut = [n.shaped(gathered(n, one, places, 1), [-1, frames, long]) for one in parts]
    if n.has(2):
        cut = [n.pair("mul", one, n.var(2)) for one in cut]
    n.out(_transformed(n, cut, long, onesided=bool(n.attr("onesided", 1)) and len(parts) == 1))


@imports("MelWeightMatrix")
def _mel_weights(n: Node) -> None:
    """MelWeightMatrix is supported for constant inputs only, which constant folding has handled before."""
    raise n.fail("has computed inputs, or is too large")


_WAVES = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@imports(*_WAVES)
def _window(n: Node) -> None:
    size = n.table(float(n.array(0).item()))
    angles = np.arange(size) * (2 * np.pi / (size if n.attr("periodic", 1) else max(size - 1, 1)))
    level, first, second = _WAVES[n.kind]
    dtype = helper.tensor_dtype_to_np_dtype(n.attr("output_datatype", 1))
    n.known(array=(level - first * np.cos(angles) + second * np.cos(2 * angles)).astype(dtype))
