"""Unary, binary and bitwise elementwise nodes, and reductions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import helper

from ...base.dtypes import VarType, to_vartype
from ...framework import Variable
from .indexing import axis_indices
from .shapes import reshaped, sizes_of
from .values import Node, imports

_SAME = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Abs": "abs",
    "Ceil": "ceil", "Floor": "floor", "Sin": "sin", "Cos": "cos", "Asin": "asin", "Acos": "acos", "Atan": "atan",
    "Sinh": "sinh", "Cosh": "cosh", "Reciprocal": "reciprocal", "Sign": "sign", "Erf": "erf", "Softplus": "softplus",
    "Softsign": "softsign", "Not": "logical_not", "Tan": "tan", "HardSwish": "hard_swish",
}  # fmt: skip
_PAIRS = {
    "Add": "elementwise_add", "Sub": "elementwise_sub", "Mul": "elementwise_mul", "Div": "elementwise_div",
    "Max": "elementwise_max", "Min": "elementwise_min", "Mean": "elementwise_add",
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
    n.out(n.unary(_SAME[n.kind], n.var()), scalar=n.value().scalar)


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
    n.out(n.unary(kind, n.var(), **attrs))


@imports("Mish")
def _mish(n: Node) -> None:
    n.out(n.pair("mul", n.var(), n.unary("tanh", n.unary("softplus", n.var()))))


@imports("Swish")
def _swish(n: Node) -> None:
    n.out(n.unary("swish", n.var(), beta=n.attr("alpha", 1.0)))


@imports("RMSNormalization")
def _root_mean_square(n: Node) -> None:
    x, first = n.var(), n.attr("axis", -1) % n.rank()
    square = n.unary("reduce_mean", n.unary("square", x), dim=list(range(first, n.rank())), keep_dim=True)
    root = n.unary("sqrt", n.scaled(square, 1.0, n.attr("epsilon", 1e-5)))
    n.out(n.pair("mul", n.pair("div", x, root), n.var(1)))


@imports("Celu")
def _celu(n: Node) -> None:
    alpha = n.attr("alpha", 1.0)
    n.out(n.scaled(n.unary("elu", n.scaled(n.var(), 1 / alpha), alpha=1.0), alpha))


@imports("Shrink")
def _shrink(n: Node) -> None:
    x, far, bias = n.var(), n.attr("lambd", 0.5), n.attr("bias", 0.0)
    near = n.filled(x, 0.0, x.dtype)
    below = n.choose(n.pair("less_than", x, n.number(-far, x.dtype)), n.scaled(x, 1.0, bias), near)
    n.out(n.choose(n.pair("greater_than", x, n.number(far, x.dtype)), n.scaled(x, 1.0, -bias), below))


@imports("Asinh", "Acosh", "Atanh")
def _inverse_hyperbolic(n: Node) -> None:
    """Asinh, Acosh and Atanh by log1p, which is accurate for small numbers."""
    x = n.var()
    if n.kind == "Atanh":
        both = [n.unary("log1p", side) for side in (x, n.scaled(x, -1.0))]
        n.out(n.scaled(n.pair("sub", *both), 0.5), scalar=n.value().scalar)
        return
    if n.kind == "Acosh":
        above = n.scaled(x, 1.0, -1.0)
        root = n.unary("sqrt", n.pair("mul", above, n.scaled(x, 1.0, 1.0)))
        n.out(n.unary("log1p", n.pair("add", above, root)), scalar=n.value().scalar)
        return
    size, square = n.unary("abs", x), n.unary("square", x)
    root = n.scaled(n.unary("sqrt", n.scaled(square, 1.0, 1.0)), 1.0, 1.0)
    logarithm = n.unary("log1p", n.pair("add", size, n.pair("div", square, root)))
    n.out(n.pair("mul", n.unary("sign", x), logarithm), scalar=n.value().scalar)


def half_to_even(n: Node, x: Variable) -> Variable:
    """Round halves to even; Fluid's `round` takes them away from zero."""
    below = n.unary("floor", x)
    half = n.pair("equal", n.pair("sub", x, below), n.number(0.5, x.dtype))
    even = n.scaled(n.unary("round", n.scaled(x, 0.5)), 2.0)
    return n.choose(half, even, n.unary("round", x))


@imports("IsNaN", "IsInf")
def _is_special(n: Node) -> None:
    x = n.var()
    if n.kind == "IsNaN":
        n.out(n.pair("not_equal", x, x), scalar=n.value().scalar)
        return
    ends = [("detect_positive", 1.0), ("detect_negative", -1.0)]
    found = [n.pair("equal", x, n.number(sign * np.inf, x.dtype)) for name, sign in ends if n.attr(name, 1)]
    n.out(n.pair("logical_or", found[0], found[-1]), scalar=n.value().scalar)


