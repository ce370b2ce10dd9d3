"""Layers on sequences (`fluid.layers.sequence_lod`): variables whose rows are grouped by a level of
detail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import missing
from ..framework import Variable
from ..layer_helper import LayerHelper, check_variable
from .checks import check_choice, check_dtype

__all__ = [
    "sequence_concat",
    "sequence_conv",
    "sequence_expand",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_pool",
    "sequence_reverse",
    "sequence_softmax",
]


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """One row for each sequence of `input` (`fluid.layers.sequence_pool`).

    Args:
        input: float rows with at least one level of sequences.
        pool_type: 'average', 'sum', 'sqrt' (sum / sqrt(length)), 'max', 'last' or 'first'.
        is_test: accepted and without effect.
        pad_value: what an empty sequence gives.

    Returns:
        A variable with one level less.
    """
    check_dtype(input, "input", "sequence_pool")
    kinds = ("average", "sum", "sqrt", "max", "last", "first")
    check_choice(pool_type.lower(), "pool_type", kinds, "sequence_pool")
    helper = LayerHelper("sequence_pool")
    out, index = helper.apply(
        "sequence_pool",
        {"X": input},
        ("Out", "MaxIndex"),
        attrs={"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": pad_value},
    )
    if pool_type.lower() == "max":
        index.stop_gradient = True
    out.lod_level = max(input.lod_level - 1, 0)
    result: Variable = out
    return result


def sequence_first_step(input: Variable) -> Variable:
    """The first row of each sequence (`fluid.layers.sequence_first_step`)."""
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    """The last row of each sequence (`fluid.layers.sequence_last_step`)."""
    return sequence_pool(input, "last")


def _applied(
    op_type: str, inputs: dict[str, Any], like: Variable, out: str, name: str | None, **attrs: Any
) -> Variable:
    helper = LayerHelper(op_type, name=name)
    made: Variable = helper.apply(op_type, inputs, (out,), attrs=attrs, dtype=like.dtype)
    made.lod_level = max(like.lod_level, 1)
    return made


def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Softmax within each sequence of scores [rows, 1] or [rows] (`fluid.layers.sequence_softmax`)."""
    check_dtype(input, "input", "sequence_softmax")
    return _applied("sequence_softmax", {"X": input}, input, "Out", name, use_cudnn=use_cudnn)


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """The rows of each sequence in reverse order (`fluid.layers.sequence_reverse`)."""
    check_variable(x, "x", "sequence_reverse")
    return _applied("sequence_reverse", {"X": x}, x, "Y", name)


def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """Repeats each sequence (or row) of `x` as often as `y` has parts there (`fluid.layers.sequence_expand`).

    `ref_level` is the level of `y` that is looked at, -1 for the last.
    """
    check_variable(x, "x", "sequence_expand")
    check_variable(y, "y", "sequence_expand")
    out = _applied("sequence_expand", {"X": x, "Y": y}, x, "Out", name, ref_level=ref_level)
    out.lod_level = x.lod_level
    return out


def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """The first sequences of all inputs joined, then the second ones, and so on
    (`fluid.layers.sequence_concat`).
    """
    items = list(input)
    for item in items:
        check_variable(item, "input", "sequence_concat")
    if not items:
        raise ValueError("'input' of sequence_concat must not be empty")
    return _applied("sequence_concat", {"X": items}, items[0], "Out", name)


def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: Any = None,
    param_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Each row with its neighbours in the sequence, times a filter (`fluid.layers.sequence_conv`).

    Args:
        input: float rows [rows, width] with sequences.
        num_filters: the width of the result.
        filter_size: how many rows the filter sees; beyond the ends of a sequence they are zeros.
        filter_stride: must be 1.
        padding: accepted and without effect, as in Fluid.
        padding_start: where the filter begins, relative to the row; by default -(filter_size // 2).
        param_attr, bias_attr: a ParamAttr, a name or an initializer; `bias_attr=False`: no bias.
        act: the name of an activation.
    """
    check_dtype(input, "input", "sequence_conv")
    if len(input.shape) != 2 or input.shape[1] < 0:
        raise ValueError(f"'input' of sequence_conv must have shape [rows, width], got {list(input.shape)}")
    helper = LayerHelper("sequence_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    weights = helper.create_parameter(
        attr=helper.param_attr, shape=[filter_size * input.shape[1], num_filters], dtype=input.dtype
    )
    attrs = {
        "contextStride": filter_stride,
        "contextStart": -(filter_size // 2) if padding_start is None else padding_start,
        "contextLength": filter_size,
    }
    out = helper.apply("sequence_conv", {"X": input, "Filter": weights}, attrs=attrs, dtype=input.dtype)
    out.lod_level = max(input.lod_level, 1)
    result = helper.append_activation(helper.append_bias_op(out))
    result.lod_level = out.lod_level
    return result


__getattr__ = missing.reporter(__name__)
