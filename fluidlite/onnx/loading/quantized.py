"""Numbers as bytes, and back."""

from __future__ import annotations

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...framework import Variable
from .numbers import half_to_even, reduced
from .values import Node, imports


def _along(n: Node, index: int) -> Variable:
    """A scale or a zero: of all, or of each part along an axis."""
    given = n.var(index)
    if n.rank(index) == 0 or given.shape == (1,):
        return given
    if n.rank(index) != 1 or n.attr("block_size", 0):
        raise n.fail("has scales of blocks")
    shape = [1] * n.rank()
    shape[n.attr("axis", 1) % n.rank()] = -1
    return n.op("reshape2", {"X": given}, more=["XShape"], shape=shape)


def _bytes(n: Node, x: Variable, kind: int) -> Variable:
    """Numbers as integers of a type, those outside at its ends."""
    if kind not in (VarType.UINT8, VarType.INT8):
        raise n.fail(f"makes elements of type {VarType(kind).name}")
    ends = np.iinfo(to_numpy(kind))
    return n.cast(n.op("clip", {"X": x}, min=float(ends.min), max=float(ends.max)), kind)


@imports("QuantizeLinear")
def _quantize(n: Node) -> None:
    kind = n.var(2).dtype if n.has(2) else VarType.UINT8
    x = half_to_even(n, n.pair("div", n.var(), _along(n, 1)))
    if n.has(2):
        x = n.pair("add", x, n.cast(_along(n, 2), VarType.FP32))
    n.out(_bytes(n, x, kind), scalar=n.value().scalar)


@imports("DequantizeLinear")
def _dequantize(n: Node) -> None:
    x = n.cast(n.var(), VarType.FP32)
    if n.has(2):
        x = n.pair("sub", x, n.cast(_along(n, 2), VarType.FP32))
    n.out(n.pair("mul", x, _along(n, 1)), scalar=n.value().scalar)


@imports("DynamicQuantizeLinear")
def _dynamic_quantize(n: Node) -> None:
    """From the least and the largest number, zero among them."""
    x, nothing = n.var(), n.number(0.0, VarType.FP32)
    low = n.pair("min", reduced(n, "min", x, None, False), nothing)
    high = n.pair("max", reduced(n, "max", x, None, False), nothing)
    scale = n.scaled(n.pair("sub", high, low), 1 / 255)
    scale = n.pair("add", scale, n.cast(n.pair("equal", scale, nothing), VarType.FP32))
    zero = _bytes(n, half_to_even(n, n.scaled(n.pair("div", low, scale), -1.0)), VarType.UINT8)
    whole = n.pair("add", half_to_even(n, n.pair("div", x, scale)), n.cast(zero, VarType.FP32))
    n.out(_bytes(n, whole, VarType.UINT8))
    n.out(scale, 1, scalar=True)
    n.out(zero, 2, scalar=True)
