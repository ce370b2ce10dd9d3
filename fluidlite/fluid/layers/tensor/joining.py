"""Layers that join, split, repeat, reverse and pad Variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base import callsite
from ....base.dtypes import VarType
from ....base.errors import ArgumentAssertion, ArgumentError
from ....eager import as_number_list, as_numbers
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable, run_op
from ...layer_helper_base import is_eager
from ...op_functions import run_layer
from ..checks import alone, check_choice
from .shapes import check_list, has_variables, known, number_inputs, one_by_one

__all__ = [
    "concat",
    "expand",
    "expand_as",
    "flip",
    "multiplex",
    "pad",
    "pad2d",
    "pad_constant_like",
    "reverse",
    "split",
    "stack",
    "unstack",
]


def _listed(value: Any, name: str, layer: str) -> list[Variable]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"The type of '{name}' in {layer} must be a list or tuple, but received {type(value).__name__}"
        )
    for index, item in enumerate(value):
        check_variable(item, f"{name}[{index}]", layer)
    if not value:
        raise ArgumentError(f"'{name}' of {layer} must not be empty: it takes at least one Variable")
    return list(value)


def concat(input: Sequence[Variable], axis: int | Variable = 0, name: str | None = None) -> Variable:
    """The Variables of `input` one after another along dimension `axis` (`fluid.layers.concat`).

    Args:
        input: Variables of one type whose shapes differ in `axis` only, or a tensor array of such elements; an eager
            tensor is taken as the list of its rows.
        axis: a dimension, negative ones counted from the end, or a Variable that tells it.
        name: the name of the result.

    Returns:
        A tensor whose size in `axis` is the sum of theirs.

    Raises:
        TypeError: `input` holds something else.
        OperatorError: the shapes do not fit.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> with fluid.dygraph.guard():
        ...     x = fluid.dygraph.to_variable(np.array([[1, 2]]))
        ...     print(fluid.layers.concat([x, x], axis=1).numpy())
        [[1 2 1 2]]
    """
    if _is_array(input):
        return _join_array("concat", input, axis, False)
    if isinstance(input, Variable) and is_eager(input):
        input = list(input)
    elif isinstance(input, Variable):
        callsite.warn("concat was given a single Variable; pass a list of them")
        input = [input]
    input = _listed(input, "input", "concat")
    if isinstance(axis, Variable):
        axis.stop_gradient = True
    return run_layer("concat", locals(), X="input", AxisTensor="axis")


def _is_array(given: Any) -> bool:
    """Whether a tensor array is given, alone or in a list."""
    array = alone(given)
    return isinstance(array, Variable) and array.type == VarType.LOD_TENSOR_ARRAY


def _join_array(layer: str, array: Any, axis: Any, as_stack: bool) -> Variable:
    given = {"x": alone(array), "axis": axis, "use_stack": as_stack}
    return run_layer("tensor_array_to_tensor", given, helper=LayerHelper(layer))[0]


def split(
    input: Variable,
    num_or_sections: int | Sequence[int | Variable],
    dim: int | Variable = -1,
    name: str | None = None,
) -> list[Variable]:
    """`input` cut into parts along dimension `dim` (`fluid.layers.split`).

    Args:
        input: a tensor.
        num_or_sections: how many equal parts, in programs at least 2; or their sizes, one of which may be -1,
            in which Variables of one element may stand.
        dim: a dimension, negative ones counted from the end, or a Variable that tells it.
        name: the prefix of the results' names.

    Raises:
        TypeError: an argument is of another type.
        ValueError: the dimension cannot be cut like that; for parts that are not equal also an AssertionError.
    """
    check_variable(input, "input", "split")
    num_or_sections = as_numbers(num_or_sections)
    dim = dim if isinstance(dim, Variable) else as_numbers(dim)
    if not isinstance(num_or_sections, (int, list, tuple)):
        raise TypeError(
            "The type of 'num_or_sections' in split must be int, list or tuple, but received "
            f"{type(num_or_sections).__name__}"
        )
    if not isinstance(dim, (int, Variable)):
        raise TypeError(
            f"The type of 'dim' in split must be int or Variable, but received {type(dim).__name__}"
        )
    helper = LayerHelper("split", name=name)
    inputs: dict[str, Any] = {"X": [input]}
    attrs: dict[str, Any] = {}
    if isinstance(dim, Variable):
        dim.stop_gradient = True
        inputs["AxisTensor"] = [dim]
    else:
        if not -len(input.shape) <= dim < len(input.shape):
            raise ArgumentError(
                f"'dim' of split must be in [-{len(input.shape)}, {len(input.shape)}), got {dim}"
            )
        attrs["axis"] = dim % len(input.shape)
    if isinstance(num_or_sections, int):
        if num_or_sections < 2 - is_eager(input):
            raise ArgumentAssertion(f"'num_or_sections' of split must be more than 1, got {num_or_sections}")
        size = -1 if isinstance(dim, Variable) or is_eager(input) else input.shape[dim]
        if size > 0 and size % num_or_sections:
            raise ArgumentAssertion(
                f"a dimension of {size} cannot be split into {num_or_sections} equal parts ('num_or_sections')"
            )
        attrs["num"] = count = num_or_sections
    else:
        count = len(num_or_sections)
        attrs["sections"] = known(num_or_sections)
        if has_variables(num_or_sections):
            inputs["SectionsTensorList"] = one_by_one(helper, num_or_sections)
    made = helper.run("split", inputs, [("Out", count)], attrs)
    return list(made) if count > 1 else [made]


def stack(x: Variable | Sequence[Variable], axis: int = 0) -> Variable:
    """The Variables of `x`, or the elements of a tensor array, side by side along a new dimension `axis`.

    They are of one shape. Follows `fluid.layers.stack`.

    Raises TypeError for anything but Variables, OperatorError for shapes that differ.
    """
    if _is_array(x):
        return _join_array("stack", x, axis, True)
    x = [x] if isinstance(x, Variable) else _listed(x, "x", "stack")
    return run_layer("stack", locals())


def unstack(x: Variable, axis: int = 0, num: int | None = None) -> list[Variable]:
    """The entries of `x` along dimension `axis`, without that dimension (`fluid.layers.unstack`).

    `num`: how many there are; needed where the size is not known. Raises TypeError unless `x` is a Variable,
    ValueError if neither is known.
    """
    check_variable(x, "x", "unstack")
    if num is None:
        if not -len(x.shape) <= axis < len(x.shape):
            raise ArgumentError(f"'axis' of unstack must be in [-{len(x.shape)}, {len(x.shape)}), got {axis}")
        num = x.shape[axis]
    if num <= 0:
        raise ArgumentError(
            f"unstack needs 'num' where the size of dimension {axis} is not known: x has {list(x.shape)}"
        )
    made = run_op("unstack", {"X": x}, [("Y", num)], {"axis": axis, "num": num})
    return list(made) if num > 1 else [made]


def multiplex(inputs: Sequence[Variable], index: Variable) -> Variable:
    """Row i of the Variable that row i of `index` chooses among `inputs` (`fluid.layers.multiplex`).

    Args:
        inputs: at least two Variables of one shape and type.
        index: int32 [rows, 1], each between 0 and len(inputs) - 1.

    Raises:
        ValueError: there are fewer than two inputs.
        TypeError: an argument is of another type.
    """
    items = _listed(inputs, "inputs", "multiplex")
    if len(items) < 2:
        raise ArgumentError(f"multiplex needs at least 2 inputs, got {len(items)}")
    return run_layer("multiplex", {"x": items, "index": index}, Ids="index")


def expand(
    x: Variable, expand_times: Sequence[int | Variable] | Variable, name: str | None = None
) -> Variable:
    """`x` repeated `expand_times` times along each dimension (`fluid.layers.expand`).

    Args:
        x: a tensor.
        expand_times: one number for each dimension; the list may hold Variables, or be one.
        name: the name of the result.

    Raises:
        TypeError: `expand_times` is of another type.
        ValueError: a number is not positive.
    """
    check_variable(x, "x", "expand")
    expand_times = as_number_list(expand_times)
    check_list(expand_times, "expand_times", "expand")
    helper = LayerHelper("expand", name=name)
    if not isinstance(expand_times, Variable) and min(known(expand_times, 1), default=1) <= 0:
        raise ArgumentAssertion(
            f"'expand_times' of expand must hold positive numbers, got {list(expand_times)}"
        )
    slots = ("ExpandTimes", "expand_times_tensor")
    inputs, attrs = number_inputs(helper, "expand_times", expand_times, *slots)
    return helper.run("expand", {"X": x, **inputs}, attrs=attrs)


def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """`x` repeated until it has the shape of `target_tensor` (`fluid.layers.expand_as`)."""
    return run_layer("expand_as", locals())


def reverse(x: Variable, axis: int | Sequence[int]) -> Variable:
    """`x` with the order along the dimensions `axis` reversed (`fluid.layers.reverse`)."""
    axis = [axis] if isinstance(axis, int) else list(axis)
    return run_layer("reverse", locals())


def flip(input: Variable, dims: Sequence[int], name: str | None = None) -> Variable:
    """`input` with the order along the dimensions `dims` reversed (`fluid.layers.flip`).

    Raises TypeError unless `dims` is a list or tuple.
    """
    if not isinstance(dims, (list, tuple)):
        raise TypeError(
            f"The type of 'dims' in flip must be a list or tuple, but received {type(dims).__name__}"
        )
    return run_layer("flip", locals(), X="input")


def pad(x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None) -> Variable:
    """`x` with a border of `pad_value` (`fluid.layers.pad`).

    `paddings`: how much before and after, dimension by dimension: two numbers for each.
    """
    paddings, pad_value = as_number_list(paddings), float(as_numbers(pad_value))
    return run_layer("pad", locals())


def pad2d(
    input: Variable,
    paddings: Sequence[int] | Variable = (0, 0, 0, 0),
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Images with a border (`fluid.layers.pad2d`).

    Args:
        input: [N, C, H, W], or [N, H, W, C] as `data_format` says.
        paddings: how much at the top, bottom, left and right, or an int32 Variable of those four.
        mode: `constant`, `reflect` (mirrored at the edge) or `edge` (the edge repeated).
        pad_value: what a constant border holds.
        data_format: `NCHW` or `NHWC`.
        name: the name of the result.

    Raises:
        ValueError: `mode` or `data_format` is something else.
    """
    check_variable(input, "input", "pad2d")
    check_choice(mode, "mode", ("constant", "reflect", "edge"), "pad2d", ArgumentAssertion)
    check_choice(data_format, "data_format", ("NCHW", "NHWC"), "pad2d")
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {"mode": mode, "pad_value": float(pad_value), "data_format": data_format}
    if isinstance(paddings, Variable):
        inputs["Paddings"] = paddings
        attrs["paddings"] = []
    else:
        attrs["paddings"] = list(paddings)
    return run_op("pad2d", inputs, attrs=attrs, name=name)


def pad_constant_like(x: Variable, y: Variable, pad_value: float = 0.0, name: str | None = None) -> Variable:
    """`y` with `pad_value` after its end in each dimension, as large as `x`.

    Follows `fluid.layers.pad_constant_like`.
    """
    pad_value = float(pad_value)
    return run_layer("pad_constant_like", locals())
