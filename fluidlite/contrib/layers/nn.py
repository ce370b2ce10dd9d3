"""Further layers (`fluid.contrib.layers.nn`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base import missing
from ...base.dtypes import VarType
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variables, run_op
from ...layers import checks
from ...layers.checks import INTEGERS
from ...layers.detection.suppression import multiclass_nms2
from .matching import match_matrix_tensor, sequence_topk_avg_pooling, var_conv_2d
from .pyramids import search_pyramid_hash
from .ranks import rank_attention
from .trees import tdm_child, tdm_sampler, tree_conv

__all__ = [
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "match_matrix_tensor",
    "multiclass_nms2",
    "partial_concat",
    "partial_sum",
    "rank_attention",
    "search_pyramid_hash",
    "sequence_topk_avg_pooling",
    "shuffle_batch",
    "tdm_child",
    "tdm_sampler",
    "tree_conv",
    "var_conv_2d",
]


def fused_elemwise_activation(
    x: Variable,
    y: Variable,
    functor_list: str | Sequence[str],
    axis: int = -1,
    scale: float = 0.0,
    save_intermediate_out: bool = True,
) -> Variable:
    """A unary and a binary elementwise function, composed (`fluid.contrib.layers.fused_elemwise_activation`).

    Args:
        x, y: floats; y may be broadcast.
        functor_list: two names, in a list or with a comma: "elementwise_add" or "elementwise_mul", and "scale", "relu",
            "tanh" or "sigmoid". The first is applied last: "elementwise_add,relu" is x + relu(y), and
            "relu,elementwise_add" is relu(x + y).
        axis: the axis of x that the first axis of y is aligned with, as of `elementwise_add`.
        scale: the factor of "scale".
        save_intermediate_out: True to save the intermediate result for the gradient operator.

    Raises:
        ValueError: `functor_list` does not have two names.
        OperatorError: the names are unknown, or the shapes do not fit.
    """
    names = functor_list.split(",") if isinstance(functor_list, str) else functor_list
    if not isinstance(names, (list, tuple)) or len(names) != 2:
        raise ValueError(
            f"functor_list should be a list of str, and the length should be 2, got {functor_list!r}"
        )
    check_variables("fused_elemwise_activation", x=x, y=y)
    helper = LayerHelper("fused_elemwise_activation")
    out, _ = helper.run(
        "fused_elemwise_activation",
        {"X": x, "Y": y},
        ("Out", "IntermediateOut"),
        attrs={
            "axis": axis,
            "scale": scale,
            "save_intermediate_out": save_intermediate_out,
            "functor_list": list(names),
        },
    )
    return out


def _of_columns(
    op_type: str, input: Variable | Sequence[Variable], start_index: int, length: int
) -> Variable:
    inputs: list[Variable] = [input] if isinstance(input, Variable) else list(input)
    for one in inputs:
        checks.check_dtype(one, "input", op_type, (VarType.FP32, VarType.FP64, *INTEGERS))
    return run_op(op_type, {"X": inputs}, attrs={"start_index": start_index, "length": length})


def partial_concat(input: Variable | Sequence[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """The same columns of several matrices, side by side (`fluid.contrib.layers.partial_concat`).

    Args:
        input: a Variable, or several of one shape [rows, width]: floats or integers.
        start_index: the first column; below 0 it counts from the last.
        length: the number of columns; all that follow if negative.

    Returns:
        [rows, length * len(input)].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return _of_columns("partial_concat", input, start_index, length)


def partial_sum(input: Variable | Sequence[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """The same columns of several matrices, added up (`fluid.contrib.layers.partial_sum`).

    Arguments as of `partial_concat`, except that `start_index` must not be negative. Returns [rows, length].
    """
    return _of_columns("partial_sum", input, start_index, length)


def fused_embedding_seq_pool(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    padding_idx: int | None = None,
    combiner: str = "sum",
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """Sums of the rows of a table over the ids of each sequence (`fluid.contrib.layers.fused_embedding_seq_pool`).

    Args:
        input: int64 ids [n, 1] or [n, k, 1] with sequences.
        size: rows and width of the table.
        is_sparse: True for sparse gradients of the table (SelectedRows).
        padding_idx: an id that is ignored; negative numbers count from the end.
        combiner: "sum".
        param_attr: the attributes of the table.
        dtype: float32 or float64.

    Returns:
        [sequences, width], or [sequences, k * width]: sums of the first ids of a sequence's rows, of the second, ...

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    checks.check_dtype(input, "input", "fused_embedding_seq_pool", INTEGERS)
    helper = LayerHelper("fused_embedding_seq_pool", param_attr=param_attr)
    table = helper.create_parameter(attr=helper.param_attr, shape=list(size), dtype=dtype, is_bias=False)
    padding = -1 if padding_idx is None else padding_idx if padding_idx >= 0 else size[0] + padding_idx
    return helper.run(
        "fused_embedding_seq_pool",
        {"W": table, "Ids": input},
        attrs={"is_sparse": is_sparse, "combiner": combiner, "padding_idx": padding},
    )


def shuffle_batch(x: Variable, seed: int | Variable | None = None) -> Variable:
    """The rows of `x` in a random order (`fluid.contrib.layers.shuffle_batch`).

    Args:
        x: floats or integers; all dimensions but the last one are flattened to rows.
        seed: the seed of the first order, or an int64 variable [1] that each run changes. By default the program's
            random_seed, or a random one.

    Raises:
        TypeError: for arguments of another type.
    """
    checks.check_dtype(x, "x", "shuffle_batch", (VarType.FP32, VarType.FP64, *INTEGERS))
    helper = LayerHelper("shuffle_batch")
    attrs: dict[str, Any] = {}
    if not isinstance(seed, Variable):
        if seed is None:
            seed = helper.main_program.random_seed or int(np.random.randint(-65536, 65535))
        attrs["startup_seed"] = seed
        seed = helper.create_variable(
            name=helper._new_name("shuffle_batch_seed"), dtype=VarType.INT64, persistable=True
        )
    outputs = ("Out", "ShuffleIdx", "SeedOut")
    results = helper.run("shuffle_batch", {"X": x, "Seed": seed}, outputs, attrs, into={"SeedOut": seed})
    return results[0]


__getattr__ = missing.reporter(__name__)
