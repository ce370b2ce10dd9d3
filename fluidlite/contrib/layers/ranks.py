"""`rank_attention`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable

__all__ = ["rank_attention"]


def rank_attention(
    input: Variable,
    rank_offset: Variable,
    rank_param_shape: Sequence[int],
    rank_param_attr: Any,
    max_rank: int = 3,
) -> Variable:
    """A sum over the neighbours of each row, weighted by the ranks of both (`fluid.contrib.layers.rank_attention`).

    The sum over k of `input[index_k]` times the block of the parameter for both ranks, [rows, columns]; 0 for rows
    without a rank. (Fluid has it for GPUs only.)

    Args:
        input: floats [rows, width].
        rank_offset: int32 [rows, 2 * max_rank + 1]: the rank of a row, counted from 1, then for each neighbour its rank
            and its row; 0 for none.
        rank_param_shape: [max_rank * max_rank * width, columns].
        rank_param_attr: the attributes of the parameter.
        max_rank: the number of ranks.

    Raises:
        OperatorError: the shapes do not fit.
    """
    check_variable(input, "input", "rank_attention")
    helper = LayerHelper("rank_attention")
    table = helper.create_parameter(rank_param_attr, list(rank_param_shape), input.dtype)
    table.stop_gradient = False
    return helper.run(
        "rank_attention",
        {"X": input, "RankOffset": rank_offset, "RankParam": table},
        attrs={"MaxRank": max_rank},
    )
