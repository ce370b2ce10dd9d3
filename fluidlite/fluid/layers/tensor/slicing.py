"""Layers that take or write parts of a Variable: slice, crop, gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base.errors import ArgumentError, ArgumentNotMet
from ....eager import as_number_list
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable, check_variables
from ...op_functions import run_layer
from ..checks import alone
from .constants import fill_constant
from .shapes import check_list, number_inputs

__all__ = [
    "crop",
    "crop_tensor",
    "gather",
    "gather_nd",
    "scatter",
    "scatter_nd",
    "scatter_nd_add",
    "slice",
    "strided_slice",
]

Numbers = Sequence[int | Variable] | Variable


def _bounds(
    helper: LayerHelper, bounds: dict[str, Numbers], count: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and attributes for starts, ends and strides of `count` axes."""
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    flags = [1] * count
    for name, values in bounds.items():
        if not isinstance(values, Variable) and len(values) != count:
            raise ArgumentNotMet(
                f"'{name}' of {helper.layer_type} must have a number for each of {count} axes, got {values!r}"
            )
        slot = f"{name.capitalize()}Tensor"
        found, numbers = number_inputs(helper, name, values, slot, f"{slot}List")
        inputs.update(found)
        attrs.update(numbers or {name: []})
        given = [values] * count if isinstance(values, Variable) else values
        flags = [-1 if isinstance(one, Variable) else flag for one, flag in zip(given, flags, strict=True)]
    attrs["infer_flags"] = flags
    return inputs, attrs


def slice(input: Variable, axes: Sequence[int], starts: Numbers, ends: Numbers) -> Variable:
    """`input` from `starts` up to and without `ends` along `axes` (`fluid.layers.slice`).

    Args:
        input: a tensor.
        axes: the dimensions that are cut.
        starts: where each begins; negative numbers count from the end. the list may hold Variables or
            for it.
        ends: where each ends; as `starts`, and greater numbers than the size mean the end.

    Raises:
        ValueError: `axes`, `starts` and `ends` do not fit each other.
        TypeError: an argument is of another type.
        OperatorError: nothing would be left.
    """
    check_variable(input, "input", "slice")
    axes, starts, ends = as_number_list(axes), as_number_list(starts), as_number_list(ends)
    if not isinstance(axes, (list, tuple)):
        raise ArgumentError(f"'axes' of slice must be a list or tuple, got {axes!r}")
    for name, value in (("starts", starts), ("ends", ends)):
        if not isinstance(value, (list, tuple, Variable)):
            raise ArgumentError(f"'{name}' of slice must be a Variable, list or tuple, got {value!r}")
    helper = LayerHelper("slice")
    inputs, attrs = _bounds(helper, {"starts": starts, "ends": ends}, len(axes))
    return helper.run("slice", {"Input": input, **inputs}, attrs={"axes": list(axes), **attrs})


def strided_slice(
    input: Variable, axes: Sequence[int], starts: Numbers, ends: Numbers, strides: Numbers
) -> Variable:
    """`input` from `starts` up to `ends` in steps of `strides` along `axes` (`fluid.layers.strided_slice`).

    Arguments and errors as in `slice`; a negative stride goes backwards.
    """
    check_variable(input, "input", "strided_slice")
    axes, starts, ends, strides = (as_number_list(value) for value in (axes, starts, ends, strides))
    for name, value in (("axes", axes), ("starts", starts), ("ends", ends), ("strides", strides)):
        check_list(value, name, "strided_slice")
    helper = LayerHelper("strided_slice")
    inputs, attrs = _bounds(helper, {"starts": starts, "ends": ends, "strides": strides}, len(axes))
    return helper.run("strided_slice", {"Input": input, **inputs}, attrs={"axes": list(axes), **attrs})


def crop(
    x: Variable,
    shape: Sequence[int] | Variable | None = None,
    offsets: Sequence[int] | Variable | None = None,
    name: str | None = None,
) -> Variable:
    """The part of `x` of `shape` that begins at `offsets` (`fluid.layers.crop`).

    Args:
        x: a tensor.
        shape: the sizes of the part, or a Variable of that shape.
        offsets: where it begins in each dimension, or an int32 Variable that tells; zeros by default.
        name: the name of the result.

    Raises:
        ValueError: `shape` is no list, tuple or Variable.
    """
    check_variable(x, "x", "crop")
    if not isinstance(shape, (list, tuple, Variable)):
        raise ArgumentError(f"'shape' of crop must be a list, tuple or Variable, got {shape!r}")
    offsets = [0] * len(x.shape) if offsets is None else offsets
    return run_layer("crop", locals(), Y="shape")


