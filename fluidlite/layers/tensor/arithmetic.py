"""Arithmetic of several Variables: `elementwise_*`, sums, `scale`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ...eager import Tensor
from ...framework import Variable
from ...op_functions import public, run_layer

__all__ = [
    "elementwise_add",
    "elementwise_div",
    "elementwise_floordiv",
    "elementwise_max",
    "elementwise_min",
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
    "scale",
    "sum",
    "sums",
]


class Binary(Protocol):
    """Arithmetic of two tensors."""

    def __call__(
        self, x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None
    ) -> Variable: ...


_ALIGNED = """`x` and `y` are of one type.

    The shape of the one with fewer dimensions stands at dimension `axis` of the other (-1: at its end), and ones in
    either shape are repeated. `act` names an activation of the result.

    Raises TypeError for anything but Variables, OperatorError (a ValueError) for shapes or types that do not fit.
    """


def _binary(op_type: str) -> Binary:
    def function(
        x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None
    ) -> Variable:
        return run_layer(op_type, {"x": x, "y": y, "axis": axis, "act": act, "name": name})

    return public(function, op_type, note=_ALIGNED)


elementwise_add = _binary("elementwise_add")
elementwise_sub = _binary("elementwise_sub")
elementwise_mul = _binary("elementwise_mul")
elementwise_div = _binary("elementwise_div")
elementwise_max = _binary("elementwise_max")
elementwise_min = _binary("elementwise_min")
elementwise_pow = _binary("elementwise_pow")
elementwise_mod = _binary("elementwise_mod")
elementwise_floordiv = _binary("elementwise_floordiv")


def sums(input: Variable | Sequence[Variable], out: Variable | None = None) -> Variable:
    """The sum of Variables of one shape and type, into `out` if given (`fluid.layers.sums`)."""
    return run_layer("sum", locals(), X="input")


def sum(x: Variable | Sequence[Variable]) -> Variable:
    """The sum of Variables of one shape and type (`fluid.layers.sum`)."""
    return run_layer("sum", locals())


def scale(
    x: Variable,
    scale: float | Variable = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: Any = None,
    name: str | None = None,
) -> Variable:
    """scale * x + bias, or scale * (x + bias) without `bias_after_scale` (`fluid.layers.scale`).

    Args:
        x: a tensor of any number type.
        scale: a number or a Variable of one element.
        bias: a number.
        bias_after_scale: whether the bias is added last.
        act: the name of an activation of the result, in programs. Eager tensors get none, as in Fluid.
        name: the name of the result.
    """
    act = None if isinstance(x, Tensor) else act
    return run_layer("scale", locals(), ScaleTensor="scale")