@imports("Neg")
def _neg(n: Node) -> None:
    n.out(n.unary("scale", n.var(), scale=-1.0), scalar=n.value().scalar)


@imports("Round")
def _round(n: Node) -> None:
    n.out(half_to_even(n, n.var()), scalar=n.value().scalar)


@imports("Gelu")
def _gelu(n: Node) -> None:
    n.out(n.unary("gelu", n.var(), approximate=n.attr("approximate", "none") == "tanh"))


@imports("Softmax", "LogSoftmax", "Hardmax")
def _softmax(n: Node) -> None:
    """Before opset 13 over all axes from `axis` on together."""
    x, axis, together = n.var(), n.attr("axis", 1 if n.maker.opset < 13 else -1), False
    if n.maker.opset < 13 and axis % n.rank() != n.rank() - 1:
        x, axis, together = n.op("flatten2", {"X": x}, more=["XShape"], axis=axis % n.rank()), 1, True
    if n.kind == "Softmax":
        out = n.unary("softmax", x, axis=axis)
    elif n.kind == "LogSoftmax":
        less = n.pair("sub", x, reduced(n, "max", x, [axis], True))
        total = reduced(n, "sum", n.unary("exp", less), [axis], True)
        out = n.pair("sub", less, n.unary("log", total))
    else:
        first = n.unary("arg_max", x, axis=axis, keepdims=True)
        out = n.cast(n.pair("equal", axis_indices(n, x, axis), first), x.dtype)
    n.out(reshaped(n, out, sizes_of(n)) if together else out)


@imports("MeanVarianceNormalization")
def _mean_variance(n: Node) -> None:
    x, axes = n.var(), [axis % n.rank() for axis in n.attr("axes") or [0, 2, 3]]
    less = n.pair("sub", x, reduced(n, "mean", x, axes, True))
    spread = n.unary("sqrt", reduced(n, "mean", n.unary("square", less), axes, True))
    n.out(n.pair("div", less, n.scaled(spread, 1.0, 1e-9)))


@imports("Clip")
def _clip(n: Node) -> None:
    if any(n.has(i) and n.value(i).array is None for i in (1, 2)):
        x = n.var()
        for index, kind in ((1, "max"), (2, "min")):
            x = n.pair(kind, x, n.var(index)) if n.has(index) else x
        n.out(x, scalar=n.value().scalar)
        return
    ends = [float(n.array(i)) if n.has(i) else n.attr(name) for i, name in ((1, "min"), (2, "max"))]
    far = float(np.finfo("float32").max)
    low, high = (-far if ends[0] is None else ends[0]), (far if ends[1] is None else ends[1])
    n.out(n.unary("clip", n.var(), min=low, max=high), scalar=n.value().scalar)


@imports("Cast", "CastLike")
def _cast(n: Node) -> None:
    wanted = n.dtype(1) if n.kind == "CastLike" else helper.tensor_dtype_to_np_dtype(n.attr("to"))
    try:
        kind = to_vartype(wanted)
    except ValueError:
        raise n.fail(f"makes elements of type {wanted}, which Fluid has not") from None
    if n.value().sizes is not None and kind == VarType.INT64:
        return _identity(n)
    n.out(n.unary("cast", n.var(), in_dtype=n.var().dtype, out_dtype=kind), scalar=n.value().scalar)
    return None


@imports(*_PAIRS)
def _pair(n: Node) -> None:
    """A binary elementwise node; both operands may be broadcast."""
    scalar = all(n.value(i).scalar for i in range(len(n)))
    total = n.var()
    for index in range(1, len(n)):
        if n.kind in _TESTS and n.dtype().kind == "b":
            if n.kind != "Equal":
                raise n.fail("compares booleans")
            total = n.unary("logical_not", n.pair("logical_xor", total, n.var(index)))
        else:
            total = n.pair(_PAIRS[n.kind], total, n.var(index))
    if n.kind == "Mean":
        total = n.scaled(total, 1 / len(n))
    n.out(total, scalar=scalar)


@imports("Mod")
def _mod(n: Node) -> None:
    x, y = n.var(), n.var(1)
    if n.dtype().kind == "f":
        # Fluid's has the sign of the divisor.
        left = n.pair("mod", n.unary("abs", x), n.unary("abs", y))
        rest = n.pair("mul", left, n.unary("sign", x))
    else:
        rest = n.pair("mod", x, y)
        if not n.attr("fmod", 0):
            # Fluid's has the sign of the dividend, ONNX's that of the divisor.
            rest = n.pair("mod", n.pair("add", rest, y), y)
    n.out(rest, scalar=n.value().scalar and n.value(1).scalar)


