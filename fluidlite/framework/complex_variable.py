"""`ComplexVariable`: complex numbers as a pair of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import unique_name
from ..base.dtypes import VarType
from .variable import Variable


class ComplexVariable:
    """Complex numbers whose real and imaginary parts are two variables or eager tensors (`fluid.ComplexVariable`).

    The functions of `paddle.complex` compute with it; the operators of Python do not, as in Fluid.

    Args:
        real, imag: of one shape and type, float32 or float64.

    Raises:
        AssertionError, as in Fluid: the parts differ in shape.
    """

    def __init__(self, real: Any, imag: Any) -> None:
        for part in (real, imag):
            if not isinstance(part, Variable):
                raise AttributeError(
                    f"the parts of a ComplexVariable are variables or tensors, got {type(part).__name__}"
                )
        if tuple(real.shape) != tuple(imag.shape):
            raise AssertionError(
                "the real and the imaginary part of a ComplexVariable must have the same shape, got "
                f"{list(real.shape)} and {list(imag.shape)}"
            )
        self.real, self.imag = real, imag

    @staticmethod
    def from_parts(real: Any, imag: Any, name: str | None = None) -> ComplexVariable:
        """One of two eager tensors, which are named after it."""
        result = ComplexVariable(real, imag)
        result.name = unique_name.generate("_generated_var") if name is None else name
        return result

    @property
    def shape(self) -> Any:
        return self.real.shape

    @property
    def dtype(self) -> str:
        """'complex64' or 'complex128'."""
        return "complex64" if self.real.dtype == VarType.FP32 else "complex128"

    @property
    def name(self) -> dict[str, str]:
        """The names of the parts, as 'real' and 'imag'; assigning NAME makes them NAME.real and NAME.imag."""
        return {"real": self.real.name, "imag": self.imag.name}

    @name.setter
    def name(self, name: str) -> None:
        self.real.name, self.imag.name = f"{name}.real", f"{name}.imag"

    def numpy(self) -> np.ndarray:
        """A copy of the elements; StaticModeError in a program."""
        return np.asarray(self.real.numpy() + 1j * self.imag.numpy(), self.dtype)

    def __str__(self) -> str:
        return f"REAL: {self.real}IMAG: {self.imag}"

    __repr__ = __str__
