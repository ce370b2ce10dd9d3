"""Elementwise functions of one array (powers, logarithms, trigonometric and others), and their declaration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backend.functions import erf
from ...base.dtypes import FLOATS, to_numpy
from .. import native, planning_rules
from ..grad_pairs import gradient_by, register_pair, self_adjoint_double_grad
from ..infer import same_as
from ..native import unary, unary_grad
from ..registry import Dispatch, Effects, OpSpec, OpView, Planning, grad_name, register

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
