"""The elements of a tensor as NumPy arrays, numbers and text, and the private names of `VarBase` that scripts use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._ext import eager as core
from ..base import callsite
from ..base.arrays import convertible
from ..base.lod import Lod
from ..executor.lod_tensor import LoDTensor
from ..framework import Block, default_main_program, tracing
from ..ops.registry import grad_name
from . import placing

if TYPE_CHECKING:
    from .tensor import Tensor


class Elements(core.Value):
    """The conversions of tensors for code on the host. On a GPU each of these waits until the elements are computed."""

    @property
    def _on_host(self) -> np.ndarray:
        """The elements on the host: the tensor's own memory if it is there, otherwise a copy."""
        array: Any = self.array
        return array if type(array) is np.ndarray else placing.read(array)

    def numpy(self) -> np.ndarray:
        """A copy of the elements."""
        array: Any = self.array
        return convertible(array.copy() if type(array) is np.ndarray else placing.read(array))

    def item(self, *index: int) -> Any:
        """One element as a Python number; the only one, or the one at `index`."""
        return self._on_host.item(*index)

    def tolist(self) -> Any:
        return self._on_host.tolist()

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The tensor as text."""
        return str(self)

    def __repr__(self) -> str:
        text = np.array2string(self._on_host, separator=", ", prefix="       ")
        place = "" if type(self.array) is np.ndarray else f" place={placing.place_of(self.array)},"
        return (
            f"Tensor(shape={list(self.array.shape)}, dtype={self.array.dtype},{place} "
            f"stop_gradient={self.stop_gradient},\n"
            f"       {text})"
        )

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a tensor without dimensions")
        return len(self.array)

    def __float__(self) -> float:
        return float(self._only())

    def __int__(self) -> int:
        return int(self._only())

    def __bool__(self) -> bool:
        return bool(self._only())

    def __index__(self) -> int:
        """The only element as an index; fractions are cut off, as in Fluid."""
        return int(self._only())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._on_host, dtype=dtype)

    def _only(self) -> Any:
        if self.array.size != 1:
            raise AssertionError(
                f"only a tensor of one element converts to a number, this one has shape {list(self.array.shape)}"
            )
        return self._on_host.reshape(-1)[0]


def as_numbers(value: Any) -> Any:
    """`value` with NumPy numbers, arrays and eager tensors converted to Python numbers.

    Arrays of one element become a number, others a list; lists and tuples become lists of their converted items.
    Anything else is unchanged: Variables of programs, and eager tensors while a program is traced.
    """
    if isinstance(value, Elements):
        return value if tracing.current() is not None else as_numbers(value._on_host)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.item() if value.size == 1 else value.tolist()
    return [as_numbers(item) for item in value] if isinstance(value, (list, tuple)) else value


def as_number_list(value: Any) -> Any:
    """As `as_numbers`, but an array or eager tensor always gives a list of its elements, even of one."""
    numbers = as_numbers(value)
    return [numbers] if numbers is not value and not isinstance(numbers, list) else numbers


class SharedElements(LoDTensor):
    """The memory of an eager tensor."""

    __slots__ = ()

    def _take_lod(self, levels: Lod) -> None:
        super()._take_lod(levels)
        if levels:
            callsite.warn(
                "operators in dygraph mode ignore levels of detail: give them lengths as tensors, or use a "
                "program for the sequences"
            )


class PrivateNames(core.Value):
    """Names of `fluid.core.VarBase` that begin with an underscore, and `block`."""

    @property
    def block(self) -> Block:
        """The global block of the default main program, as in Fluid; the tensor is not in it."""
        return default_main_program().global_block()

    def _grad_name(self) -> str:
        return grad_name(self.name)  # type: ignore[attr-defined]

    def _grad_ivar(self) -> Tensor | None:
        """The gradient as a tensor that shares its memory; None before `backward`."""
        gradient: Tensor | None = self.grad  # type: ignore[attr-defined]
        if gradient is not None:
            gradient.stop_gradient = False
        return gradient

    def _grad_value(self) -> LoDTensor | None:
        """The gradient as a LoDTensor that shares its memory; None before `backward`."""
        gradient = self._grad_ivar()
        return None if gradient is None else gradient.get_tensor()

    def _set_grad_type(self, type: Any) -> None:
        """Without effect: the operators determine if a gradient is sparse."""

    def _alive_vars(self) -> list[str]:
        """Always empty."""
        return []

    def _run_backward(self, backward_strategy: Any, tracer: Any, retain_graph: bool = False) -> None:
        self.backward(backward_strategy, retain_graph)  # type: ignore[attr-defined]
