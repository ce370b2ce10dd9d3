"""Products of complex matrices (`paddle.complex.tensor.linalg`)."""

from __future__ import annotations

from typing import Any

from .... import layers
from ....base import missing
from ....framework.complex_variable import ComplexVariable
from ..helper import complex_variable_exists
from .parts import product

__all__ = ["matmul"]


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


__getattr__ = missing.reporter(__name__)
