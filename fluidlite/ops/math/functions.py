"""Elementwise functions of one array (powers, logarithms, trigonometric, scale, cast), and their declaration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backend.functions import erf
from ...base.arrays import halves
from ...base.dtypes import FLOATS, VarType, to_numpy, to_vartype
from ...base.selected_rows import SelectedRows
from .. import native, planning_rules
from ..grad_pairs import gradient_by, register_pair, self_adjoint_double_grad
from ..infer import same_as
from ..native import unary, unary_grad
from ..registry import Call, Dispatch, Effects, OpSpec, OpView, Planning, RowRule, grad_name, register
from ..tensor import gather as rows

DOUT, DX = grad_name("Out"), grad_name("X")
Kernel = Callable[..., Any]


def _nothing(op: OpView) -> list[OpSpec]:
    """The gradient rule of a step function's gradient operator: 0."""
    return []


def _same_type(kernel: Kernel, attrs: dict[str, Any]) -> Callable[[OpView], None]:
    """Out is as X; refuses integers for functions with float results, as Fluid does."""

    def infer(op: OpView) -> None:
        kind = op.dtype("X")
        if kind not in FLOATS and kernel(np, np.zeros(0, to_numpy(kind)), **attrs).dtype != to_numpy(kind):
            raise op.fail(f"X must be of a float type, got {kind}")
        op.set("Out", op.shape("X"), kind)

    return infer


def register_function(
    op_type: str,
    kernel: Kernel,
    grad: Kernel,
    doc: str,
    attrs: dict[str, Any] | None = None,
    native: bool = True,
    linear: bool = False,
    second: Kernel | None = None,
    effects: Effects = Effects(),
    **planning: Any,
) -> None:
    """Declare `op_type` and `<op_type>_grad`.

    As in Fluid the gradient operator keeps the output where that is enough and the input otherwise: the parameters of
    `grad` say which. `native`: there are C kernels that take the attributes in this order, as those for GPUs do.
    `linear`: piecewise linear. `second(xp, kept, DOut, DDX)`: the gradients of the gradient operator for what it keeps
    and for Out@GRAD, where DOut is Out@GRAD and DDX the gradient of X@GRAD. `planning`: what else `Planning` says of
    `op_type`.
    """
    attrs = attrs or {}
    named = grad.__code__.co_varnames[: grad.__code__.co_argcount]
    kept = next((slot for slot in ("Out", "X") if slot in named), None)
    floats = tuple(attrs)
    register_pair(
        op_type,
        ("X",),
        kernel,
        grad,
        _same_type(kernel, attrs),
        doc,
        attrs=attrs,
        keep=("X",) if kept == "X" else (),
        keep_out=("Out",) if kept == "Out" else (),
        effects=effects,
        planning=Planning(inplace=(("Out", "X"),), batchable=planning_rules.all_batched, **planning),
        planning_back=Planning(inplace=((DX, DOUT),), batchable=planning_rules.all_batched),
        grad_grad=_nothing if kept is None else self_adjoint_double_grad if linear else None,
        second=(second, (kept,)) if second is not None and kept else None,
        native=(
            unary(op_type, floats) if native else None,
            unary_grad(op_type, floats, out_as_x=op_type == "leaky_relu") if native else None,
        ),
        cuda=(f"elementwise.function:{op_type}", f"elementwise.function_grad:{op_type}"),
    )


def sign_of(xp: Any, X: Any) -> Any:
    """-1, 0 or 1 in the type of X; 0 for NaN, as in Fluid."""
    return (X > 0).astype(X.dtype) - (X < 0).astype(X.dtype)


register(
    "sign",
    inputs=("X",),
    infer=same_as("X"),
    kernel=sign_of,
    grad=gradient_by("scale", attrs=lambda op: {"scale": 0.0}),
    native=native.unary("sign"),
    dispatch=Dispatch(cuda="elementwise.function:sign"),
    planning=Planning(inplace=(("Out", "X"),)),
    doc="-1, 0 or 1, as X is negative, zero or positive; 0 for NaN; its gradient is zero.",
)