@imports("Pow")
def _pow(n: Node) -> None:
    """Pow in the element type of the base."""
    x, y, kind = n.var(), n.var(1), n.var().dtype
    through = VarType.FP32 if n.dtype().kind != "f" and n.dtype(1).kind == "f" else kind
    power = n.pair("pow", n.cast(x, through), n.cast(y, through))
    n.out(n.cast(power, kind), scalar=n.value().scalar and n.value(1).scalar)


@imports("Where")
def _where(n: Node) -> None:
    """Where, with operands broadcast to one shape first."""
    given = [n.var(i) for i in range(3)]
    kind = through = given[1].dtype
    shapes = [n.shape(i) for i in range(3)]
    if len({*shapes}) > 1:
        if kind == VarType.BOOL:
            through = VarType.INT32
        truth = [n.cast(given[0], through), n.cast(given[1], through), n.cast(given[2], through)]
        whole = n.pair("add", n.pair("add", truth[0], truth[1]), truth[2])
        zeros = n.filled(whole, 0.0, through)
        given = [n.pair("add", zeros, operand) for operand in truth]
        given[0] = n.cast(given[0], VarType.BOOL)
    n.out(n.cast(n.choose(*given), kind), scalar=all(n.value(i).scalar for i in range(3)))


def reduced(n: Node, kind: str, x: Variable, axes: list[int] | None, keep: bool) -> Variable:
    every = not axes or len(axes) == n.rank()
    return n.unary(f"reduce_{kind}", x, dim=axes or [0], keep_dim=keep, reduce_all=every)


@imports(*_REDUCED, "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def _reduce(n: Node) -> None:
    axes, keep, x = n.list_of("axes", 1), bool(n.attr("keepdims", 1)), n.var()
    if not axes and n.attr("noop_with_empty_axes", 0):
        if n.kind not in _REDUCED:
            raise n.fail("has no axes to reduce")
        return _identity(n)
    if n.kind in _REDUCED:
        out = reduced(n, _REDUCED[n.kind], x, axes, keep)
    elif n.kind == "ReduceLogSumExp":
        most = reduced(n, "max", x, axes, True)
        total = reduced(n, "sum", n.unary("exp", n.pair("sub", x, most)), axes, keep)
        out = n.pair("add", n.unary("log", total), most if keep else reduced(n, "max", x, axes, False))
    else:
        before = {"ReduceL1": "abs", "ReduceL2": "square", "ReduceSumSquare": "square"}.get(n.kind)
        out = reduced(n, "sum", n.unary(before, x) if before else x, axes, keep)
        after = {"ReduceL2": "sqrt", "ReduceLogSum": "log"}.get(n.kind)
        out = n.unary(after, out) if after else out
    n.out(out, scalar=(not axes or len(axes) == n.rank()) and not keep)
    return None


@imports("LpNormalization")
def _lp_normalization(n: Node) -> None:
    """LpNormalization; vectors of norm zero stay zero."""
    x, axis = n.var(), n.attr("axis", -1)
    if n.attr("p", 2) == 1:
        size = reduced(n, "sum", n.unary("abs", x), [axis], True)
    else:
        size = n.unary("sqrt", reduced(n, "sum", n.unary("square", x), [axis], True))
    nothing = n.cast(n.pair("equal", size, n.number(0.0, x.dtype)), x.dtype)
    n.out(n.pair("div", x, n.pair("add", size, nothing)))


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
        whole, sign = (n.unsqueezed(one, axes) for one in (_complemented(n, x, signs[-1]), signs[-1]))
        bit = n.pair("mod", n.pair("floordiv", whole, powers), n.number(2, VarType.INT64))
        differ = n.pair("sub", bit, sign)
        bits.append(n.pair("mul", differ, differ))
    sign = _logical(n, *signs)
    differ = n.pair("sub", _logical(n, *bits), n.unsqueezed(sign, [last]))
    parts = n.pair("mul", n.pair("mul", differ, differ), powers)
    total = n.unary("reduce_sum", parts, dim=[last], keep_dim=False, reduce_all=False)
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
    by = n.unsqueezed(n.pair("min", by, n.number(8, VarType.INT64)), [max(n.rank(1), 1)])
    power = n.op("gather_nd", {"X": powers, "Index": by})
    if n.attr("direction") == "RIGHT":
        x = n.pair("floordiv", x, power)
    else:
        x = n.pair("mod", n.pair("mul", x, power), n.number(256, VarType.INT64))
    n.out(n.cast(x, VarType.UINT8), scalar=n.value().scalar and n.value(1).scalar)
