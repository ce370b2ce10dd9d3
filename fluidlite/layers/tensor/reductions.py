"""Reductions: means, sums, extremes and products over some dimensions or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...eager import as_numbers
from ...framework import Variable
from ...layer_helper import LayerHelper
from ...op_functions import public, run_layer
from ..checks import check_dtype
from ..nn.activations import log
from ..ops import exp

__all__ = [
    "logsumexp",
    "mean",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
]

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
