"""fusion_repeated_fc_relu, fusion_squared_mat_sub, fused_elemwise_activation: sums and products with functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...backend.functions import matmul
from ..infer import broadcast_shape, operands, reduced
from ..nn.activation import tanh_sigmoid
from ..registry import Attr, OpSpec, OpView, Sequences, grad_name, register, standard_grad


def _repeated(xp: Any, X: Any, W: list[Any], Bias: list[Any]) -> Any:
    steps = [X]
    for weight, bias in zip(W, Bias, strict=True):
        steps.append(xp.maximum(matmul(xp, steps[-1], weight) + bias.reshape(1, -1), 0))
    return steps[1:-1], steps[-1]


def _infer_repeated(op: OpView) -> None:
    rows, width = op.shape("X")
    if op.count("W") != op.count("Bias"):
        raise op.fail(f"there must be a Bias for each W, got {op.count('Bias')} for {op.count('W')}")
    last = op.count("W") - 1
    for k in range(op.count("W")):
        weight = op.shape("W", k)
        if len(weight) != 2 or weight[0] != width:
            raise op.fail(f"W[{k}] must be [{width}, n], got {list(weight)}")
        width = weight[1]
        op.set(
            *(
                ("Out", (rows, width), op.dtype("X"))
                if k == last
                else ("ReluOut", (rows, width), op.dtype("X"), k)
            )
        )


register(
    "fusion_repeated_fc_relu",
    ("X", "W*", "Bias*"),
    ("ReluOut*", "Out"),
    infer=_infer_repeated,
    kernel=_repeated,
    no_grad=("ReluOut", "Out"),
    sequences=Sequences(source={"Out": "X"}),
    doc="relu(X * W + Bias), again and again.",
)


def _squared(xp: Any, X: Any, Y: Any, scalar: float) -> Any:
    xx, yy, product = X * X, Y * Y, matmul(xp, X, Y)
    squared = product * product
    return xx, yy, squared, X.dtype.type(scalar) * (squared - matmul(xp, xx, yy))


def _infer_squared(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) != 2 or len(y) != 2 or (x[1] != y[0] and min(x[1], y[0]) >= 0):
        raise op.fail(f"X and Y must be matrices [n, m] and [m, k], got {list(x)} and {list(y)}")
    for slot, shape in (("SquaredX", x), ("SquaredY", y), ("SquaredXY", (x[0], y[1])), ("Out", (x[0], y[1]))):
        op.set(slot, shape, op.dtype("X"))


register(
    "fusion_squared_mat_sub",
    ("X", "Y"),
    ("SquaredX", "SquaredY", "SquaredXY", "Out"),
    {"scalar": 1.0},
    infer=_infer_squared,
    kernel=_squared,
    no_grad=("SquaredX", "SquaredY", "SquaredXY", "Out"),
    sequences=Sequences(source=None),
    doc="scalar * ((X * Y) ** 2 - X ** 2 * Y ** 2), products of matrices.",
)

X, Y, OUT, BETWEEN = "X", "Y", "Out", "IntermediateOut"


Unary = tuple[Callable[[Any, Any, Any], Any], Callable[[Any, Any, Any], Any]]
UNARY: dict[str, Unary] = {
    "scale": (lambda xp, x, s: x * s, lambda xp, out, s: s),
    "relu": (lambda xp, x, s: xp.maximum(x, 0), lambda xp, out, s: out > 0),
    "tanh": (lambda xp, x, s: xp.tanh(x), lambda xp, out, s: 1 - out * out),
    "sigmoid": (lambda xp, x, s: tanh_sigmoid(xp, x), lambda xp, out, s: out * (1 - out)),
}
"""Functions, and their derivatives as functions of their results."""

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise_add": lambda x, y: x + y,
    "elementwise_mul": lambda x, y: x * y,
}


def _forward(xp: Any, X: Any, Y: Any, functor_list: list[str], scale: float, axis: int) -> tuple[Any, Any]:
    """The result, and the intermediate one of the inner function."""
    outer, inner = (name.removesuffix("_grad") for name in functor_list)
    rate = X.dtype.type(scale)
    if outer in BINARY:
        between = UNARY[inner][0](xp, Y, rate)
        return BINARY[outer](*operands(X, between, axis)), between
    between = BINARY[inner](*operands(X, Y, axis))
    return UNARY[outer][0](xp, between, rate), between


def _products(xp: Any, X: Any, Y: Any, binary: str, d_out: Any, axis: int) -> tuple[Any, Any]:
    """The gradients of a sum or product for both operands."""
    wide_x, wide_y = operands(X, Y, axis)
    dx, dy = (d_out, d_out) if binary == "elementwise_add" else (d_out * wide_y, d_out * wide_x)
    return reduced(xp, dx, X.shape, Y.shape, axis), reduced(xp, dy, Y.shape, X.shape, axis)


def _fused_grad(
    xp: Any, X: Any, Y: Any, Out: Any, Out_grad: Any, functor_list: list[str], scale: float, axis: int
) -> Any:
    outer, inner = (name.removesuffix("_grad") for name in functor_list)
    rate = X.dtype.type(scale)
    if outer not in BINARY:
        d_between = Out_grad * UNARY[outer][1](xp, Out, rate)
        return *_products(xp, X, Y, inner, d_between, axis), d_between
    between = UNARY[inner][0](xp, Y, rate)
    dx, d_between = _products(xp, X, between, outer, Out_grad, axis)
    return dx, d_between * UNARY[inner][1](xp, between, rate), d_between


def _infer(op: OpView) -> None:
    names = list(op.attr("functor_list"))
    known = len(names) == 2 and (
        (names[0] in BINARY and names[1] in UNARY) or (names[0] in UNARY and names[1] in BINARY)
    )
    if not known:
        raise op.fail(
            f"functor_list must name one of {', '.join(BINARY)} and one of {', '.join(UNARY)}, got {names}"
        )
    shape = broadcast_shape(op, op.attr("axis"))
    op.set(OUT, shape, op.dtype(X))
    op.set(BETWEEN, op.shape(Y) if names[0] in BINARY else shape, op.dtype(X))


def _infer_grad(op: OpView) -> None:
    for slot in (X, Y):
        op.set(grad_name(slot), op.shape(slot), op.dtype(slot))
    inner = Y if op.attr("functor_list")[0].removesuffix("_grad") in BINARY else OUT
    op.set(grad_name(BETWEEN), op.shape(inner), op.dtype(inner))


def _rule(op: OpView) -> list[OpSpec]:
    kept = (OUT, BETWEEN) if op.attr("save_intermediate_out") else (OUT,)
    (spec,) = standard_grad(inputs=(X, Y), outputs=kept)(op)
    spec.attrs["functor_list"] = [name + "_grad" for name in op.attr("functor_list")]
    return [spec]


_ATTRS: dict[str, Any] = {
    "axis": -1,
    "scale": 0.0,
    "save_intermediate_out": False,
    "functor_list": Attr([], "STRINGS"),
}

register(
    "fused_elemwise_activation",
    (X, Y),
    (OUT, BETWEEN + "?"),
    _ATTRS,
    infer=_infer,
    kernel=_forward,
    grad=_rule,
    no_grad=(BETWEEN,),
    sequences=Sequences(
        source=lambda op: {OUT: X, BETWEEN: Y if op.attr("functor_list")[0] in BINARY else X}
    ),
    doc="functor_list[0] after functor_list[1]: X with a function of Y, or a function of X with Y.",
)
register(
    "fused_elemwise_activation_grad",
    (X, Y, OUT, BETWEEN + "?", grad_name(OUT)),
    (grad_name(X) + "?", grad_name(Y) + "?", grad_name(BETWEEN) + "?"),
    _ATTRS,
    infer=_infer_grad,
    kernel=_fused_grad,
    doc="The gradients of fused_elemwise_activation for X and Y, and for what is between its two functions.",
)
