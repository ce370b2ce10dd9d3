"""Operators and methods of arrays that are the functions of the same name."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from . import functions, indexing
from .api import API, signature
from .array import ndarray
from .ufuncs import ufuncs

BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "lshift": "left_shift",
    "rshift": "right_shift", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
UNARY = {"neg": "negative", "abs": "absolute", "invert": "invert"}
# Methods that are functions of the array and the rest of the arguments.
SAME = (
    "all any argmax argmin argsort argpartition clip conj conjugate cumprod cumsum diagonal dot max mean min prod ptp "
    "repeat round searchsorted std sum swapaxes trace var choose compress"
).split()


def binary(name: str) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """The operator, the reflected one, and the one in place."""
    function = ufuncs[name]

    def forward(self: Any, other: Any) -> Any:
        return function(self, other)

    def reflected(self: Any, other: Any) -> Any:
        return function(other, self)

    def in_place(self: Any, other: Any) -> Any:
        return function(self, other, out=self)

    return forward, reflected, in_place


def unary(name: str) -> Callable[..., Any]:
    """The operator of one array."""
    function = ufuncs[name]
    return lambda self: function(self)


def method(name: str) -> Callable[..., Any]:
    """A method by the function of the same name, with the parameters of CuPy's method."""
    accepted = signature(API["ndarray"][name])
    function = functions.namespace().get(name) or functions.wrapper(name, vars(np).get(name, _missing), None)

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        assert accepted is not None
        named = accepted.bind(*args, **kwargs).arguments
        return function(self, **{key: value for key, value in named.items() if value is not None})

    run.__name__ = name
    return run


def _missing(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("not simulated")


def operators() -> dict[str, Callable[..., Any]]:
    """The operators and methods, by their names in the class."""
    found: dict[str, Callable[..., Any]] = {
        "__pos__": lambda self: self.copy(),
        "__matmul__": lambda self, other: functions.matmul(self, other),
        "__rmatmul__": lambda self, other: functions.matmul(other, self),
        "__divmod__": lambda self, other: ufuncs["divmod"](self, other),
    }
    for part, name in BINARY.items():
        found[f"__{part}__"], found[f"__r{part}__"], found[f"__i{part}__"] = binary(name)
    for part, name in COMPARISONS.items():
        found[f"__{part}__"] = binary(name)[0]
    for part, name in UNARY.items():
        found[f"__{part}__"] = unary(name)
    for name in SAME:
        found[name] = method(name)
    for name in ("add", "max", "min"):
        found[f"scatter_{name}"] = scatter(name)
    return found


def scatter(name: str) -> Callable[..., None]:
    """`scatter_add` and its kin as methods."""
    return lambda self, slices, value: indexing.scatter(name, self, slices, value)


@functools.cache
def attach() -> None:
    """Give the array class its operators and methods, once."""
    for name, function in operators().items():
        setattr(ndarray, name, function)
