"""Fused and quantized operators that onnxruntime writes when it optimizes, and rotary position embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...framework import Variable
from .elementwise import half_to_even, reduced
from .layers import convolved, pooled
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
    return n.shaped(given, shape)


def _saturated(n: Node, x: Variable, kind: int) -> Variable:
    """Floats as integers of a type, saturated to its range."""
    if kind not in (VarType.UINT8, VarType.INT8):
        raise n.fail(f"makes elements of type {VarType(kind).name}")
    ends = np.iinfo(to_numpy(kind))
    return n.cast(n.unary("clip", x, min=float(ends.min), max=float(ends.max)), kind)


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
    return n.shaped(x, [-1, *[1] * count])


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


_OWN = "com.microsoft."
_ACTIVATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Relu": ("relu", ()),
    "Sigmoid": ("sigmoid", ()),
    "Tanh": ("tanh", ()),
    "LeakyRelu": ("leaky_relu", ("alpha",)),
    "Clip": ("clip", ("min", "max")),
    "HardSigmoid": ("hard_sigmoid", ("slope", "offset")),
}


def _with_activation(n: Node, x: Variable) -> Variable:
    """Apply the activation that an attribute names."""
    name = n.attr("activation", "")
    if not name:
        return x
    if name not in _ACTIVATIONS:
        raise n.fail(f"has activation {name!r}")
    kind, names = _ACTIVATIONS[name]
    numbers = n.attr("activation_params") or []
    numbers = numbers or [n.attr(f"activation_{one}") for one in names]
    attrs: dict[str, Any] = dict(zip(names, map(float, numbers), strict=True))
    return n.unary(kind, x, **attrs)


@imports(_OWN + "FusedConv")
def _convolution(n: Node) -> None:
    out = convolved(n, n.var(), n.var(1), n.shape(1)[2:])
    out = n.op("elementwise_add", {"X": out, "Y": n.var(2)}, axis=1) if n.has(2) else out
    n.out(_with_activation(n, n.pair("add", out, n.var(3)) if n.has(3) else out))


@imports(_OWN + "FusedMatMul", _OWN + "FusedGemm")
def _product(n: Node) -> None:
    if n.attr("transBatchA", 0) or n.attr("transBatchB", 0):
        raise n.fail("transposes the batch axes (transBatchA, transBatchB)")
    x, y = (
        n.transposed(n.var(k), [*range(n.rank(k) - 2), n.rank(k) - 1, n.rank(k) - 2])
        if n.attr(name, 0)
        else n.var(k)
        for k, name in enumerate(("transA", "transB"))
    )
    if len(y.shape) == 2 < len(x.shape):
        out = n.op("mul", {"X": x, "Y": y}, x_num_col_dims=len(x.shape) - 1, y_num_col_dims=1)
        out = n.scaled(out, n.attr("alpha", 1.0))
    else:
        out = n.op("matmul", {"X": x, "Y": y}, alpha=n.attr("alpha", 1.0))
    if n.has(2):
        out = n.pair("add", out, n.scaled(n.var(2), n.attr("beta", 1.0)))
    n.out(_with_activation(n, out))


@imports(_OWN + "Gelu", _OWN + "FastGelu", _OWN + "BiasGelu", _OWN + "QuickGelu")
def _gelu(n: Node) -> None:
    x = n.pair("add", n.var(), n.var(1)) if n.has(1) else n.var()
    if n.kind == "QuickGelu":
        n.out(n.unary("swish", x, beta=n.attr("alpha", 1.702)))
    else:
        n.out(n.unary("gelu", x, approximate=n.kind == "FastGelu"))


@imports(_OWN + "SkipLayerNormalization", _OWN + "SkipSimplifiedLayerNormalization")
def _normalization(n: Node) -> None:
    """Normalise the sum of two inputs and a bias; the sum is the fourth output."""
    simple = "Simplified" in n.kind
    total, bias, attrs = n.pair("add", n.var(), n.var(1)), 3 if simple else 4, {"epsilon": n.attr("epsilon")}
    total = n.pair("add", total, n.var(bias)) if n.has(bias) else total
    last = len(total.shape) - 1
    if simple:
        square = reduced(n, "mean", n.unary("square", total), [last], True)
        root = n.unary("sqrt", n.scaled(square, 1.0, n.attr("epsilon")))
        out = n.pair("mul", n.pair("div", total, root), n.var(2))
    else:
        inputs = {"X": total, "Scale": n.var(2)} | ({"Bias": n.var(3)} if n.has(3) else {})
        out = n.op("layer_norm", inputs, "Y", more=["Mean", "Variance"], begin_norm_axis=last, **attrs)
    n.out(out)
    n.out(total, 3)


def _dequantized(n: Node, index: int) -> Variable:
    """Dequantize an input; its scale and zero point are the next two inputs."""
    return n.pair("mul", n.cast(without_zero(n, index, index + 2), VarType.FP32), n.var(index + 1))


@imports(_OWN + "QLinearAdd", _OWN + "QLinearMul")
def _pair_of_bytes(n: Node) -> None:
    as_bytes(n, n.pair("add" if n.kind == "QLinearAdd" else "mul", _dequantized(n, 0), _dequantized(n, 3)), 6)


@imports(_OWN + "QLinearConcat")
def _concatenated_bytes(n: Node) -> None:
    """The first two inputs are the scale and zero point of the result."""
    parts = [_dequantized(n, index) for index in range(2, len(n), 3)]
    as_bytes(n, n.op("concat", {"X": parts}, axis=n.attr("axis")), 0)


@imports(
    *(_OWN + kind for kind in ("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax",
                               "QLinearAveragePool", "QLinearGlobalAveragePool"))
)  # fmt: skip
def _function_of_bytes(n: Node) -> None:
    if n.attr("channels_last", 0):
        raise n.fail("has channels last")
    if n.kind == "QLinearSoftmax" and n.attr("opset") < 13:
        raise n.fail("normalises over all axes from one on together")
    functions: dict[str, Callable[[Variable], Variable]] = {
        "QLinearSigmoid": lambda x: n.unary("sigmoid", x),
        "QLinearLeakyRelu": lambda x: n.unary("leaky_relu", x, alpha=n.attr("alpha", 0.01)),
        "QLinearSoftmax": lambda x: n.unary("softmax", x, axis=n.attr("axis", -1)),
        "QLinearAveragePool": lambda x: pooled(n, x),
        "QLinearGlobalAveragePool": lambda x: pooled(n, x),
    }
    as_bytes(n, functions[n.kind](_dequantized(n, 0)), 3)


@imports(_OWN + "QGemm")
def _product_of_bytes(n: Node) -> None:
    """The bias is in units of the product of both scales. Without an output scale the result stays float."""
    x, y = without_zero(n, 0, 2), without_zero(n, 3, 5)
    sides: dict[str, Any] = {
        "transpose_X": bool(n.attr("transA", 0)),
        "transpose_Y": bool(n.attr("transB", 0)),
    }
    total = n.op("matmul", {"X": x, "Y": y}, **sides)
    if n.has(6):
        total = n.pair("add", total, n.cast(n.var(6), VarType.FP64))
    unit = n.scaled(n.pair("mul", n.var(1), n.var(4)), n.attr("alpha", 1.0))
    total = n.pair("mul", n.cast(total, VarType.FP32), unit)
    if n.has(7):
        as_bytes(n, total, 7)
    else:
        n.out(total)


@imports(_OWN + "MatMulIntegerToFloat")
def _numbers_from_bytes(n: Node) -> None:
    """Inputs are two matrices, their scales, their zero points and a bias."""
    x, y = without_zero(n, 0, 4), without_zero(n, 1, 5)
    total = n.cast(n.op("matmul", {"X": x, "Y": y}), VarType.FP32)
    total = n.pair("mul", total, n.pair("mul", n.var(2), n.var(3)))
    n.out(n.pair("add", total, n.var(6)) if n.has(6) else total)


@imports(_OWN + "DynamicQuantizeMatMul")
def _product_by_bytes(n: Node) -> None:
    """A dynamically quantized float matrix times a quantized one; inputs are both, a scale, a zero point and a bias."""
    x, scale, zero = quantized(n, n.var())
    less = n.pair("sub", n.cast(x, VarType.FP64), n.cast(zero, VarType.FP64))
    total = n.cast(n.op("matmul", {"X": less, "Y": without_zero(n, 1, 3)}), VarType.FP32)
    total = n.pair("mul", total, n.pair("mul", scale, n.var(2)))
    n.out(n.pair("add", total, n.var(4)) if n.has(4) else total)


@imports("RotaryEmbedding")
def _rotated(n: Node) -> None:
    """Inputs: [B, heads, T, D] or [B, T, heads * D], cosines and sines [B, T, D / 2], or [count, D / 2] and indices."""
    flat = n.rank() == 3
    x, (cosines, sines) = n.var(), (n.var(1), n.var(2))
    if n.has(3):
        cosines, sines = (_rows_at(n, table) for table in (cosines, sines))
    if flat:
        heads = n.attr("num_heads", 0)
        if heads < 1 or n.shape()[2] < 1:
            raise n.fail("has an input of rank 3, and neither num_heads nor a known head size")
        x = n.shaped(x, [0, 0, heads, n.shape()[2] // heads])
    # The same table for every head.
    cosines, sines = (n.unsqueezed(table, [2 if flat else 1]) for table in (cosines, sines))
    size, far = n.attr("rotary_embedding_dim", 0) or x.shape[-1], 2**31 - 1
    if size < 1:
        raise n.fail("rotates an axis whose size is unknown until run time")

    def part(start: int, end: int, step: int = 1) -> Variable:
        attrs: dict[str, Any] = {"axes": [3], "starts": [start], "ends": [end]}
        if step == 1:
            return n.op("slice", {"Input": x}, **attrs)
        return n.op("strided_slice", {"Input": x}, strides=[step], **attrs)

    mixed = bool(n.attr("interleaved", 0))
    one, other = (part(k, size, 2) if mixed else part(k * size // 2, (k + 1) * size // 2) for k in (0, 1))
    sides = [
        n.pair("sub", n.pair("mul", one, cosines), n.pair("mul", other, sines)),
        n.pair("add", n.pair("mul", one, sines), n.pair("mul", other, cosines)),
    ]
    if mixed:
        whole = n.op("stack", {"X": sides}, "Y", axis=4)
        sides = [n.shaped(whole, [0, 0, 0, size])]
    if size < x.shape[-1]:
        sides.append(part(size, far))
    out = n.op("concat", {"X": sides}, axis=3) if len(sides) > 1 else sides[0]
    n.out(n.shaped(out, [0, 0, n.shape()[2]]) if flat else out)


def _rows_at(n: Node, table: Variable) -> Variable:
    """The rows of a table at the positions [B, T]."""
    places = n.unsqueezed(n.var(3), [2])
    return n.op("gather_nd", {"X": table, "Index": places})