def rounded(xp: Any, x: Any) -> Any:
    """To the nearest integer, halves away from zero."""
    whole = xp.trunc(x)
    return whole + xp.sign(x) * (xp.abs(x - whole) >= 0.5)


def _zero_grad(xp: Any, Out_grad: Any) -> Any:
    return xp.zeros_like(Out_grad)


register_function(
    "abs",
    lambda xp, X: xp.abs(X),
    lambda xp, X, Out_grad: Out_grad * sign_of(xp, X),
    "The absolute value.",
    linear=True,
)
register_function("ceil", lambda xp, X: xp.ceil(X), _zero_grad, "The smallest integer not below x.")
register_function("floor", lambda xp, X: xp.floor(X), _zero_grad, "The largest integer not above x.")
register_function(
    "round", lambda xp, X: rounded(xp, X), _zero_grad, "The nearest integer; halves go away from zero."
)
register_function(
    "exp",
    lambda xp, X: xp.exp(X).astype(X.dtype, copy=False),  # integers lose the fraction, as in Fluid
    lambda xp, Out, Out_grad: Out_grad * Out,
    "e to the power of x.",
    second=lambda xp, Out, DOut, DDX: (DOut * DDX, DDX * Out),
)
register_function(
    "expm1",
    lambda xp, X: xp.expm1(X),
    lambda xp, Out, Out_grad: Out_grad * (Out + 1),
    "e to the power of x, less 1.",
    native=False,
    second=lambda xp, Out, DOut, DDX: (DOut * DDX, DDX * (Out + 1)),
)
register_function(
    "sqrt",
    lambda xp, X: xp.sqrt(X),
    lambda xp, Out, Out_grad: Out_grad * 0.5 / Out,
    "The square root.",
    second=lambda xp, Out, DOut, DDX: (-0.5 * DOut * DDX / (Out * Out), DDX * 0.5 / Out),
)
register_function(
    "rsqrt",
    lambda xp, X: 1 / xp.sqrt(X),
    lambda xp, Out, Out_grad: Out_grad * Out * Out * Out * -0.5,
    "1 over the square root.",
    second=lambda xp, Out, DOut, DDX: (-1.5 * DOut * DDX * Out * Out, DDX * Out * Out * Out * -0.5),
)
register_function(
    "square",
    lambda xp, X: X * X,
    lambda xp, X, Out_grad: Out_grad * X * 2,
    "x times x.",
    second=lambda xp, X, DOut, DDX: (DOut * DDX * 2, DDX * X * 2),
    padding_rows="kept",
)
register_function(
    "reciprocal",
    lambda xp, X: 1 / X,
    lambda xp, Out, Out_grad: -Out_grad * Out * Out,
    "1 / x.",
    second=lambda xp, Out, DOut, DDX: (-2 * DOut * DDX * Out, -DDX * Out * Out),
)
register_function(
    "log",
    lambda xp, X: xp.log(X),
    lambda xp, X, Out_grad: Out_grad / X,
    "The natural logarithm.",
    second=lambda xp, X, DOut, DDX: (-DOut * DDX / (X * X), DDX / X),
)
register_function(
    "log1p",
    lambda xp, X: xp.log1p(X),
    lambda xp, X, Out_grad: Out_grad / (1 + X),
    "The natural logarithm of 1 + x.",
    native=False,
    second=lambda xp, X, DOut, DDX: (-DOut * DDX / (1 + X) ** 2, DDX / (1 + X)),
)
for _base in (2, 10):
    # The base's logarithm is bound here, as a kernel's arguments are slots and attributes.
    def _log(xp: Any, X: Any, *, _base: int = _base) -> Any:
        return xp.log2(X) if _base == 2 else xp.log10(X)

    def _log_grad(xp: Any, X: Any, Out_grad: Any, *, _base: int = _base) -> Any:
        return Out_grad / (X * math.log(_base))

    def _log_double_grad(xp: Any, X: Any, DOut: Any, DDX: Any, *, _base: int = _base) -> Any:
        return -DOut * DDX / (X * X * math.log(_base)), DDX / (X * math.log(_base))

    register_function(
        f"log{_base}",
        _log,
        _log_grad,
        f"The logarithm to base {_base}.",
        native=False,
        second=_log_double_grad,
    )
