"""Arithmetic, sums and Kronecker products of complex numbers (`paddle.complex.tensor.math`)."""

from __future__ import annotations

from typing import Any

from .... import layers
from ....base import missing
from ....framework.complex_variable import ComplexVariable
from ..helper import complex_variable_exists
from .parts import each, parts, product

__all__ = ["elementwise_add", "elementwise_div", "elementwise_mul", "elementwise_sub", "kron", "sum", "trace"]


def elementwise_add(x: Any, y: Any, axis: int = -1, name: str | None = None) -> ComplexVariable:
    """`x + y`, of which one may be real (`paddle.complex.elementwise_add`).

    The shape of `y` fits a part of `x` that begins at `axis`, as in `fluid.layers.elementwise_add`; `name`: what
    results are called. Raises ValueError if both are real.
    """
    complex_variable_exists([x, y], "elementwise_add")
    (a, b), (c, d) = parts(x), parts(y)
    real = layers.elementwise_add(a, c, axis, name=name)
    return ComplexVariable(real, _sum_of_imaginary(a, b, d, axis))


def elementwise_sub(x: Any, y: Any, axis: int = -1, name: str | None = None) -> ComplexVariable:
    """`x - y`, of which one may be real (`paddle.complex.elementwise_sub`); see `elementwise_add`."""
    complex_variable_exists([x, y], "elementwise_sub")
    (a, b), (c, d) = parts(x), parts(y)
    real = layers.elementwise_sub(a, c, axis, name=name)
    return ComplexVariable(real, _sum_of_imaginary(a, b, None if d is None else -d, axis))


def _sum_of_imaginary(a: Any, b: Any, d: Any, axis: int) -> Any:
    """`b + d` where one may be missing, in the shape of `a`."""
    if d is None:
        return b
    return layers.elementwise_add(layers.zeros_like(a) if b is None else b, d, axis)


def elementwise_mul(x: Any, y: Any, axis: int = -1, name: str | None = None) -> ComplexVariable:
    """`x * y`, of which one may be real (`paddle.complex.elementwise_mul`); see `elementwise_add`."""
    complex_variable_exists([x, y], "elementwise_mul")
    return product(x, y, lambda p, q: layers.elementwise_mul(p, q, axis, name=name))


def elementwise_div(x: Any, y: Any, axis: int = -1, name: str | None = None) -> ComplexVariable:
    """`x / y`, of which one may be real (`paddle.complex.elementwise_div`); see `elementwise_add`.

    Divides by the square of the absolute value, so that a division by zero gives nan.
    """
    complex_variable_exists([x, y], "elementwise_div")
    c, d = parts(y)
    square = c * c if d is None else c * c + d * d
    over = product(
        x, c if d is None else ComplexVariable(c, -d), lambda p, q: layers.elementwise_mul(p, q, axis)
    )
    return each(over, "elementwise_div", lambda part: layers.elementwise_div(part, square, axis, name=name))


def kron(x: Any, y: Any, name: str | None = None) -> ComplexVariable:
    """The Kronecker product, of which one factor may be real (`paddle.complex.kron`)."""
    complex_variable_exists([x, y], "kron")
    return product(x, y, lambda p, q: layers.kron(p, q, name=name))


def sum(input: Any, dim: Any = None, keep_dim: bool = False, name: str | None = None) -> ComplexVariable:
    """The sum over the dimensions `dim`, all by default (`paddle.complex.sum`).

    Raises ValueError unless `input` is a ComplexVariable.
    """
    return each(input, "sum", lambda part: layers.reduce_sum(part, dim, keep_dim, name))


def trace(
    input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1, name: str | None = None
) -> ComplexVariable:
    """The sum of the diagonal `offset` of `dim1` and `dim2` (`paddle.complex.trace`).

    Raises ValueError unless `input` is a ComplexVariable.
    """
    return each(input, "trace", lambda part: layers.trace(part, offset, dim1, dim2))


__getattr__ = missing.reporter(__name__)
