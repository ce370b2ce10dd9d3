"""Fused operators that onnxruntime writes when it optimizes or quantizes a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.dtypes import VarType
from ...framework import Variable
from .elementwise import reduced
from .layers import convolved, pooled
from .quantized import as_bytes, quantized, without_zero
from .values import Node, imports

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
    return n.op(kind, {"X": x}, **attrs)


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
        n.out(n.op("swish", {"X": x}, beta=n.attr("alpha", 1.702)))
    else:
        n.out(n.op("gelu", {"X": x}, approximate=n.kind == "FastGelu"))


@imports(_OWN + "SkipLayerNormalization", _OWN + "SkipSimplifiedLayerNormalization")
def _normalization(n: Node) -> None:
    """Normalise the sum of two inputs and a bias; the sum is the fourth output."""
    simple = "Simplified" in n.kind
    total, bias, attrs = n.pair("add", n.var(), n.var(1)), 3 if simple else 4, {"epsilon": n.attr("epsilon")}
    total = n.pair("add", total, n.var(bias)) if n.has(bias) else total
    last = len(total.shape) - 1
    if simple:
        square = reduced(n, "mean", n.op("square", {"X": total}), [last], True)
        root = n.op("sqrt", {"X": n.scaled(square, 1.0, n.attr("epsilon"))})
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
        "QLinearSigmoid": lambda x: n.op("sigmoid", {"X": x}),
        "QLinearLeakyRelu": lambda x: n.op("leaky_relu", {"X": x}, alpha=n.attr("alpha", 0.01)),
        "QLinearSoftmax": lambda x: n.op("softmax", {"X": x}, axis=n.attr("axis", -1)),
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
