"""Functions of complex numbers, which are pairs of variables (`paddle.complex`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..fluid import layers
from ..framework import Variable
from ..framework.variable import ComplexVariable

__path__: list[str] = []  # the modules below are views: base/names/views.py


def is_complex(x: Any) -> bool:
    """Whether `x` is a ComplexVariable."""
    return isinstance(x, ComplexVariable)


def is_real(x: Any) -> bool:
    """Whether `x` is a variable or tensor of real numbers."""
    return isinstance(x, Variable)


def complex_variable_exists(inputs: Sequence[Any], layer_name: str) -> None:
    """Raise ValueError unless one of `inputs` of `paddle.complex.LAYER_NAME` is a ComplexVariable."""
    if not any(is_complex(item) for item in inputs):
        one = "the input" if len(inputs) == 1 else "at least one of the inputs"
        raise ValueError(
            f"{one} of paddle.complex.{layer_name} must be a ComplexVariable, got "
            f"{', '.join(type(item).__name__ for item in inputs)}; for real numbers there is the layer of that name"
        )


def parts(x: Any) -> tuple[Any, Any]:
    """The real part of `x` and the imaginary one, None if it is real."""
    return (x.real, x.imag) if is_complex(x) else (x, None)


def each(x: ComplexVariable, name: str, function: Callable[[Any], Any]) -> ComplexVariable:
    """Apply `function` to the real and to the imaginary part."""
    complex_variable_exists([x], name)
    return ComplexVariable(function(x.real), function(x.imag))


def product(x: Any, y: Any, times: Callable[[Any, Any], Any]) -> ComplexVariable:
    """The complex product by `times`, a bilinear function of real tensors."""
    (a, b), (c, d) = parts(x), parts(y)
    if d is None:
        return ComplexVariable(times(a, c), times(b, c))
    if b is None:
        return ComplexVariable(times(a, c), times(a, d))
    return ComplexVariable(times(a, c) - times(b, d), times(b, c) + times(a, d))


def matmul(
    x: Any,
    y: Any,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> ComplexVariable:
    """The product of matrices times `alpha`, of which one may be real (`paddle.complex.matmul`).

    Transposed matrices are not conjugated. Raises ValueError if both are real.
    """
    complex_variable_exists([x, y], "matmul")
    return product(x, y, lambda p, q: layers.matmul(p, q, transpose_x, transpose_y, alpha, name))


def reshape(x: Any, shape: Sequence[int], inplace: bool = False, name: str | None = None) -> ComplexVariable:
    """`x` with another shape, as by `fluid.layers.reshape` (`paddle.complex.reshape`).

    `inplace`: change `x` itself, in programs. Raises ValueError unless `x` is a ComplexVariable.
    """
    return each(x, "reshape", lambda part: layers.reshape(part, shape, inplace=inplace, name=name))


def transpose(x: Any, perm: Sequence[int], name: str | None = None) -> ComplexVariable:
    """`x` with its dimensions in the order `perm` (`paddle.complex.transpose`).

    Raises ValueError unless `x` is a ComplexVariable.
    """
    return each(x, "transpose", lambda part: layers.transpose(part, perm, name))


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
