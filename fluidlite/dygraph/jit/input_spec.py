"""`InputSpec`: shapes and types of a model's inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy, to_vartype
from ...eager import Tensor
from ...framework.variable import as_shape


class InputSpec:
    """Shape, type and name of an input of a model to be saved (`paddle.static.InputSpec`).

    Args:
        shape: its sizes; None or -1 where any will do.
        dtype: its element type.
        name: its name in the saved model, by default generated.

    Raises:
        TypeError: a shape of something else than integers and None, an unknown type.
    """

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None) -> None:
        if isinstance(shape, int):
            raise TypeError(f"the shape of an InputSpec is a list of integers and None, got {shape}")
        self.shape = as_shape(shape, "an InputSpec")
        self.dtype: VarType = to_vartype(dtype)
        self.name = name
        self.stop_gradient = False

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> InputSpec:
        """The spec of tensors like `tensor`."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: np.ndarray, name: str | None = None) -> InputSpec:
        """The spec of arrays like `ndarray`."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int) -> InputSpec:
        """Insert a first dimension of `batch_size`; returns the spec."""
        self.shape = (int(batch_size), *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Remove the first dimension; returns the spec. Raises ValueError if there is none."""
        if not self.shape:
            raise ValueError("an InputSpec without dimensions has no batch to take away")
        self.shape = self.shape[1:]
        return self

    def example(self) -> np.ndarray:
        """Zeros of this shape, with 1 for unknown sizes."""
        return np.zeros([1 if n < 0 else n for n in self.shape], to_numpy(self.dtype))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InputSpec):
            return NotImplemented
        return (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.name))

    def __repr__(self) -> str:
        return f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name})"


def of(given: Any) -> InputSpec:
    """The InputSpec of a spec, tensor or array. Raises TypeError for anything else."""
    if isinstance(given, InputSpec):
        return given
    if isinstance(given, Tensor):
        return InputSpec(given.shape, given.dtype)
    if isinstance(given, np.ndarray):
        return InputSpec.from_numpy(given)
    raise TypeError(f"input_spec holds InputSpecs, tensors or arrays, got {type(given).__name__}")
