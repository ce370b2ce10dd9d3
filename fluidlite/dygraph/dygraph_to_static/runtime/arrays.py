"""`tensor.numpy()` while a program is built: a Variable with the methods of arrays that programs can compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import layers
from ....base.dtypes import VarType, to_vartype
from ....base.errors import NotSupportedError
from ....framework import Variable
from .values import here


class Array(Variable):
    """The elements of a tensor, without its gradient. NumPy's functions refuse it."""

    def reshape(self, *shape: Any, order: str = "C") -> Array:
        """The elements in another shape."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
        if order != "C":
            raise self._refusal(f"reshape in order {order!r}")
        return array(layers.reshape(self, list(sizes)))

    def astype(self, dtype: Any) -> Array:
        """The elements as another type."""
        return array(layers.cast(self, to_vartype(dtype)))

    def copy(self) -> Array:
        """The same elements."""
        return self

    def item(self) -> Variable:
        """The only element."""
        return layers.reshape(self, [1])  # type: ignore[no-any-return]

    def flatten(self) -> Array:
        """The elements in a row."""
        return self.reshape(-1)

    ravel = flatten

    def _binary(self, op_type: str, other: Any, swapped: bool = False) -> Variable:
        result = super()._binary(op_type, other, swapped)
        return result if result is NotImplemented else _marked(result)

    def _scaled(self, scale: float, bias: float) -> Variable:
        return _marked(super()._scaled(scale, bias))

    def __getitem__(self, index: Any) -> Variable:
        return _marked(super().__getitem__(index))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self._refusal("a function of NumPy")

    def _refusal(self, use: str) -> NotSupportedError:
        return NotSupportedError(
            f"{use} needs the elements of {self.name!r}{here()}, known only when the program runs: use layers, "
            "or keep this part out of the declarative function"
        )


def _reduced(layer: Callable[..., Variable], on_truth: bool) -> Callable[..., Any]:
    def method(
        self: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if dtype is not None or out is not None:
            raise self._refusal(f"{layer.__name__} with dtype or out")
        operand: Variable = self
        if on_truth and self.dtype != VarType.BOOL:
            operand = layers.cast(self, VarType.BOOL)
        elif not on_truth and self.dtype == VarType.BOOL:
            operand = layers.cast(self, VarType.INT64)
        return array(layer(operand, dim=axis, keep_dim=keepdims))

    return method


for _name, _layer in {
    "sum": layers.reduce_sum,
    "mean": layers.reduce_mean,
    "max": layers.reduce_max,
    "min": layers.reduce_min,
    "all": layers.reduce_all,
    "any": layers.reduce_any,
}.items():
    setattr(Array, _name, _reduced(_layer, _name in ("all", "any")))


def _marked(var: Variable) -> Array:
    var.__class__ = Array
    var.stop_gradient = True
    return var  # type: ignore[return-value]


def array(var: Variable) -> Array:
    """A copy of a Variable that has the methods of arrays, and no gradient."""
    return _marked(layers.assign(var))
