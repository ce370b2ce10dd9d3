"""Helpers that apply functions to the real and imaginary parts of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....framework.complex_variable import ComplexVariable
from ..helper import complex_variable_exists, is_complex


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
