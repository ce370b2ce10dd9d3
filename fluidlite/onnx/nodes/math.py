"""Unary and binary elementwise operators, reductions, and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ..graph import EXPORTERS, Exported, exports

_SAME = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs",
    "ceil": "Ceil", "floor": "Floor", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "reciprocal": "Reciprocal", "sign": "Sign", "erf": "Erf",
    "softplus": "Softplus", "softsign": "Softsign", "logical_not": "Not", "assign": "Identity",
}  # fmt: skip
"""Operators that are one node of one input without attributes."""

_WITH_ATTRS: dict[str, tuple[str, dict[str, str]]] = {
    "leaky_relu": ("LeakyRelu", {"alpha": "alpha"}),
    "elu": ("Elu", {"alpha": "alpha"}),
    "selu": ("Selu", {"alpha": "alpha", "gamma": "scale"}),
    "hard_sigmoid": ("HardSigmoid", {"alpha": "slope", "beta": "offset"}),
    "thresholded_relu": ("ThresholdedRelu", {"alpha": "threshold"}),
    "softmax": ("Softmax", {"axis": "axis"}),
}
"""Operators that are one node with attributes: ONNX's name of each, and Fluid's."""

_PAIRS = {
    "elementwise_add": "Add", "elementwise_sub": "Sub", "elementwise_mul": "Mul", "elementwise_div": "Div",
    "elementwise_max": "Max", "elementwise_min": "Min", "elementwise_pow": "Pow",
    "equal": "Equal", "less_than": "Less", "less_equal": "LessOrEqual", "greater_than": "Greater",
    "greater_equal": "GreaterOrEqual", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
}  # fmt: skip


def _formula(kind: str) -> Callable[[Callable[[Exported, str], str]], Callable[[Exported, str], str]]:
    """Register an operator from X to Out by the function that makes the value of Out."""

    def add(function: Callable[[Exported, str], str]) -> Callable[[Exported, str], str]:
        EXPORTERS[kind] = lambda o: function(o, o.input("X"))
        return function

    return add


def scalar(o: Exported, number: Any, slot: str = "X") -> str:
    """A number of the element type of an input."""
    return o.constant(number, to_numpy(o.dtype(slot)))


@exports(*_SAME)
def _same(o: Exported) -> str:
    return o.node(_SAME[o.op.type], o.input("X"))


@exports(*_WITH_ATTRS)
def _with_attrs(o: Exported) -> str:
    kind, attrs = _WITH_ATTRS[o.op.type]
    return o.node(kind, o.input("X"), **{name: o.attr(own) for name, own in attrs.items()})


_formula("square")(lambda o, x: o.node("Mul", x, x))
_formula("rsqrt")(lambda o, x: o.node("Reciprocal", o.node("Sqrt", x)))
_formula("logsigmoid")(lambda o, x: o.node("Neg", o.node("Softplus", o.node("Neg", x))))
_formula("tanh_shrink")(lambda o, x: o.node("Sub", x, o.node("Tanh", x)))
_formula("pow")(lambda o, x: o.node("Pow", x, scalar(o, o.attr("factor"))))
_formula("swish")(
    lambda o, x: o.node("Mul", x, o.node("Sigmoid", o.node("Mul", x, scalar(o, o.attr("beta")))))
)
_formula("relu6")(lambda o, x: o.node("Clip", x, scalar(o, 0), scalar(o, o.attr("threshold"))))
_formula("brelu")(lambda o, x: o.node("Clip", x, scalar(o, o.attr("t_min")), scalar(o, o.attr("t_max"))))
_formula("increment")(lambda o, x: o.node("Add", x, scalar(o, o.attr("step"))))


@_formula("round")
def _round(o: Exported, x: str) -> str:
    """Round halves away from zero; ONNX's Round takes them to the even neighbour."""
    up = o.node("Floor", o.node("Add", o.node("Abs", x), scalar(o, 0.5)))
    return o.node("Mul", o.node("Sign", x), up)


@_formula("stanh")
def _stanh(o: Exported, x: str) -> str:
    inner = o.node("Tanh", o.node("Mul", x, scalar(o, o.attr("scale_a"))))
    return o.node("Mul", inner, scalar(o, o.attr("scale_b")))


