"""Layers that repeat, reverse and pad: expand, reverse, flip, pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentAssertion
from ...eager import as_number_list, as_numbers
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable, run_op
from ...op_functions import run_layer
from ..checks import check_choice
from .shape_arguments import check_list, known, number_inputs

__all__ = ["expand", "expand_as", "flip", "pad", "pad2d", "pad_constant_like", "reverse"]


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