register_function(
    "sin",
    lambda xp, X: xp.sin(X),
    lambda xp, X, Out_grad: Out_grad * xp.cos(X),
    "The sine.",
    second=lambda xp, X, DOut, DDX: (-DOut * DDX * xp.sin(X), DDX * xp.cos(X)),
)
register_function(
    "cos",
    lambda xp, X: xp.cos(X),
    lambda xp, X, Out_grad: -Out_grad * xp.sin(X),
    "The cosine.",
    second=lambda xp, X, DOut, DDX: (-DOut * DDX * xp.cos(X), -DDX * xp.sin(X)),
)
register_function(
    "tan",
    lambda xp, X: xp.tan(X),
    lambda xp, Out, Out_grad: Out_grad * (1 + Out * Out),
    "The tangent.",
    native=False,
    second=lambda xp, Out, DOut, DDX: (2 * Out * DOut * DDX, DDX * (1 + Out * Out)),
)
register_function(
    "sinh",
    lambda xp, X: xp.sinh(X),
    lambda xp, X, Out_grad: Out_grad * xp.cosh(X),
    "The hyperbolic sine.",
    native=False,
    second=lambda xp, X, DOut, DDX: (DOut * DDX * xp.sinh(X), DDX * xp.cosh(X)),
)
register_function(
    "cosh",
    lambda xp, X: xp.cosh(X),
    lambda xp, X, Out_grad: Out_grad * xp.sinh(X),
    "The hyperbolic cosine.",
    native=False,
    second=lambda xp, X, DOut, DDX: (DOut * DDX * xp.cosh(X), DDX * xp.sinh(X)),
)
register_function(
    "asin",
    lambda xp, X: xp.arcsin(X),
    lambda xp, X, Out_grad: Out_grad / xp.sqrt(1 - X * X),
    "The inverse of the sine.",
    native=False,
    second=lambda xp, X, DOut, DDX: (DOut * DDX * X * (1 - X * X) ** -1.5, DDX / xp.sqrt(1 - X * X)),
)
register_function(
    "acos",
    lambda xp, X: xp.arccos(X),
    lambda xp, X, Out_grad: -Out_grad / xp.sqrt(1 - X * X),
    "The inverse of the cosine.",
    native=False,
    second=lambda xp, X, DOut, DDX: (-DOut * DDX * X * (1 - X * X) ** -1.5, -DDX / xp.sqrt(1 - X * X)),
)
register_function(
    "atan",
    lambda xp, X: xp.arctan(X),
    lambda xp, X, Out_grad: Out_grad / (1 + X * X),
    "The inverse of the tangent.",
    native=False,
    second=lambda xp, X, DOut, DDX: (-2 * X * DOut * DDX / (1 + X * X) ** 2, DDX / (1 + X * X)),
)


def _erf_grad(xp: Any, X: Any, Out_grad: Any) -> Any:
    return Out_grad * xp.exp(-X * X) * (2 / math.sqrt(math.pi))


register_function(
    "erf",
    lambda xp, X: erf(xp, X),
    _erf_grad,
    "The error function.",
    second=lambda xp, X, DOut, DDX: (-2 * X * _erf_grad(xp, X, DOut * DDX), _erf_grad(xp, X, DDX)),
)


_SUFFIX = {
    VarType.FP16: "f16",
    VarType.FP32: "f32",
    VarType.FP64: "f64",
    VarType.INT32: "i32",
    VarType.INT64: "i64",
    VarType.UINT8: "u8",
    VarType.BOOL: "b1",
}
_NO_KERNELS = [{"f16", suffix} for suffix in _SUFFIX.values() if suffix != "f32"]
"""Types that kernels do not convert one to the other."""

NEAREST = "nearest"
"""An attribute of casts that plans add themselves: float32 is rounded to float16, not cut."""


def _cast(xp: Any, X: Any, out_dtype: int) -> Any:
    if X.dtype == object:  # sizes are integers of any type
        return X
    if xp is np and out_dtype == VarType.FP16 != to_vartype(X.dtype):
        return halves(X)
    return X.astype(to_numpy(out_dtype))


