"""Layers on sequences (`fluid.layers.sequence_lod`): variables whose rows are grouped by a level of
detail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.dtypes import VarType, to_vartype
from ...base.errors import ArgumentError, ArgumentNotMet
from ...framework import Variable
from ..layer_helper import LayerHelper
from ..op_functions import run_layer
from .checks import INTEGERS, check_choice, check_dtype, check_dtypes

__all__ = [
    "sequence_concat",
    "sequence_conv",
    "sequence_enumerate",
    "sequence_expand",
    "sequence_expand_as",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_mask",
    "sequence_pad",
    "sequence_pool",
    "sequence_reshape",
    "sequence_reverse",
    "sequence_scatter",
    "sequence_slice",
    "sequence_softmax",
    "sequence_unpad",
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

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [None, 1], "float32", lod_level=1)
        >>> total = fluid.layers.sequence_pool(x, "sum")
        >>> rows = np.array([[1], [2], [3]], "float32")
        >>> sequences = fluid.create_lod_tensor(rows, [[2, 1]], fluid.CPUPlace())
        >>> fluid.Executor(fluid.CPUPlace()).run(feed={"x": sequences}, fetch_list=[total])
        [array([[3.],
               [3.]], dtype=float32)]
    """
    kinds = ("average", "sum", "sqrt", "max", "last", "first")
    check_choice(pool_type.lower(), "pool_type", kinds, "sequence_pool", ArgumentNotMet)
    pool_type = pool_type.upper()
    out, index = run_layer("sequence_pool", locals(), without=("kinds",), X="input", pooltype="pool_type")
    if pool_type == "MAX":
        index.stop_gradient = True
    return out


def sequence_first_step(input: Variable) -> Variable:
    """The first row of each sequence (`fluid.layers.sequence_first_step`)."""
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    """The last row of each sequence (`fluid.layers.sequence_last_step`)."""
    return sequence_pool(input, "last")


def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Softmax within each sequence of scores [rows, 1] or [rows] (`fluid.layers.sequence_softmax`)."""
    return run_layer("sequence_softmax", locals(), X="input")


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """The rows of each sequence in reverse order (`fluid.layers.sequence_reverse`)."""
    return run_layer("sequence_reverse", locals())


def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """Repeats each sequence (or row) of `x` as often as `y` has parts there (`fluid.layers.sequence_expand`).

    `ref_level` is the level of `y` to use, -1 for the last.
    """
    return run_layer("sequence_expand", locals())


def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """The first sequences of all inputs joined, then the second ones, and so on
    (`fluid.layers.sequence_concat`).
    """
    input = list(input)
    return run_layer("sequence_concat", locals(), X="input")


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
        raise ArgumentError(
            f"'input' of sequence_conv must have shape [rows, width], got {list(input.shape)}"
        )
    helper = LayerHelper("sequence_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    weights = helper.create_parameter(
        attr=helper.param_attr, shape=[filter_size * input.shape[1], num_filters], dtype=input.dtype
    )
    attrs = {
        "contextStride": filter_stride,
        "contextStart": -(filter_size // 2) if padding_start is None else padding_start,
        "contextLength": filter_size,
    }
    out = helper.run("sequence_conv", {"X": input, "Filter": weights}, attrs=attrs)
    return helper.append_activation(helper.append_bias_op(out))


def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """The sequences of `x` as a padded batch, and their lengths (`fluid.layers.sequence_pad`).

    Args:
        x: rows [rows, ...] with one level of sequences.
        pad_value: fills the shorter sequences: one element, or a row [...].
        maxlen: how long they are made; by default as long as the longest.

    Returns:
        The batch [sequences, maxlen, ...] of the dtype of `x`, and int64 lengths [sequences].

    Raises:
        EnforceNotMet: when it runs, `x` has no sequences, or one that is longer than `maxlen`.
    """
    padded_length = -1 if maxlen is None else maxlen
    out, length = run_layer("sequence_pad", locals(), without=("maxlen",))
    pad_value.stop_gradient = length.stop_gradient = True
    return out, length


def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """The sequences in a padded batch (`fluid.layers.sequence_unpad`).

    Args:
        x: the batch [sequences, time, ...].
        length: int64 lengths [sequences], each at most `time`.

    Returns:
        Rows [rows, ...] with one level of sequences; [rows, 1] for a batch of two dimensions.
    """
    check_dtype(length, "length", "sequence_unpad", (VarType.INT64,))
    length.stop_gradient = True
    return run_layer("sequence_unpad", locals())


def sequence_mask(
    x: Variable, maxlen: int | Variable | None = None, dtype: Any = "int64", name: str | None = None
) -> Variable:
    """For each length in `x` a row that is 1 before it and 0 from it on (`fluid.layers.sequence_mask`).

    Args:
        x: lengths of any shape.
        maxlen: how long the rows are, as a number or a Variable of one element; by default the largest length.
        dtype: of the result.

    Returns:
        [*shape of x, maxlen].
    """
    out_dtype, maxlen = int(to_vartype(dtype)), -1 if maxlen is None else maxlen
    out: Variable = run_layer("sequence_mask", locals(), without=("dtype",), MaxLenTensor="maxlen")
    out.stop_gradient = True
    return out


def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Repeats each row of `x` as often as the sequence of `y` in its place has rows
    (`fluid.layers.sequence_expand_as`).

    `y` has one level of sequences, which are also those of the result.
    """
    return run_layer("sequence_expand_as", locals())


def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """A slice of each sequence of `input` (`fluid.layers.sequence_slice`).

    `offset` and `length` are integers [sequences, 1]: where in its sequence a piece begins and how many rows it has.
    """
    check_dtypes("sequence_slice", *INTEGERS, offset=offset, length=length)
    offset.stop_gradient = length.stop_gradient = True
    return run_layer("sequence_slice", locals(), X="input")


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """The elements of each sequence of `input` in rows of `new_dim` (`fluid.layers.sequence_reshape`)."""
    return run_layer("sequence_reshape", locals(), X="input")


def sequence_scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """`input` [rows, width] with `updates` added where `index` says (`fluid.layers.sequence_scatter`).

    The sequence of `index` in place of a row holds columns of that row; ids that repeat add up. `updates` has one
    element for each id.
    """
    return run_layer("sequence_scatter", locals(), X="input", Ids="index")


def sequence_enumerate(
    input: Variable, win_size: int, pad_value: int = 0, name: str | None = None
) -> Variable:
    """For each id the `win_size` ids from it on, `pad_value` beyond its sequence
    (`fluid.layers.sequence_enumerate`).

    `input`: integers [rows, 1] with sequences. Returns [rows, win_size].
    """
    return run_layer("sequence_enumerate", locals(), stop_gradient=True, X="input")
