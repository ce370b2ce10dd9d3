"""Matching matrices of two texts (`fluid.contrib.layers.nn`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...framework import Variable
from ...layer_helper import LayerHelper
from ...layers.checks import check_dtype, check_dtypes, numbers

__all__ = ["match_matrix_tensor", "sequence_topk_avg_pooling", "var_conv_2d"]


def match_matrix_tensor(
    x: Variable,
    y: Variable,
    channel_num: int,
    act: str | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Bilinear products of all pairs of rows of two sequences, in `channel_num` channels
    (`fluid.contrib.layers.match_matrix_tensor`).

    Args:
        x, y: floats [rows, width] with equal numbers of sequences.
        channel_num: the number of matrices for each pair of sequences.
        act: the name of an activation.
        param_attr: the attributes of the tensor [width of x, channel_num, width of y].
        dtype: float32 or float64.
        name: the prefix of names.

    Returns:
        The matrices of each pair, channel by channel, as a sequence of [n, 1]; and x times the tensor.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    check_dtypes("match_matrix_tensor", x=x, y=y)
    helper = LayerHelper("match_matrix_tensor", param_attr=param_attr, act=act, name=name)
    weight = helper.create_parameter(
        attr=helper.param_attr, shape=[x.shape[-1], channel_num, y.shape[-1]], dtype=dtype, is_bias=False
    )
    inputs = {"X": x, "Y": y, "W": weight}
    attrs = {"dim_t": channel_num}
    out, through = helper.run("match_matrix_tensor", inputs, ("Out", "Tmp"), attrs, stop_gradient=("Tmp",))
    return helper.append_activation(out), through


def sequence_topk_avg_pooling(
    input: Variable, row: Variable, col: Variable, topks: Sequence[int], channel_num: int
) -> Variable:
    """The means of the largest numbers in each row of matrices (`fluid.contrib.layers.sequence_topk_avg_pooling`).

    Args:
        input: sequences of channel_num * rows * columns numbers, as `match_matrix_tensor` makes them.
        row, col: Variables whose sequences are as long as there are rows and columns.
        topks: how many numbers count, for each mean; where a row has less, the others are zeros.
        channel_num: how many matrices a sequence is.

    Returns:
        [rows, channel_num * len(topks)] with the sequences of `row`.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    check_dtype(input, "input", "sequence_topk_avg_pooling")
    helper = LayerHelper("sequence_topk_avg_pooling")
    attrs = {"topks": list(topks), "channel_num": channel_num}
    inputs = {"X": input, "ROW": row, "COLUMN": col}
    return helper.run("sequence_topk_avg_pooling", inputs, ("Out", "pos"), attrs, stop_gradient=("pos",))[0]


def var_conv_2d(
    input: Variable,
    row: Variable,
    col: Variable,
    input_channel: int,
    output_channel: int,
    filter_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    param_attr: Any = None,
    act: str | None = None,
    dtype: Any = "float32",
    name: str | None = None,
) -> Variable:
    """The convolution of pictures of various sizes (`fluid.contrib.layers.var_conv_2d`).

    Args:
        input: sequences of input_channel * rows * columns numbers.
        row, col: Variables whose sequences are as long as there are rows and columns.
        input_channel, output_channel: how many channels there are.
        filter_size, stride: a number, or one each for rows and columns. Borders are padded with zeros.
        param_attr: of the filter [output_channel, input_channel * height * width].
        act: the name of an activation.
        dtype: float32 or float64.
        name: what names are made from.

    Returns:
        Sequences of output_channel * rows * columns numbers, rows and columns divided by the stride.

    Raises:
        TypeError, ValueError, OperatorError: for arguments that do not fit.
    """
    check_dtype(input, "input", "var_conv_2d")
    helper = LayerHelper("var_conv_2d", param_attr=param_attr, act=act, name=name)
    height, width = numbers(filter_size, 2, "filter_size", "var_conv_2d")
    down, right = numbers(stride, 2, "stride", "var_conv_2d")
    weight = helper.create_parameter(
        attr=helper.param_attr, shape=[output_channel, input_channel * height * width], dtype=dtype
    )
    attrs = {
        "InputChannel": input_channel,
        "OutputChannel": output_channel,
        "StrideH": down,
        "StrideW": right,
        "KernelH": height,
        "KernelW": width,
    }
    inputs = {"X": input, "ROW": row, "COLUMN": col, "W": weight}
    out: Variable = helper.run("var_conv_2d", inputs, ("Out", "Col"), attrs, stop_gradient=("Col",))[0]
    return helper.append_activation(out)