def _cast_native(op: OpView) -> Call | None:
    source, target = _SUFFIX.get(op.dtype("X")), _SUFFIX.get(op.dtype("Out"))
    if source is None or target is None or (source != target and {source, target} in _NO_KERNELS):
        return None
    operands = [op.name("X"), op.name("Out")]
    if source == target:
        return Call("copy", operands, [native.numel(op, "X") * native.itemsize(op, "X")])
    kind = "round" if op.attrs.get(NEAREST) else "cast"
    return Call(f"{kind}.{source}.{target}", operands, [native.numel(op, "X")])


register(
    "cast",
    inputs=("X",),
    attrs={"in_dtype": int(VarType.FP32), "out_dtype": int(VarType.FP32)},
    infer=lambda op: op.set("Out", op.shape("X"), to_vartype(op.attr("out_dtype"))),
    kernel=_cast,
    grad=gradient_by(
        "cast", attrs=lambda op: {"in_dtype": op.attr("out_dtype"), "out_dtype": op.attr("in_dtype")}
    ),
    native=_cast_native,
    planning=Planning(batchable=planning_rules.all_batched),
    doc="X converted to the element type `out_dtype`; floats lose their fraction in integers, and "
    "what float16 cannot hold.",
)


def _scale(xp: Any, X: Any, ScaleTensor: Any, scale: float, bias: float, bias_after_scale: bool) -> Any:
    # Integers are scaled by integers, in their own element type; small ones wrap.
    number = (lambda value: np.int64(value).astype(X.dtype)) if X.dtype.kind in "iu" else X.dtype.type
    factor = ScaleTensor.reshape(()).astype(X.dtype) if ScaleTensor is not None else number(scale)
    return X * factor + number(bias) if bias_after_scale else (X + number(bias)) * factor


def _scale_rows(
    xp: Any, X: SelectedRows, ScaleTensor: Any, scale: float, bias: float, bias_after_scale: bool
) -> SelectedRows:
    """The rows that are held, scaled: as in Fluid, `bias` is not added to the others."""
    return X.with_values(_scale(xp, X.values, ScaleTensor, scale, bias, bias_after_scale))


def _scale_rows_native(op: OpView) -> list[Call] | None:
    kernel = native.typed(op, "scale", ("X",))
    if kernel is None or op.has("ScaleTensor"):
        return None
    count, _, width = rows.extent(op, "X")
    values = [rows.parts(op.name(slot))[1] for slot in ("X", "Out")]
    floats = [float(op.attr("scale")), float(op.attr("bias"))]
    scaled = Call(kernel, list(values), [count * width, int(op.attr("bias_after_scale"))], floats)
    return [rows.same_rows(op, "X", "Out"), scaled]


def _scale_native(op: OpView) -> Call | None:
    kernel = native.typed(op, "scale", ("X",), native.NUMERIC)
    if kernel is None or op.has("ScaleTensor"):
        return None
    number = float if op.dtype("X") in FLOATS else int
    floats = [float(number(op.attr("scale"))), float(number(op.attr("bias")))]
    return Call(
        kernel,
        [op.name("X"), op.name("Out")],
        [native.numel(op, "X"), int(op.attr("bias_after_scale"))],
        floats,
    )


register(
    "scale",
    inputs=("X", "ScaleTensor?"),
    attrs={"scale": 1.0, "bias": 0.0, "bias_after_scale": True},
    infer=same_as("X"),
    kernel=_scale,
    grad=gradient_by(
        "scale",
        {"X": "Out@GRAD", "ScaleTensor": "ScaleTensor"},
        attrs=lambda op: {"scale": op.attr("scale"), "bias": 0.0, "bias_after_scale": True},
    ),
    no_grad=("ScaleTensor",),
    native=_scale_native,
    dispatch=Dispatch(
        rows=RowRule(_scale_rows, slots=("X",), out="Out", native=_scale_rows_native),
        cuda="elementwise.scale",
    ),
    planning=Planning(
        batchable=planning_rules.scaled, inplace=(("Out", "X"),), identity=planning_rules.scaled_by_one
    ),
    doc="scale * X + bias, or scale * (X + bias); ScaleTensor's element takes the place of `scale`.",
)
