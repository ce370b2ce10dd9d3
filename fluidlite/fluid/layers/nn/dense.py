"""Layers that multiply with a parameter: fully connected ones, embeddings; layers for predictions of clicks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....base.dtypes import FLOATS, VarType, to_vartype
from ....base.errors import ArgumentError
from ....framework import Variable
from ...initializer import ConstantInitializer
from ...layer_helper import LayerHelper
from ...op_functions import run_layer
from ...param_attr import ParamAttr
from ..checks import FORMATS, check_choice, check_dtype

__all__ = [
    "continuous_value_model",
    "data_norm",
    "embedding",
    "fc",
    "filter_by_instag",
    "hash",
]


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


def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Rows whose first two elements count how often something was shown and clicked
    (`fluid.layers.continuous_value_model`).

    Args:
        input: floats [rows, width], the width at least 2; with or without sequences.
        cvm: float counts of showing and clicking, [rows, 2], or a row for each sequence. They are what `input` gets as
            the gradients of its first two columns.
        use_cvm: whether the counts stay, as log(shown + 1) and log(clicked + 1) - log(shown + 1), or are left out.

    Returns:
        [rows, width], or [rows, width - 2].

    Raises:
        TypeError: for arguments of another type.
    """
    check_dtype(input, "input", "cvm")
    # Fluid gives this result a name that does not mention the layer.
    made = LayerHelper("cvm").create_variable(dtype=input.dtype, like=input)
    return run_layer("cvm", locals(), X="input", Y="made")


def hash(input: Variable, hash_size: int, num_hash: int = 1, name: str | None = None) -> Variable:
    """Numbers of buckets for rows of ids, by XXH64 (`fluid.layers.hash`).

    Args:
        input: int32 or int64 ids [rows, width], with or without sequences. The bytes of a row are hashed, so that both
            types give other numbers.
        hash_size: how many buckets there are.
        num_hash: how many hash functions.

    Returns:
        [rows, num_hash, 1] numbers in [0, hash_size), of the type and with the sequences of `input`.

    Raises:
        TypeError: `input` is something else.
    """
    return run_layer("hash", locals(), stop_gradient=True, X="input", mod_by="hash_size")


def filter_by_instag(
    ins: Variable, ins_tag: Variable, filter_tag: Variable, is_lod: bool, out_val_if_empty: int = 0
) -> list[Variable]:
    """The samples that have one of the wanted tags (`fluid.layers.filter_by_instag`).

    Args:
        ins: the samples: the sequences of [rows, ...], or with `is_lod` False its rows.
        ins_tag: int64 tags [n, 1]; their sequences say which are whose.
        filter_tag: the wanted tags, int64 [m].
        is_lod: what a sample is.
        out_val_if_empty: what the one row of the result is made of if no sample is wanted.

    Returns:
        The wanted samples, as sequences, and a weight [samples, 1] to multiply the loss by: 1, or 0 if there are none.

    Raises:
        TypeError: for arguments that are no Variables.
    """
    out, weight, _ = run_layer("filter_by_instag", locals(), ("Out", "LossWeight", "IndexMap"))
    return [out, weight]


def data_norm(
    input: Variable,
    act: str | None = None,
    epsilon: float = 1e-05,
    param_attr: dict[str, float] | None = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    slot_dim: int = -1,
    sync_stats: bool = False,
    summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False,
) -> Variable:
    """Normalises columns by sums over all batches so far (`fluid.layers.data_norm`).

    Count, sum and sum of squares of each column are parameters whose gradients are those of the batch; the optimizer
    adds them up. The result is (input - sum / count) * sqrt(count / squares).

    Args:
        input: floats [rows, width], the width known.
        act: the name of an activation.
        epsilon: in [0, 0.001]; the sum of squares grows by this for each row.
        param_attr: what the parameters start from: "batch_size" (1e4), "batch_sum" (0), "batch_square" (1e4),
            "scale_w" (1), "bias" (0). Anything but a dict leaves them at that.
        data_layout: "NCHW" or "NHWC", the same for matrices.
        in_place: write the result over `input`.
        name: the prefix of the parameters' names; "dn" by default, so that layers without a name share theirs.
        slot_dim: where positive, columns come in slots of so many, which begin with a count; where that is 0 the slot
            is left out, and its result is 0.
        sync_stats, summary_decay_rate: have no effect on a CPU, as in Fluid.
        enable_scale_and_shift: whether to scale and shift the columns by trainable parameters.
        moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var: without effect, as in Fluid.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    check_dtype(input, "input", "data_norm")
    check_choice(data_layout, "data_layout", FORMATS[2], "data_norm")
    helper = LayerHelper("data_norm", name=name, act=act)
    starts = param_attr if isinstance(param_attr, dict) else {}
    prefix, width = "dn" if name is None else name, input.shape[1 if data_layout == "NCHW" else -1]
    parameters = {"BatchSize": ("batch_size", "batch_size", 1e4), "BatchSum": ("batch_sum", "batch_sum", 0.0)}
    parameters["BatchSquareSum"] = ("batch_square_sum", "batch_square", 1e4)
    if enable_scale_and_shift:
        parameters = {"scale_w": ("scale_w", "scale_w", 1.0), "bias": ("bias", "bias", 0.0), **parameters}
    inputs = {"X": [input]}
    for slot, (ending, key, default) in parameters.items():
        attr = ParamAttr(
            name=f"{prefix}.{ending}", initializer=ConstantInitializer(float(starts.get(key, default)))
        )
        inputs[slot] = [helper.create_parameter(attr=attr, shape=[width], dtype=input.dtype)]
    saved = ("Means", "Scales")
    made = {slot: helper.create_variable(dtype=input.dtype, like=input) for slot in saved}
    made["Y"] = input if in_place else helper.create_variable(dtype=input.dtype, like=input)
    attrs = {
        "epsilon": epsilon,
        "slot_dim": slot_dim,
        "sync_stats": sync_stats,
        "summary_decay_rate": summary_decay_rate,
        "enable_scale_and_shift": enable_scale_and_shift,
    }
    out = helper.run("data_norm", inputs, tuple(made), attrs, stop_gradient=saved, into=made)[2]
    return helper.append_activation(out)
