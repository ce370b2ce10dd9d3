"""Quantization to integers, and back."""

from __future__ import annotations

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...framework import Variable
from .elementwise import half_to_even, reduced
from .layers import convolved
from .values import Node, imports


def _per_axis(n: Node, index: int) -> Variable:
    """A scale or zero point: one for all, or one for each index along an axis."""
    given = n.var(index)
    if n.rank(index) == 0 or given.shape == (1,):
        return given
    if n.rank(index) != 1 or n.attr("block_size", 0):
        raise n.fail("has blocked scales")
    shape = [1] * n.rank()
    shape[n.attr("axis", 1) % n.rank()] = -1
    return n.op("reshape2", {"X": given}, more=["XShape"], shape=shape)


def _saturated(n: Node, x: Variable, kind: int) -> Variable:
    """Floats as integers of a type, saturated to its range."""
    if kind not in (VarType.UINT8, VarType.INT8):
        raise n.fail(f"makes elements of type {VarType(kind).name}")
    ends = np.iinfo(to_numpy(kind))
    return n.cast(n.op("clip", {"X": x}, min=float(ends.min), max=float(ends.max)), kind)


@imports("QuantizeLinear", "com.microsoft.QuantizeLinear")
def _quantize(n: Node) -> None:
    kind = n.var(2).dtype if n.has(2) else VarType.UINT8
    x = half_to_even(n, n.pair("div", n.var(), _per_axis(n, 1)))
    if n.has(2):
        x = n.pair("add", x, n.cast(_per_axis(n, 2), VarType.FP32))
    n.out(_saturated(n, x, kind), scalar=n.value().scalar)


def without_zero(n: Node, index: int, zero: int, rank: int = 0) -> Variable:
    """Subtract the zero point, in float64, where sums of products of bytes are exact.

    `rank`: that of an input which has a zero point for each index of its first axis.
    """
    x = n.cast(n.var(index), VarType.FP64)
    if not n.has(zero):
        return x
    nothing = n.cast(n.var(zero), VarType.FP64)
    return n.pair(
        "sub", x, _with_trailing_axes(n, nothing, rank - 1) if rank and n.rank(zero) == 1 else nothing
    )


def _with_trailing_axes(n: Node, x: Variable, count: int) -> Variable:
    """A vector with `count` trailing axes of size 1."""
    return n.op("reshape2", {"X": x}, more=["XShape"], shape=[-1, *[1] * count])


def _requantized(n: Node, total: Variable, scale: Variable, index: int) -> None:
    """Requantize sums in units of `scale` by the scale and zero point in inputs `index` and `index + 1`."""
    unit = n.pair("div", scale, n.var(index))
    _rounded(n, n.pair("mul", n.cast(total, VarType.FP32), unit), index)


def as_bytes(n: Node, x: Variable, index: int) -> None:
    """Quantize by the scale and zero point in inputs `index` and `index + 1`."""
    _rounded(n, n.pair("div", x, n.var(index)), index)


def _rounded(n: Node, x: Variable, index: int) -> None:
    x = half_to_even(n, x)
    kind = n.var(index + 1).dtype if n.has(index + 1) else VarType.UINT8
    if n.has(index + 1):
        x = n.pair("add", x, n.cast(n.var(index + 1), VarType.FP32))
    n.out(_saturated(n, x, kind))


@imports("MatMulInteger")
def _matmul_integer(n: Node) -> None:
    sides = [without_zero(n, index, index + 2) for index in (0, 1)]
    n.out(n.cast(n.op("matmul", {"X": sides[0], "Y": sides[1]}), VarType.INT32))


@imports("ConvInteger")
def _convolution_integer(n: Node) -> None:
    sides = without_zero(n, 0, 2), without_zero(n, 1, 3, n.rank(1))
    n.out(n.cast(convolved(n, *sides, n.shape(1)[2:]), VarType.INT32))


@imports("QLinearMatMul")
def _linear_matmul(n: Node) -> None:
    sides = without_zero(n, 0, 2), without_zero(n, 3, 5)
    total = n.op("matmul", {"X": sides[0], "Y": sides[1]})
    _requantized(n, total, n.pair("mul", n.var(1), n.var(4)), 6)


@imports("QLinearConv")
def _linear_convolution(n: Node) -> None:
    """Weights may have a scale and a zero point for each output channel."""
    rank = n.rank(3)
    out = convolved(n, without_zero(n, 0, 2), without_zero(n, 3, 5, rank), n.shape(3)[2:])
    if n.has(8):
        out = n.pair("add", out, _with_trailing_axes(n, n.cast(n.var(8), VarType.FP64), rank - 2))
    _requantized(n, out, _with_trailing_axes(n, n.pair("mul", n.var(1), n.var(4)), rank - 2), 6)


@imports("DequantizeLinear", "com.microsoft.DequantizeLinear")
def _dequantize(n: Node) -> None:
    x = n.cast(n.var(), VarType.FP32)
    if n.has(2):
        x = n.pair("sub", x, n.cast(_per_axis(n, 2), VarType.FP32))
    n.out(n.pair("mul", x, _per_axis(n, 1)), scalar=n.value().scalar)


@imports("DynamicQuantizeLinear")
def _dynamic_quantize(n: Node) -> None:
    made, scale, zero = quantized(n, n.var())
    n.out(made)
    n.out(scale, 1, scalar=True)
    n.out(zero, 2, scalar=True)


def quantized(n: Node, x: Variable) -> tuple[Variable, Variable, Variable]:
    """Quantize dynamically over the range of `x` and zero; returns the bytes, the scale and the zero point."""
    nothing = n.number(0.0, VarType.FP32)
    low = n.pair("min", reduced(n, "min", x, None, False), nothing)
    high = n.pair("max", reduced(n, "max", x, None, False), nothing)
    scale = n.scaled(n.pair("sub", high, low), 1 / 255)
    scale = n.pair("add", scale, n.cast(n.pair("equal", scale, nothing), VarType.FP32))
    zero = _saturated(n, half_to_even(n, n.scaled(n.pair("div", low, scale), -1.0)), VarType.UINT8)
    whole = n.pair("add", half_to_even(n, n.pair("div", x, scale)), n.cast(zero, VarType.FP32))
    return _saturated(n, whole, VarType.UINT8), scale, zero
