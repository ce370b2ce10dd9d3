"""Layers that make one number of many: means, sums, extremes, products over some dimensions or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.dtypes import VarType
from ...eager import as_numbers
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable, run_op
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
    check_dtype(x, "x", "mean")
    return run_op("mean", {"X": x}, name=name)


def _reduced(op_type: str, input: Variable, dim: Dim, keep_dim: bool, name: str | None) -> Variable:
    """`op_type` over the dimensions `dim`: a number, several, or None or an empty list for all.

    The result lacks those dimensions, or has them with size 1 if `keep_dim`; without any left it is of shape
    [1].
    """
    check_variable(input, "input", op_type)
    dim = as_numbers(dim)
    if dim is not None and not isinstance(dim, (int, list, tuple)):
        raise TypeError(
            f"The type of 'dim' in {op_type} must be an integer, a list or None, but received {dim!r}"
        )
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    everything = not dims or len(dims) == len(input.shape) == 1
    attrs: dict[str, Any] = {"dim": dims or [0], "keep_dim": keep_dim, "reduce_all": everything}
    return run_op(op_type, {"X": input}, attrs=attrs, name=name)


def reduce_sum(input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None) -> Variable:
    """The sum over the dimensions `dim` (`fluid.layers.reduce_sum`).

    Args:
        input: a tensor of numbers.
        dim: a dimension or a list of them, negative ones counted from the end; None for all.
        keep_dim: keep the dimensions with size 1 instead of dropping them.
        name: what the result is called.

    Raises:
        TypeError: `input` is no Variable or `dim` no integer or list.
        OperatorError: `dim` is out of range.
    """
    return _reduced("reduce_sum", input, dim, keep_dim, name)


def reduce_mean(
    input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """The mean over the dimensions `dim`; arguments as in `reduce_sum` (`fluid.layers.reduce_mean`)."""
    return _reduced("reduce_mean", input, dim, keep_dim, name)


def reduce_max(input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None) -> Variable:
    """The largest over the dimensions `dim`; arguments as in `reduce_sum` (`fluid.layers.reduce_max`)."""
    return _reduced("reduce_max", input, dim, keep_dim, name)


def reduce_min(input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None) -> Variable:
    """The smallest over the dimensions `dim`; arguments as in `reduce_sum` (`fluid.layers.reduce_min`)."""
    return _reduced("reduce_min", input, dim, keep_dim, name)


def reduce_prod(
    input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """The product over the dimensions `dim`; arguments as in `reduce_sum` (`fluid.layers.reduce_prod`)."""
    return _reduced("reduce_prod", input, dim, keep_dim, name)


def reduce_all(input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None) -> Variable:
    """Whether all of the bool `input` over the dimensions `dim` are true (`fluid.layers.reduce_all`)."""
    check_dtype(input, "input", "reduce_all", [VarType.BOOL])
    return _reduced("reduce_all", input, dim, keep_dim, name)


def reduce_any(input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None) -> Variable:
    """Whether any of the bool `input` over the dimensions `dim` is true (`fluid.layers.reduce_any`)."""
    check_dtype(input, "input", "reduce_any", [VarType.BOOL])
    return _reduced("reduce_any", input, dim, keep_dim, name)


def logsumexp(
    x: Variable, dim: Dim = None, keepdim: bool = False, out: Variable | None = None, name: str | None = None
) -> Variable:
    """log(sum(exp(x))) over the dimensions `dim`, into `out` if given (`fluid.layers.logsumexp`)."""
    check_dtype(x, "x", "logsumexp")
    total = reduce_sum(exp(x, name), dim, keepdim)
    if out is None:
        return log(total, name)
    LayerHelper("logsumexp", name=name).append_op(type="log", inputs={"X": [total]}, outputs={"Out": [out]})
    return out
