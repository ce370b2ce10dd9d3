"""The methods that Paddle 2.0 gives to tensors: its functions, with the tensor as first argument."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager import Tensor
from ...framework import mode
from ...framework.math_ops import VariableMath
from ..dtypes import get_default_dtype

# Type promotion of integer tensors with Python floats: Paddle 2.0 gives floats, where Fluid 1.8 raises or rounds.
#
# Both have the same tensors here. What is computed under `fluid.dygraph.guard` or `enable_dygraph` follows Fluid.

_COMPARING = "__pow__ __rpow__ __mod__ __floordiv__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__".split()


def _is_whole(x: Any) -> bool:
    return x.array.dtype.kind in "iub" and not mode.in_dygraph_mode()


def _is_fraction(value: Any) -> bool:
    return isinstance(value, (float, np.floating))


def _with_fraction(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method`, with an integer tensor converted to floats if the other operand is a Python float."""

    @functools.wraps(method)
    def call(self: Tensor, other: Any) -> Any:
        if _is_fraction(other) and _is_whole(self):
            self = self.astype(get_default_dtype())
        return method(self, other)

    return call


def _dividing(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method`, a division, with an integer tensor always converted to floats."""

    @functools.wraps(method)
    def call(self: Tensor, other: Any) -> Any:
        return method(self.astype(get_default_dtype()) if _is_whole(self) else self, other)

    return call


def _scaling(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method(self, scale, bias)`, by which sums and products with numbers are computed, with promotion to floats.

    Scales of 1.0 and -1.0 and a bias of 0.0 do not promote: they may be defaults as well as the user's."""

    @functools.wraps(method)
    def call(self: Tensor, scale: Any, bias: Any) -> Any:
        fraction = (_is_fraction(scale) and abs(scale) != 1.0) or (_is_fraction(bias) and bias != 0.0)
        if fraction and _is_whole(self):
            self = self.astype(get_default_dtype())
        return method(self, scale, bias)

    return call


def attach_promotion() -> None:
    """Give eager tensors the promotion of Paddle 2.0, outside of Fluid's dygraph mode."""
    for name in _COMPARING:
        setattr(Tensor, name, _with_fraction(getattr(Tensor, name)))
    for name in ("__truediv__", "__rtruediv__"):
        setattr(Tensor, name, _dividing(getattr(Tensor, name)))
    Tensor._scaled = _scaling(Tensor._scaled)  # type: ignore[method-assign]


_FUNCTIONS = {
    "math": """abs acos add asin atan ceil clip cos cosh cumsum divide erf exp expm1 floor floor_divide floor_mod
        isfinite isinf isnan lerp log log10 log1p log2 maximum minimum mod multiply neg pow reciprocal remainder
        round rsqrt scale sigmoid sign sin sinh sqrt square stanh subtract tan tanh trunc __abs__=abs""",
    "stat": "all any count_nonzero logsumexp max mean median min numel prod std sum var",
    "logic": """allclose equal equal_all greater_equal greater_than is_empty is_tensor isclose less_equal less_than
        logical_and logical_not logical_or logical_xor not_equal __and__=logical_and __or__=logical_or
        __xor__=logical_xor __invert__=logical_not""",
    "manipulation": """broadcast_to cast chunk concat expand expand_as flatten flip gather gather_nd moveaxis
        repeat_interleave reshape reshape_ reverse roll scatter scatter_nd_add slice split squeeze squeeze_ stack
        strided_slice t tile transpose unbind unique unsqueeze unsqueeze_ unstack""",
    "search": "argmax argmin argsort index_sample index_select masked_select nonzero sort topk",
    "linalg": """addmm bincount bmm cross diagonal dist dot histogram inner kron matmul mm mv norm outer trace
        __matmul__=matmul""",
    "random": "bernoulli multinomial",
    "creation": "tril triu clone=assign",
}

_IN_PLACE = "add ceil clip exp floor multiply reciprocal round rsqrt scale sqrt subtract tanh".split()


class _Method:
    """The method `name`, which is `adapt(function)` of a module: loaded on first access."""

    def __init__(
        self, name: str, topic: str, function: str, adapt: Callable[[Any], Any] = lambda function: function
    ) -> None:
        self._name = name
        self._topic = topic
        self._function = function
        self._adapt = adapt

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self._adapt(getattr(_module(self._topic), self._function))
        for cls in owner.__mro__:
            if vars(cls).get(self._name) is self:
                setattr(cls, self._name, function)
        return function.__get__(instance, owner)


def _module(topic: str) -> Any:
    return importlib.import_module(f".{topic}", __package__)


def _choosing(where: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, x: Any, y: Any) -> Any:
        """Elements of `x` where this bool tensor is true, of `y` elsewhere (`Tensor.where`)."""
        return where(self, x, y)

    method.__name__ = method.__qualname__ = "where"
    return method


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    in_place = _module("manipulation").in_place

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return in_place(self, function(self, *args, **kwargs))

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


def _transposed(self: Any) -> Any:
    """The tensor with its axes in the opposite order (`Tensor.T`)."""
    return _module("manipulation").transpose(self, list(range(len(self.shape)))[::-1])


def _swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(other, self)


_sliced = Tensor.__getitem__


def _gathered(gather_indexed: Callable[[Tensor, Any], Tensor]) -> Callable[..., Any]:
    is_plain = _module("indexing").is_plain

    def __getitem__(self: Tensor, index: Any) -> Any:
        """The part of the tensor that `index` says, as NumPy understands it (`Tensor.__getitem__`)."""
        return _sliced(self, index) if is_plain(index) else gather_indexed(self, index)

    return __getitem__


def attach() -> None:
    """Give eager tensors, and Variables of programs where it makes sense, these methods; a class keeps its own."""
    both: dict[str, Any] = {"dim": _dimensions, "ndimension": _dimensions, "T": property(_transposed)}
    eager: dict[str, Any] = {"fill_": _filled, "zero_": _zeroed}
    both["where"] = _Method("where", "search", "where", _choosing)
    for topic, names in _FUNCTIONS.items():
        for listed in names.split():
            name, _, function = listed.partition("=")
            both[name] = _Method(name, topic, function or name)
            if name in _IN_PLACE:
                eager[f"{name}_"] = _Method(f"{name}_", topic, name, _in_place)
    for sign in ("and", "or", "xor"):
        both[f"__r{sign}__"] = _Method(f"__r{sign}__", "logic", f"logical_{sign}", _swapped)
    eager["__setitem__"] = _Method("__setitem__", "indexing", "assigned")
    for cls, methods in ((VariableMath, both), (Tensor, eager)):
        for name, method in methods.items():
            # Classes have `__or__` from their metaclass; what counts is what instances find.
            if not any(name in vars(base) for base in cls.__mro__):
                setattr(cls, name, method)
    Tensor.__getitem__ = _Method("__getitem__", "indexing", "gather_indexed", _gathered)  # type: ignore[method-assign,assignment]
    attach_promotion()
