"""Type checks of the arguments of `paddle.complex` (`paddle.complex.helper`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base import missing
from ...framework import Variable
from ...framework.complex_variable import ComplexVariable

__all__ = ["complex_variable_exists", "is_complex", "is_real"]


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


__getattr__ = missing.reporter(__name__)
