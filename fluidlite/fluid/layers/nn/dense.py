"""Layers that multiply with a parameter: fully connected ones and embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....base.dtypes import FLOATS, VarType, to_vartype
from ....base.errors import ArgumentError
from ....framework import Variable
from ...layer_helper import LayerHelper
from ..checks import check_dtype

__all__ = ["embedding", "fc"]


def fc(
    input: Variable | Sequence[Variable],
    size: int,
    num_flatten_dims: int = 1,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """act(sum of input * weight + bias) (`fluid.layers.fc`).

    Args:
        input: a float variable, or a list of them, each with a weight of its own.
        size: the number of outputs.
        num_flatten_dims: dimensions from this one on are flattened to one row; -1: only the last one.
        param_attr, bias_attr: a ParamAttr, a name or an initializer; `bias_attr=False`: no bias.
        act: the name of an activation.
        name: the prefix of the names of parameters and results.

    Returns:
        A variable of shape `input.shape[:num_flatten_dims] + [size]`.

    Raises:
        TypeError: if `input` is something else.
        ValueError: if a dimension to be flattened is not known.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [None, 3], "float32")
        >>> y = fluid.layers.fc(x, size=2, act="relu")
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.run(fluid.default_startup_program())
        []
        >>> value, = exe.run(feed={"x": np.ones([4, 3], "float32")}, fetch_list=[y])
        >>> value.shape
        (4, 2)
    """
    helper = LayerHelper("fc", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = helper.input_dtype()
    products = []
    for var, attr in helper.iter_inputs_and_params():
        check_dtype(var, "input", "fc")
        lead = len(var.shape) - 1 if num_flatten_dims == -1 else num_flatten_dims
        if not 1 <= lead < len(var.shape):
            raise ArgumentError(
                f"'num_flatten_dims' of fc must be in [1, {len(var.shape)}) for {var.name!r} of shape "
                f"{list(var.shape)}, got {num_flatten_dims}"
            )
        if any(n < 0 for n in var.shape[lead:]):
            raise ArgumentError(
                f"fc needs to know the dimensions {lead} and up of {var.name!r} to size its weight, got shape "
                f"{list(var.shape)}"
            )
        weight = helper.create_parameter(attr=attr, shape=[math.prod(var.shape[lead:]), size], dtype=dtype)
        attrs = {"x_num_col_dims": lead, "y_num_col_dims": 1}
        products.append(helper.run("mul", {"X": var, "Y": weight}, attrs=attrs))
    total = products[0] if len(products) == 1 else helper.run("sum", {"X": products})
    biased = helper.append_bias_op(total, dim_start=len(total.shape) - 1)
    return helper.append_activation(biased)


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """The rows of a trainable table that `input` names (`fluid.layers.embedding`).

    Args:
        input: int64 numbers in [0, size[0]) of shape [..., 1]; `fluid.embedding` takes any shape.
        size: rows and width of the table.
        is_sparse: whether the gradient of the table holds only the rows that were looked up (`SelectedRows`).
        is_distributed: accepted and without effect.
        padding_idx: a number whose rows are zeros and are not trained; negative ones count from the end.
        param_attr: a ParamAttr, a name or an initializer of the table.
        dtype: the element type of the table.

    Returns:
        A variable of shape `input.shape[:-1] + [size[1]]`.

    Raises:
        TypeError: if `input` is not an int64 Variable, or `dtype` no type of floats. ValueError: if
            `padding_idx` lies outside of the table.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> fluid.layers.embedding(ids, size=[100, 16]).shape
        (-1, 16)
    """
    return looked_up("lookup_table", "fluid.layers.embedding", **locals())


def looked_up(
    op_type: str,
    layer: str,
    input: Variable,
    size: Sequence[int],
    is_sparse: bool,
    is_distributed: bool,
    padding_idx: int | None,
    param_attr: Any,
    dtype: Any,
) -> Variable:
    """The implementation of both embeddings; see `embedding`."""
    check_dtype(input, "input", layer, (VarType.INT64,))
    if to_vartype(dtype) not in FLOATS:
        raise TypeError(f"The data type of 'dtype' in {layer} must be a float, but received {dtype}")
    attrs = lookup_attrs(int(size[0]), is_sparse, is_distributed, padding_idx)
    helper = LayerHelper("embedding")
    table = helper.create_parameter(attr=param_attr, shape=list(size), dtype=to_vartype(dtype))
    return helper.run(op_type, {"Ids": input, "W": table}, attrs=attrs)


def lookup_attrs(
    rows: int, is_sparse: bool, is_distributed: bool = False, padding_idx: int | None = None
) -> dict[str, Any]:
    """The attributes of looking rows up in a table of `rows` rows, for embeddings of all kinds."""
    return {
        "is_sparse": is_sparse,
        "is_distributed": is_distributed,
        "remote_prefetch": bool(is_sparse and not is_distributed),
        "padding_idx": -1 if padding_idx is None else padding_idx if padding_idx >= 0 else rows + padding_idx,
    }