def crop_tensor(
    x: Variable, shape: Numbers | None = None, offsets: Numbers | None = None, name: str | None = None
) -> Variable:
    """The part of `x` of `shape` that begins at `offsets` (`fluid.layers.crop_tensor`).

    Args:
        x: a tensor.
        shape: the sizes of the part; -1 reaches to the end. the list may hold Variables, or be one.
        offsets: where it begins in each dimension, as `shape`; zeros by default.
        name: the name of the result.

    Raises:
        TypeError: `shape` or `offsets` is of another type.
    """
    check_variable(x, "x", "crop_tensor")
    shape, offsets = as_number_list(shape), as_number_list([0] * len(x.shape) if offsets is None else offsets)
    check_list(shape, "shape", "crop_tensor")
    check_list(offsets, "offsets", "crop_tensor")
    helper = LayerHelper("crop_tensor", name=name)
    out = helper.create_variable_for_type_inference(like=x)  # named before those of sizes
    inputs: dict[str, Any] = {"X": [x]}
    attrs: dict[str, Any] = {}
    for key, value, unknown in (("offsets", offsets, -1), ("shape", shape, 0)):
        slot = key.capitalize()
        found, sizes = number_inputs(helper, key, value, slot, f"{slot}Tensor", unknown)
        inputs.update(found)
        attrs.update(sizes or {key: [-1] * len(x.shape) if key == "offsets" else []})
    return helper.run("crop_tensor", inputs, attrs=attrs, into={"Out": out})


def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """The rows of `input` that `index` names (`fluid.layers.gather`). A list of one Variable is that Variable.

    Args:
        input: [rows, ...].
        index: int32 or int64 [n] or [n, 1], each a row of `input`.
        overwrite: where a row is taken several times its gradient is the last one, otherwise their sum.

    Returns:
        [n, ...].
    """
    input, index = alone(input), alone(index)
    return run_layer("gather", locals(), X="input")


def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """The elements or slices of `input` at the points in `index` (`fluid.layers.gather_nd`).

    `index`: int32 or int64 [..., depth], depth at most the rank of `input`; gives [...,
    *input.shape[depth:]]. A list of one Variable is that Variable.
    """
    input, index = alone(input), alone(index)
    return run_layer("gather_nd", locals(), X="input")


def scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None, overwrite: bool = True
) -> Variable:
    """`input` with the rows that `index` names replaced by `updates` (`fluid.layers.scatter`).

    Args:
        input: [rows, ...].
        index: int32 or int64 [n] or [n, 1].
        updates: [n, ...].
        name: the name of the result.
        overwrite: the last counts where a row is named several times; otherwise their sum.

    A list of one Variable is that Variable.
    """
    input, index, updates = alone(input), alone(index), alone(updates)
    return run_layer("scatter", locals(), X="input", Ids="index")


def scatter_nd_add(ref: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """`ref` with `updates` added at the points in `index` (`fluid.layers.scatter_nd_add`).

    Args:
        ref: a tensor.
        index: int32 or int64 [..., depth].
        updates: [..., *ref.shape[depth:]], of the type of `ref`.
        name: the name of the result.

    Raises:
        ValueError: `ref` and `updates` differ in type.
    """
    index = alone(index)
    check_variables("scatter_nd_add", ref=ref, updates=updates)
    if ref.dtype != updates.dtype:
        raise ArgumentError(
            f"ref and updates of scatter_nd_add must have one data type, got {ref.dtype} and {updates.dtype}"
        )
    return run_layer("scatter_nd_add", locals(), X="ref")


def scatter_nd(index: Variable, updates: Variable, shape: Sequence[int], name: str | None = None) -> Variable:
    """Zeros of `shape` with `updates` added at the points in `index` (`fluid.layers.scatter_nd`)."""
    check_variable(updates, "updates", "scatter_nd")
    return scatter_nd_add(fill_constant(shape, updates.dtype, 0.0), index, updates, name)
