"""The methods that Paddle 2.0 gives to tensors: its functions, with the tensor as first argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager import Tensor
from ...framework.math_ops import VariableMath
from . import indexing, linalg, logic, manipulation, math, promotion, random, search, stat
from .creation import assign, tril, triu

_FUNCTIONS: dict[Any, str] = {
    math: """abs acos add asin atan ceil clip cos cosh cumsum divide erf exp expm1 floor floor_divide floor_mod isfinite
        isinf isnan lerp log log10 log1p log2 maximum minimum mod multiply neg pow reciprocal remainder round rsqrt
        scale sigmoid sign sin sinh sqrt square stanh subtract tan tanh trunc""",
    stat: "all any count_nonzero logsumexp max mean median min numel prod std sum var",
    logic: """allclose equal equal_all greater_equal greater_than is_empty is_tensor isclose less_equal less_than
        logical_and logical_not logical_or logical_xor not_equal""",
    manipulation: """broadcast_to cast chunk concat expand expand_as flatten flip gather gather_nd moveaxis
        repeat_interleave reshape reshape_ reverse roll scatter scatter_nd_add slice split squeeze squeeze_ stack
        strided_slice t tile transpose unbind unique unsqueeze unsqueeze_ unstack""",
    search: "argmax argmin argsort index_sample index_select masked_select nonzero sort topk",
    linalg: """addmm bincount bmm cross diagonal dist dot histogram inner kron matmul mm mv norm outer trace""",
    random: "bernoulli multinomial",
}

_IN_PLACE = "add ceil clip exp floor multiply reciprocal round rsqrt scale sqrt subtract tanh"


def _where(self: Any, x: Any, y: Any) -> Any:
    """Elements of `x` where this bool tensor is true, of `y` elsewhere (`Tensor.where`)."""
    return search.where(self, x, y)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return manipulation.in_place(self, function(self, *args, **kwargs))

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"`{function.__name__}` in place; returns the tensor (`Tensor.{function.__name__}_`)."
    return method


def _filled(self: Tensor, value: float) -> Tensor:
    """Set all elements to `value`, outside of any history; returns the tensor (`Tensor.fill_`)."""
    self.set_value(np.full(self.array.shape, value, self.array.dtype))
    return self


def _zeroed(self: Tensor) -> Tensor:
    """Set all elements to zero, outside of any history; returns the tensor (`Tensor.zero_`)."""
    return _filled(self, 0)


def _dimensions(self: Any) -> int:
    """The number of axes (`Tensor.dim`, `Tensor.ndimension`)."""
    return len(self.shape)


def _turned(self: Any) -> Any:
    """The tensor with its axes in the opposite order (`Tensor.T`)."""
    return manipulation.transpose(self, list(range(len(self.shape)))[::-1])


def _swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(other, self)


_sliced = Tensor.__getitem__


def _item(self: Tensor, index: Any) -> Any:
    """The part of the tensor that `index` says, as NumPy understands it (`Tensor.__getitem__`)."""
    return _sliced(self, index) if indexing.is_plain(index) else indexing.gather_indexed(self, index)


def attach() -> None:
    """Give eager tensors, and Variables of programs where it makes sense, these methods; a class keeps its own."""
    both: dict[str, Any] = {
        "where": _where,
        "tril": tril,
        "triu": triu,
        "dim": _dimensions,
        "ndimension": _dimensions,
        "clone": assign,
    }
    both |= {name: getattr(module, name) for module, names in _FUNCTIONS.items() for name in names.split()}
    both["T"] = property(_turned)
    for sign, function in (("and", logic.logical_and), ("or", logic.logical_or), ("xor", logic.logical_xor)):
        both |= {f"__{sign}__": function, f"__r{sign}__": _swapped(function)}
    both |= {"__invert__": logic.logical_not, "__abs__": math.abs, "__matmul__": linalg.matmul}
    eager = {f"{name}_": _in_place(both[name]) for name in _IN_PLACE.split()}
    eager |= {
        "fill_": _filled,
        "zero_": _zeroed,
        "__setitem__": indexing.assigned,
    }
    for cls, methods in ((VariableMath, both), (Tensor, eager)):
        for name, method in methods.items():
            # Classes have `__or__` from their metaclass; what counts is what instances find.
            if not any(name in vars(base) for base in cls.__mro__):
                setattr(cls, name, method)
    Tensor.__getitem__ = _item  # type: ignore[method-assign]
    promotion.attach()
