"""Powers, logarithms, trigonometric and other functions of one array, element by element."""

from __future__ import annotations

import math
from typing import Any

from ...backend.special import erf
from .pointwise import register_function
from .sign import sign_of


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