@_formula("hard_swish")
def _hard_swish(o: Exported, x: str) -> str:
    inner = o.node(
        "Clip", o.node("Add", x, scalar(o, o.attr("offset"))), scalar(o, 0), scalar(o, o.attr("threshold"))
    )
    return o.node("Div", o.node("Mul", x, inner), scalar(o, o.attr("scale")))


@_formula("gelu")
def _gelu(o: Exported, x: str) -> str:
    if o.attr("approximate"):
        cube = o.node("Mul", o.node("Mul", o.node("Mul", x, x), x), scalar(o, 0.044715))
        inner = o.node("Tanh", o.node("Mul", o.node("Add", x, cube), scalar(o, np.sqrt(2 / np.pi))))
    else:
        inner = o.node("Erf", o.node("Mul", x, scalar(o, np.sqrt(0.5))))
    return o.node("Mul", o.node("Mul", x, scalar(o, 0.5)), o.node("Add", inner, scalar(o, 1)))


@exports("scale")
def _scale(o: Exported) -> str:
    factor = o.input("ScaleTensor") if o.has("ScaleTensor") else scalar(o, o.attr("scale"))
    result, bias = o.input("X"), o.attr("bias")
    if bias and not o.attr("bias_after_scale"):
        result = o.node("Add", result, scalar(o, bias))
    if o.has("ScaleTensor") or o.attr("scale") != 1:
        result = o.node("Mul", result, factor)
    if bias and o.attr("bias_after_scale"):
        result = o.node("Add", result, scalar(o, bias))
    return o.node("Identity", result) if result == o.input("X") else result


@exports("clip")
def _clip(o: Exported) -> str:
    ends = [
        o.node("Reshape", o.input(slot), o.ints()) if o.has(slot) else scalar(o, o.attr(name))
        for slot, name in (("Min", "min"), ("Max", "max"))
    ]
    return o.node("Clip", o.input("X"), *ends)


@exports("cast")
def _cast(o: Exported) -> str:
    return o.cast(o.input("X"), VarType(o.attr("out_dtype")))


@exports("dropout")
def _dropout(o: Exported) -> None:
    if not o.attr("is_test"):
        raise o.fail("draws random numbers: export a program for tests (clone(for_test=True))")
    if o.attr("dropout_implementation") == "upscale_in_train":
        o.out("Out", o.node("Identity", o.input("X")))
    else:
        o.out("Out", o.node("Mul", o.input("X"), scalar(o, 1 - o.attr("dropout_prob"))))


def aligned(o: Exported) -> tuple[str, str]:
    """The values of X and Y, with Y reshaped so that its dimensions are aligned with those of X from `axis` on."""
    x, y = o.input("X"), o.input("Y")
    axis, missing = o.attr("axis"), o.rank("X") - o.rank("Y")
    trailing = missing - axis if axis is not None and axis >= 0 else 0
    if trailing > 0:
        y = o.node("Unsqueeze", y, o.ints(*range(o.rank("Y"), o.rank("Y") + trailing)))
    return x, y


@exports(*_PAIRS)
def _pair(o: Exported) -> str:
    return o.node(_PAIRS[o.op.type], *aligned(o))


@exports("not_equal")
def _not_equal(o: Exported) -> str:
    return o.node("Not", o.node("Equal", *aligned(o)))


@exports("elementwise_mod")
def _mod(o: Exported) -> None:
    x, y = aligned(o)
    if not to_numpy(o.dtype("X")).kind == "f":
        o.out("Out", o.node("Mod", x, y, fmod=1))  # the sign of X
        return
    o.out("Out", o.node("Sub", x, o.node("Mul", o.node("Floor", o.node("Div", x, y)), y)))


@exports("sum")
def _sum(o: Exported) -> str:
    values = o.inputs("X")
    total = values[0] if len(values) > 1 else o.node("Identity", values[0])
    for value in values[1:]:
        total = o.node("Add", total, value)
    return total


_REDUCED = {
    "reduce_sum": "ReduceSum", "reduce_mean": "ReduceMean", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd", "reduce_all": "ReduceMin", "reduce_any": "ReduceMax",
}  # fmt: skip


