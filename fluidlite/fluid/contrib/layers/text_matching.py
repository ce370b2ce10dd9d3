"""Matching matrices of two texts, and `search_pyramid_hash` (`fluid.contrib.layers.nn`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base.errors import ArgumentTypeError
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...layers.checks import check_dtype, check_dtypes, numbers
from ...param_attr import ParamAttr

__all__ = ["match_matrix_tensor", "search_pyramid_hash", "sequence_topk_avg_pooling", "var_conv_2d"]


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


def search_pyramid_hash(
    input: Variable,
    num_emb: int,
    space_len: int,
    pyramid_layer: int,
    rand_len: int,
    drop_out_percent: float,
    is_training: bool,
    use_filter: bool,
    white_list_len: int,
    black_list_len: int,
    seed: int,
    lr: float,
    param_attr: Any = None,
    param_attr_wl: Any = None,
    param_attr_bl: Any = None,
    name: str | None = None,
    distribute_update_vars: Sequence[str] | None = None,
    dtype: str = "float32",
) -> Variable:
    """Hashed embeddings of all n-grams of ids (`fluid.contrib.layers.search_pyramid_hash`).

    A sequence gets a row for each n-gram of 2 ids, then of 3, up to `pyramid_layer`; one row of zeros if none is left.
    A row is a concatenation of slices of a vector, of `rand_len` numbers each, at offsets given by hashes of the
    n-gram. The vector is no parameter for optimizers: if `input.stop_gradient` is False, a step of `lr` is taken while
    gradients are computed, as in Fluid.

    Args:
        input: int32 [ids, 1] of one level of sequences.
        num_emb: the width of a row, a multiple of `rand_len`.
        space_len: the number of offsets of slices.
        pyramid_layer: the largest length of n-grams, at least 2.
        rand_len: the length of slices.
        drop_out_percent: the fraction of n-grams that is dropped, drawn from `seed` in each run; without `is_training`
            rows are multiplied by it.
        is_training: True to drop n-grams.
        use_filter: True to keep only n-grams in the filter `param_attr_wl` and not in `param_attr_bl`.
        white_list_len, black_list_len: the filters' sizes in float32 numbers; 0 for no filter.
        seed: the seed of the draws.
        lr: the learning rate.
        param_attr: the attributes of the vector [space_len + rand_len, 1]; param_attr_wl, param_attr_bl: of the
            filters.
        name: a prefix of names.
        distribute_update_vars: names among those of the three that servers update.
        dtype: float32.

    Returns:
        Floats [rows, num_emb], of one level of sequences.

    Raises:
        ArgumentTypeError: `distribute_update_vars` is no list.
        ValueError: it has other names.
        OperatorError: sizes do not fit, when the program is built or run.
    """
    check_variable(input, "input", "search_pyramid_hash")
    updated = list(distribute_update_vars or ())
    if distribute_update_vars is not None and not isinstance(distribute_update_vars, list):
        raise ArgumentTypeError(
            f"distribute_update_vars must be a list of names, got {distribute_update_vars!r}"
        )
    known = [ParamAttr._to_attr(attr).name for attr in (param_attr, param_attr_wl, param_attr_bl) if attr]
    for one in updated:
        if one not in known:
            raise ValueError(
                f"search_pyramid_hash has no parameter {one!r} for distribute_update_vars, only {known}"
            )
    helper = LayerHelper("search_pyramid_hash", name=name)
    inputs = {"X": input, "W": helper.create_parameter(param_attr, [space_len + rand_len, 1], dtype)}
    for slot, attr, length in (
        ("WhiteList", param_attr_wl, white_list_len),
        ("BlackList", param_attr_bl, black_list_len),
    ):
        if length > 0:
            inputs[slot] = helper.create_parameter(attr, [length, 1], dtype)
    for slot, parameter in inputs.items():
        if slot != "X":
            parameter.stop_gradient = True
    attrs = {
        "num_emb": num_emb,
        "space_len": space_len,
        "pyramid_layer": pyramid_layer,
        "rand_len": rand_len,
        "drop_out_percent": drop_out_percent,
        "is_training": int(is_training),
        "use_filter": use_filter,
        "white_list_len": white_list_len,
        "black_list_len": black_list_len,
        "seed": seed,
        "lr": lr,
        "distribute_update_vars": ",".join(updated),
    }
    return helper.run("pyramid_hash", inputs, ["Out", "DropPos", "X_Temp_Out"], attrs)[0]
