"""Arithmetic of several Variables, reductions over dimensions or all elements, extremes and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ....eager import Tensor, as_numbers
from ....framework import Variable
from ...layer_helper import LayerHelper
from ...op_functions import public, run_layer
from ..checks import check_dtype
from ..nn.activations import log
from ..ops import exp

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "elementwise_add",
    "elementwise_div",
    "elementwise_floordiv",
    "elementwise_max",
    "elementwise_min",
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
    "logsumexp",
    "mean",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
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


Dim = int | Sequence[int] | None


def mean(x: Variable, name: str | None = None) -> Variable:
    """The mean of all elements of the float `x`, of shape [1] (`fluid.layers.mean`)."""
    return run_layer("mean", locals())


class Reduction(Protocol):
    """Fewer elements, along some dimensions or all."""

    def __call__(
        self, input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None
    ) -> Variable: ...


_DIMENSIONS = """`dim` is a dimension or a list of them, negative ones counted from the end; None or []: all.

    The result lacks those dimensions, or has them with size 1 if `keep_dim`; without any left it is of shape [1].
    `name`: its name.

    Raises TypeError if `input` is no Variable or `dim` no integer or list, OperatorError if `dim` is out of range.
    """


def _reduction(op_type: str) -> Reduction:
    def function(
        input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None
    ) -> Variable:
        dim = as_numbers(dim)
        if dim is not None and not isinstance(dim, (int, list, tuple)):
            raise TypeError(
                f"The type of 'dim' in {op_type} must be an integer, a list or None, but received {dim!r}"
            )
        dims = [dim] if isinstance(dim, int) else list(dim or ())
        given = {
            "input": input,
            "dim": dims or [0],
            "keep_dim": keep_dim,
            "reduce_all": not dims,
            "name": name,
        }
        return run_layer(op_type, given, X="input")

    return public(function, op_type, note=_DIMENSIONS)


reduce_sum: Reduction = _reduction("reduce_sum")
reduce_mean: Reduction = _reduction("reduce_mean")
reduce_max: Reduction = _reduction("reduce_max")
reduce_min: Reduction = _reduction("reduce_min")
reduce_prod: Reduction = _reduction("reduce_prod")
reduce_all: Reduction = _reduction("reduce_all")
reduce_any: Reduction = _reduction("reduce_any")


def logsumexp(
    x: Variable, dim: Dim = None, keepdim: bool = False, out: Variable | None = None, name: str | None = None
) -> Variable:
    """log(sum(exp(x))) over the dimensions `dim`, into `out` if given (`fluid.layers.logsumexp`)."""
    check_dtype(x, "x", "logsumexp")
    total = reduce_sum(exp(x), dim, keepdim)
    if out is None:
        return log(total, name)
    LayerHelper("logsumexp", name=name).append_op(type="log", inputs={"X": [total]}, outputs={"Out": [out]})
    return out


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the largest element stands, int64 (`fluid.layers.argmax`)."""
    return run_layer("arg_max", locals(), stop_gradient=True)


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the smallest element stands, int64 (`fluid.layers.argmin`)."""
    return run_layer("arg_min", locals(), stop_gradient=True)


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """`input` sorted along `axis`, and where each element stood before, int64 (`fluid.layers.argsort`).

    Equal elements keep their order.
    """
    # In Fluid's programs no gradient goes through it.
    return run_layer("argsort", locals(), stop_gradient=not isinstance(input, Tensor), X="input")
