"""Operators on the bits of integers. Fluid has none: a bit is a number, 0 or 1, along one more axis."""

from __future__ import annotations

import numpy as np

from ...base.dtypes import VarType
from ...framework import Variable
from .values import Node, imports

_BITS = {VarType.UINT8: 8, VarType.INT8: 7, VarType.INT16: 15, VarType.INT32: 31, VarType.INT64: 63}
"""How many bits the integers of a type have besides the sign."""


def _kind(n: Node) -> VarType:
    kind = VarType(n.var().dtype)
    if kind not in _BITS:
        raise n.fail(f"works on bits of elements of type {kind.name}")
    return kind


def _signs(n: Node, x: Variable) -> Variable:
    """1 where a number is below zero, else 0."""
    return n.cast(n.pair("less_than", x, n.number(0, VarType.INT64)), VarType.INT64)


def _complemented(n: Node, x: Variable, signs: Variable) -> Variable:
    """`x`, or its complement -1 - x where the sign is 1."""
    return n.pair("sub", n.pair("mul", x, n.scaled(signs, -2.0, 1.0)), signs)


def _logical(n: Node, x: Variable, y: Variable) -> Variable:
    """Return AND, OR or XOR, by the kind of the node, of variables of 0 and 1."""
    product = n.pair("mul", x, y)
    if n.kind == "BitwiseAnd":
        return product
    return n.pair("sub", n.pair("add", x, y), product if n.kind == "BitwiseOr" else n.scaled(product, 2.0))


@imports("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _of_two(n: Node) -> None:
    kind, last = _kind(n), max(n.rank(), n.rank(1), 1)
    powers = n.maker.constant(2 ** np.arange(_BITS[kind], dtype="int64"))
    signs, bits = [], []
    for index in (0, 1):
        x = n.cast(n.var(index), VarType.INT64)
        axes = [max(n.rank(index), 1)]
        signs.append(_signs(n, x))
        whole, sign = (
            n.op("unsqueeze2", {"X": one}, more=["XShape"], axes=axes)
            for one in (_complemented(n, x, signs[-1]), signs[-1])
        )
        bit = n.pair("mod", n.pair("floordiv", whole, powers), n.number(2, VarType.INT64))
        differ = n.pair("sub", bit, sign)
        bits.append(n.pair("mul", differ, differ))
    sign = _logical(n, *signs)
    differ = n.pair("sub", _logical(n, *bits), n.op("unsqueeze2", {"X": sign}, more=["XShape"], axes=[last]))
    parts = n.pair("mul", n.pair("mul", differ, differ), powers)
    total = n.op("reduce_sum", {"X": parts}, dim=[last], keep_dim=False, reduce_all=False)
    scalar = n.value().scalar and n.value(1).scalar
    n.out(n.cast(_complemented(n, total, sign), kind), scalar=scalar)


@imports("BitwiseNot")
def _not(n: Node) -> None:
    kind = _kind(n)
    most = 255.0 if kind == VarType.UINT8 else -1.0
    x = n.scaled(n.cast(n.var(), VarType.INT64), -1.0, most)
    n.out(n.cast(x, kind), scalar=n.value().scalar)


@imports("BitShift")
def _shift(n: Node) -> None:
    """Shift by products with powers of 2. Of ONNX's unsigned types Fluid has bytes only."""
    if _kind(n) != VarType.UINT8:
        raise n.fail("shifts bits of signed integers")
    x, by = (n.cast(n.var(index), VarType.INT64) for index in (0, 1))
    powers = n.maker.constant(2 ** np.arange(9, dtype="int64"))
    by = n.op("unsqueeze2", {"X": n.pair("min", by, n.number(8, VarType.INT64))}, more=["XShape"],
              axes=[max(n.rank(1), 1)])  # fmt: skip
    power = n.op("gather_nd", {"X": powers, "Index": by})
    if n.attr("direction") == "RIGHT":
        x = n.pair("floordiv", x, power)
    else:
        x = n.pair("mod", n.pair("mul", x, power), n.number(256, VarType.INT64))
    n.out(n.cast(x, VarType.UINT8), scalar=n.value().scalar and n.value(1).scalar)
