"""Arithmetic of several Variables, comparisons and logic, reductions, extremes and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ....base.errors import ArgumentTypeError
from ....eager import Tensor, as_numbers
from ....framework import Variable
from ...layer_helper import LayerHelper
from ...op_functions import public, run_layer
from ..checks import check_dtype, check_switch
from ..nn.activations import log
from ..ops import exp

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "elementwise_add",
    "elementwise_div",
    "elementwise_equal",
    "elementwise_floordiv",
    "elementwise_max",
    "elementwise_min",
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
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
    "logsumexp",
    "mean",
    "not_equal",
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
    "where",
]


class Binary(Protocol):
    """Arithmetic of two tensors."""

    def __call__(
        self, x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None
    ) -> Variable: ...


_ALIGNED = """

    Args:
        x, y: tensors of one type: float32, float64, int32 or int64. Sizes of 1 in either shape are repeated.
        axis: the dimension of the tensor with more dimensions at which the shape of the other stands; -1: at its end.
        act: the name of an activation of the result.
        name: the name of the result.

    Returns:
        A tensor of their type and of the larger shape.

    Raises:
        TypeError: `x` or `y` is no Variable, or of another type.
        OperatorError: (a ValueError) the shapes do not fit.
        EnforceNotMet: the types differ, which is noticed when the result is computed.

    Example:
        >>> import paddle.fluid as fluid
        >>> x, y = fluid.data("x", [None, 3, 4], "float32"), fluid.data("y", [3], "float32")
        >>> THIS(x, y, axis=1).shape
        (-1, 3, 4)
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
    """The mean of all elements (`fluid.layers.mean`).

    Args:
        x: a float tensor of any shape.
        name: the name of the result.

    Returns:
        A tensor of shape [1] and the type of `x`.

    Raises:
        TypeError: `x` is no Variable, or of another type.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> with fluid.dygraph.guard():
        ...     x = fluid.dygraph.to_variable(np.array([[1, 2], [3, 6]], "float32"))
        ...     print(fluid.layers.mean(x).numpy())
        [3.]
    """
    return run_layer("mean", locals())


class Reduction(Protocol):
    """Fewer elements, along some dimensions or all."""

    def __call__(
        self, input: Variable, dim: Dim = None, keep_dim: bool = False, name: str | None = None
    ) -> Variable: ...


_DIMENSIONS = """

    Args:
        input: a tensor of TYPES.
        dim: a dimension or a list of them, negative ones counted from the end; None or []: all.
        keep_dim: keep those dimensions, with size 1.
        name: the name of the result.

    Returns:
        A tensor of the type of `input` without those dimensions; of shape [1] if none is left.

    Raises:
        TypeError: `input` is no Variable, or `dim` no integer or list.
        OperatorError: `dim` is out of range.

    Example:
        >>> import paddle.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "SAMPLE")
        >>> THIS(x, dim=[1, 2]).shape, THIS(x, dim=1, keep_dim=True).shape
        ((-1,), (-1, 1, 4))
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

    logical = op_type in ("reduce_all", "reduce_any")
    note = _DIMENSIONS.replace("TYPES", "bool" if logical else "float32, float64, int32 or int64")
    return public(function, op_type, note=note.replace("SAMPLE", "bool" if logical else "float32"))


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
