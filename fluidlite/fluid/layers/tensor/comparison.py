"""Layers whose results are true or false, and `where`."""

from __future__ import annotations

from typing import Protocol

from ....base.errors import ArgumentTypeError
from ....framework import Variable
from ...layer_helper import LayerHelper
from ...op_functions import public, run_layer
from ..checks import check_switch

__all__ = [
    "elementwise_equal",
    "equal",
    "greater_equal",
    "greater_than",
    "has_inf",
    "has_nan",
    "is_empty",
    "isfinite",
    "less_equal",
    "less_than",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "where",
]


def _compared(
    op_type: str, x: Variable, y: Variable, cond: Variable | None, force_cpu: bool | None = None
) -> Variable:
    """A bool Variable that says how `x` compares with `y`, element by element; `cond` if given."""
    given = {"x": x, "y": y, "cond": cond, "force_cpu": force_cpu}
    return run_layer(op_type, given, stop_gradient=cond is None, Out="cond")


def less_than(
    x: Variable, y: Variable, force_cpu: bool | None = None, cond: Variable | None = None
) -> Variable:
    """Whether x < y, element by element, bool (`fluid.layers.less_than`).

    Args:
        x: a tensor.
        y: a tensor of the same type, of the same shape or one that broadcasts.
        force_cpu: kept in the program; the result is the same.
        cond: what to write; a new variable by default.

    Raises:
        TypeError: an argument is no Variable, or `force_cpu` neither True nor False.
    """
    if force_cpu is not None:
        check_switch(force_cpu, "force_cpu", "less_than", ArgumentTypeError)
    return _compared("less_than", x, y, cond, force_cpu)


class Comparison(Protocol):
    """Two tensors, element by element."""

    def __call__(self, x: Variable, y: Variable, cond: Variable | None = None) -> Variable: ...


def _comparison(op_type: str) -> Comparison:
    def function(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
        return _compared(op_type, x, y, cond)

    return public(function, op_type, note="Arguments as in `less_than`.")


less_equal = _comparison("less_equal")
greater_than = _comparison("greater_than")
greater_equal = _comparison("greater_equal")
equal = _comparison("equal")
not_equal = _comparison("not_equal")


def elementwise_equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Whether x == y, where y may be broadcast (`fluid.layers.elementwise_equal`)."""
    helper = LayerHelper("elementwise_equal", name=name)
    return run_layer("equal", {"x": x, "y": y, "axis": -1}, stop_gradient=True, helper=helper)


class Connective(Protocol):
    """Two tensors of bools, element by element."""

    def __call__(
        self, x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
    ) -> Variable: ...


def _connective(op_type: str) -> Connective:
    def function(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
        return run_layer(op_type, {"x": x, "y": y, "out": out, "name": name})

    note = "Bools of one shape (else TypeError, OperatorError); the result goes into `out` if given."
    return public(function, op_type, note=note)


logical_and = _connective("logical_and")
logical_or = _connective("logical_or")
logical_xor = _connective("logical_xor")


def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether x is false; as `logical_and` (`fluid.layers.logical_not`)."""
    return run_layer("logical_not", locals())


def where(condition: Variable) -> Variable:
    """The indices of the true elements of the bool `condition`, int64 [n, rank] (`fluid.layers.where`)."""
    return run_layer("where_index", locals())


def isfinite(x: Variable) -> Variable:
    """Whether all elements of `x` are finite, bool [1] (`fluid.layers.isfinite`)."""
    return run_layer("isfinite", locals())


def has_inf(x: Variable) -> Variable:
    """Whether any element of `x` is infinite, bool [1] (`fluid.layers.has_inf`)."""
    return run_layer("isinf", locals())


def has_nan(x: Variable) -> Variable:
    """Whether any element of `x` is not a number, bool [1] (`fluid.layers.has_nan`)."""
    return run_layer("isnan", locals())


def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Whether `x` has no elements, bool [1], into `cond` if given (`fluid.layers.is_empty`)."""
    return run_layer("is_empty", locals(), stop_gradient=True, Out="cond")
