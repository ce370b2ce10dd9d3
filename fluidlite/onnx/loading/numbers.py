"""Numbers one by one, in pairs, reduced, and products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from onnx import helper

from ...base.dtypes import VarType, to_vartype
from .values import Node, imports

_SAME = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Abs": "abs",
    "Ceil": "ceil", "Floor": "floor", "Sin": "sin", "Cos": "cos", "Asin": "asin", "Acos": "acos", "Atan": "atan",
    "Sinh": "sinh", "Cosh": "cosh", "Reciprocal": "reciprocal", "Sign": "sign", "Erf": "erf", "Softplus": "softplus",
    "Softsign": "softsign", "Not": "logical_not", "Tan": "tan", "HardSwish": "hard_swish",
}  # fmt: skip
_PAIRS = {
    "Add": "elementwise_add", "Sub": "elementwise_sub", "Mul": "elementwise_mul", "Div": "elementwise_div",
    "Max": "elementwise_max", "Min": "elementwise_min", "Pow": "elementwise_pow", "Mod": "elementwise_mod",
    "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "Equal": "equal", "Less": "less_than",
    "LessOrEqual": "less_equal", "Greater": "greater_than", "GreaterOrEqual": "greater_equal", "Sum": "elementwise_add",
}  # fmt: skip
_TESTS = frozenset("Equal Less LessOrEqual Greater GreaterOrEqual".split())
_REDUCED = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
}


@imports(*_SAME)
def _same(n: Node) -> None:
    n.out(n.op(_SAME[n.kind], {"X": n.var()}), scalar=n.value().scalar)


@imports("Identity", "Dropout")
def _identity(n: Node) -> None:
    n.maker.values[n.node.output[0]] = replace(n.value(), own=False)


@imports("LeakyRelu", "Elu", "Selu", "HardSigmoid", "ThresholdedRelu")
def _with_attrs(n: Node) -> None:
    kind, attrs = {
        "LeakyRelu": ("leaky_relu", {"alpha": n.attr("alpha", 0.01)}),
        "Elu": ("elu", {"alpha": n.attr("alpha", 1.0)}),
        "Selu": ("selu", {"alpha": n.attr("alpha", 1.6732632), "scale": n.attr("gamma", 1.0507010)}),
        "HardSigmoid": ("hard_sigmoid", {"slope": n.attr("alpha", 0.2), "offset": n.attr("beta", 0.5)}),
        "ThresholdedRelu": ("thresholded_relu", {"threshold": n.attr("alpha", 1.0)}),
    }[n.kind]
    n.out(n.op(kind, {"X": n.var()}, **attrs))


@imports("Mish")
def _mish(n: Node) -> None:
    n.out(n.op("elementwise_mul", {"X": n.var(), "Y": n.op("tanh", {"X": n.op("softplus", {"X": n.var()})})}))


@imports("Neg")
def _neg(n: Node) -> None:
    n.out(n.op("scale", {"X": n.var()}, scale=-1.0), scalar=n.value().scalar)


@imports("Round")
def _round(n: Node) -> None:
    raise n.fail("rounds halves to even numbers")


@imports("Gelu")
def _gelu(n: Node) -> None:
    n.out(n.op("gelu", {"X": n.var()}, approximate=n.attr("approximate", "none") == "tanh"))


@imports("Softmax", "LogSoftmax")
def _softmax(n: Node) -> None:
    out = n.op("softmax", {"X": n.var()}, axis=n.attr("axis", -1))
    n.out(n.op("log", {"X": out}) if n.kind == "LogSoftmax" else out)


@imports("Clip")
def _clip(n: Node) -> None:
    ends = [float(n.array(i)) if n.has(i) else n.attr(name) for i, name in ((1, "min"), (2, "max"))]
    far = float(np.finfo("float32").max)
    low, high = (-far if ends[0] is None else ends[0]), (far if ends[1] is None else ends[1])
    n.out(n.op("clip", {"X": n.var()}, min=low, max=high), scalar=n.value().scalar)


@imports("Cast")
def _cast(n: Node) -> None:
    kind = to_vartype(helper.tensor_dtype_to_np_dtype(n.attr("to")))
    if n.value().sizes is not None and kind == VarType.INT64:
        return _identity(n)
    n.out(n.op("cast", {"X": n.var()}, in_dtype=n.var().dtype, out_dtype=kind), scalar=n.value().scalar)
    return None


@imports(*_PAIRS)
def _pair(n: Node) -> None:
    """Both sides may be spread."""
    scalar = all(n.value(i).scalar for i in range(len(n)))
    total = n.var()
    if n.kind == "Mod" and n.dtype().kind == "f":
        raise n.fail("is not of integers")
    for index in range(1, len(n)):
        if n.kind in _TESTS and n.dtype().kind == "b":
            raise n.fail("compares truths")
        total = n.op(_PAIRS[n.kind], {"X": total, "Y": n.var(index)}, axis=-1)
    if n.kind == "Mod" and not n.attr("fmod", 0):
        # Fluid's has the sign of the first, this one that of the second.
        total = n.op("elementwise_add", {"X": total, "Y": n.var(1)}, axis=-1)
        total = n.op("elementwise_mod", {"X": total, "Y": n.var(1)}, axis=-1)
    n.out(total, scalar=scalar)


@imports("Where")
def _where(n: Node) -> None:
    """Operands are brought to one shape first."""
    shapes = [n.shape(i) for i in range(3)]
    if len({*shapes}) == 1:
        n.out(n.op("where", {"Condition": n.var(0), "X": n.var(1), "Y": n.var(2)}))
        return
    dtype = n.var(1).dtype
    if n.dtype(1).kind != "f":
        raise n.fail(f"chooses among integers of shapes {shapes}")
    zeros = n.op("scale", {"X": n.op("elementwise_add", {"X": n.var(1), "Y": n.var(2)}, axis=-1)}, scale=0.0)
    chosen = n.op("cast", {"X": n.var(0)}, in_dtype=VarType.BOOL, out_dtype=dtype)
    zeros = n.op("elementwise_mul", {"X": chosen, "Y": zeros}, axis=-1)
    zeros = n.op("fill_any_like", {"X": zeros}, value=0.0, dtype=int(dtype))
    sides = [n.op("elementwise_add", {"X": zeros, "Y": n.var(i)}, axis=-1) for i in (1, 2)]
    whole = n.op("elementwise_add", {"X": zeros, "Y": chosen}, axis=-1)
    condition = n.op("cast", {"X": whole}, in_dtype=dtype, out_dtype=VarType.BOOL)
    n.out(n.op("where", {"Condition": condition, "X": sides[0], "Y": sides[1]}))


@imports(*_REDUCED)
def _reduce(n: Node) -> None:
    axes, keep = n.list_of("axes", 1), bool(n.attr("keepdims", 1))
    if axes == [] and n.attr("noop_with_empty_axes", 0):
        return _identity(n)
    every = not axes or len(axes) == n.rank()
    attrs: dict[str, Any] = {"dim": axes or [0], "keep_dim": keep, "reduce_all": every}
    n.out(n.op("reduce_" + _REDUCED[n.kind], {"X": n.var()}, **attrs), scalar=every and not keep)
    return None


@imports("MatMul")
def _matmul(n: Node) -> None:
    if n.rank(1) == 2 and n.rank(0) > 2:
        n.out(n.op("mul", {"X": n.var(), "Y": n.var(1)}, x_num_col_dims=n.rank() - 1, y_num_col_dims=1))
        return
    both = n.rank() == n.rank(1) == 1
    n.out(n.op("matmul", {"X": n.var(), "Y": n.var(1)}), scalar=both)


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
