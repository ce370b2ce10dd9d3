"""Comparisons and logical operators."""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType
from ...fluid import layers
from ...framework import Variable
from ..modes import by_arguments, run
from . import stat
from .creation import assign

__all__ = [
    "allclose",
    "equal",
    "equal_all",
    "greater_equal",
    "greater_than",
    "is_empty",
    "is_tensor",
    "isclose",
    "less_equal",
    "less_than",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
]


def equal(x: Any, y: Any, name: str | None = None) -> Any:
    """x == y by element, y being a tensor or number, bool (`paddle.equal`). Shapes as in `add`."""
    return x == y


def not_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """x != y; as `equal` (`paddle.not_equal`)."""
    return x != y


def less_than(x: Any, y: Any, name: str | None = None) -> Any:
    """Where x < y; as `equal` (`paddle.less_than`)."""
    return x < y


def less_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Where x <= y; as `equal` (`paddle.less_equal`)."""
    return x <= y


def greater_than(x: Any, y: Any, name: str | None = None) -> Any:
    """Where x > y; as `equal` (`paddle.greater_than`)."""
    return x > y


def greater_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Where x >= y; as `equal` (`paddle.greater_equal`)."""
    return x >= y


def _truth(x: Any) -> Any:
    return x if x.dtype == VarType.BOOL else x.astype(VarType.BOOL)


def _into(out: Any, found: Any) -> Any:
    """`found`, copied into the tensor `out` if there is one."""
    return found if out is None else assign(found, out)


def logical_and(x: Any, y: Any, out: Any = None, name: str | None = None) -> Any:
    """Where both are true, or not zero, bool, into `out` if given (`paddle.logical_and`)."""
    return _into(out, run("logical_and", {"X": _truth(x), "Y": _truth(y)}, name=name, stop_gradient=("Out",)))


def logical_or(x: Any, y: Any, out: Any = None, name: str | None = None) -> Any:
    """Where either or both are true, or not zero, bool, into `out` if given (`paddle.logical_or`)."""
    return _into(out, run("logical_or", {"X": _truth(x), "Y": _truth(y)}, name=name, stop_gradient=("Out",)))


def logical_xor(x: Any, y: Any, out: Any = None, name: str | None = None) -> Any:
    """Where just one is true, or not zero, bool, into `out` if given (`paddle.logical_xor`)."""
    return _into(out, run("logical_xor", {"X": _truth(x), "Y": _truth(y)}, name=name, stop_gradient=("Out",)))


def logical_not(x: Any, out: Any = None, name: str | None = None) -> Any:
    """Where `x` is false, or zero, bool, into `out` if given (`paddle.logical_not`)."""
    return _into(out, run("logical_not", {"X": _truth(x)}, name=name, stop_gradient=("Out",)))


def equal_all(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether x and y have the same shape and elements, bool of shape [1] (`paddle.equal_all`)."""
    if list(x.shape) != list(y.shape):
        with_x = stat.all(x != x)
        return logical_xor(with_x, with_x)
    return stat.all(x == y)


def isclose(
    x: Any, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: str | None = None
) -> Any:
    """Where |x - y| <= atol + rtol * |y|, bool; `equal_nan`: two that are not a number are close (`paddle.isclose`)."""
    distance = run("abs", {"X": x - y})
    close = logical_or(distance <= run("abs", {"X": y}) * rtol + atol, x == y)
    return logical_or(close, logical_and(x != x, y != y)) if equal_nan else close


def allclose(
    x: Any, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: str | None = None
) -> Any:
    """Whether `isclose` is true of all elements, bool of shape [1] (`paddle.allclose`)."""
    return stat.all(isclose(x, y, rtol, atol, equal_nan))


def is_empty(x: Any, name: str | None = None) -> Any:
    """Whether `x` has no elements, bool of shape [1] (`paddle.is_empty`)."""
    return by_arguments(layers.is_empty)(x)


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, eager or of a program (`paddle.is_tensor`)."""
    return isinstance(x, Variable)