@exports(*_REDUCED)
def _reduce(o: Exported) -> str:
    """A full reduction has shape [1] in Fluid, and [] in ONNX."""
    kind, rank, x = _REDUCED[o.op.type], o.rank("X"), o.input("X")
    dims = sorted(axis % rank for axis in np.atleast_1d(o.attr("dim")).tolist())
    every = o.attr("reduce_all") or len(dims) in (0, rank)
    logical = o.op.type in ("reduce_all", "reduce_any")
    if logical:
        x = o.cast(x, VarType.INT32)
    dims, keep = list(range(rank)) if every else dims, int(bool(o.attr("keep_dim")))
    if kind == "ReduceSum":
        result = o.node(kind, x, o.ints(*dims), keepdims=keep)
    else:
        result = o.node(kind, x, axes=dims, keepdims=keep)
    if logical:
        result = o.cast(result, VarType.BOOL)
    return o.node("Reshape", result, o.ints(1)) if every and not keep else result


@exports("mean")
def _mean(o: Exported) -> str:
    return o.node("Reshape", o.node("ReduceMean", o.input("X"), keepdims=0), o.ints(1))


def transposed(o: Exported, value: str, rank: int) -> str:
    """The last two dimensions exchanged."""
    return o.node("Transpose", value, perm=[*range(rank - 2), rank - 1, rank - 2])


@exports("matmul")
def _matmul(o: Exported) -> str:
    sides = []
    for slot in ("X", "Y"):
        value, rank = o.input(slot), o.rank(slot)
        if rank == 1 and o.attr(f"transpose_{slot}"):
            raise o.fail(f"multiplies a transposed {slot} of one dimension")
        sides.append(transposed(o, value, rank) if o.attr(f"transpose_{slot}") else value)
    product = o.node("MatMul", *sides)
    if o.attr("alpha") != 1:
        product = o.node("Mul", product, scalar(o, o.attr("alpha")))
    if o.rank("X") == o.rank("Y") == 1:
        product = o.node("Reshape", product, o.ints(1))
    return product


@exports("mul")
def _mul(o: Exported) -> str:
    """Both sides as matrices; the result has the dimensions of X that are rows, and those of Y that are columns."""
    x, y = o.input("X"), o.input("Y")
    rows, columns = o.attr("x_num_col_dims"), o.attr("y_num_col_dims")
    if rows < o.rank("X") - 1:
        x = o.node("Reshape", x, o.ints(*[0] * rows, -1))
    trailing = o.static("Y", *range(columns, o.rank("Y"))) if o.rank("Y") > 2 else []
    if o.rank("Y") > 2:
        y = o.node("Reshape", y, o.ints(-1, int(np.prod(trailing))))
    product = o.node("MatMul", x, y)
    if len(trailing) > 1:
        product = o.node("Reshape", product, o.ints(*[0] * rows, *trailing))
    return product


@exports("softmax_with_cross_entropy")
def _softmax_with_cross_entropy(o: Exported) -> None:
    """Labels that are ignored cost nothing."""
    logits, axis = o.input("Logits"), o.attr("axis") % o.rank("Logits")
    logs = o.node("LogSoftmax", logits, axis=axis)
    o.out("Softmax", o.node("Softmax", logits, axis=axis))
    if o.attr("soft_label"):
        summed = o.node("ReduceSum", o.node("Mul", o.input("Label"), logs), o.ints(axis), keepdims=1)
        o.out("Loss", o.node("Neg", summed))
        return
    shape = o.node("Shape", o.node("ReduceMax", logits, axes=[axis], keepdims=1))
    label = o.cast(o.node("Reshape", o.input("Label"), shape), VarType.INT64)
    ignored = o.node("Equal", label, o.constant(o.attr("ignore_index")))
    picked = o.node("GatherElements", logs, o.node("Where", ignored, o.constant(0), label), axis=axis)
    o.out("Loss", o.node("Where", ignored, scalar(o, 0, "Logits"), o.node("Neg", picked)))


@exports("elementwise_floordiv")
def _floordiv(o: Exported) -> str:
    """Integer division truncates towards 0, as ONNX's Div does."""
    quotient = o.node("Div", *aligned(o))
    return o.node("Floor", quotient) if to_numpy(o.dtype("X")).kind == "f" else quotient
