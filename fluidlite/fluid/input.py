"""`fluid.embedding` and `fluid.one_hot`: the forms that take ids of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..framework import Variable
from .layers.nn.dense import looked_up
from .layers.nn.probability import encoded

__all__ = ["embedding", "one_hot"]


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """The rows of a trainable table that `input` names (`fluid.embedding`).

    As `fluid.layers.embedding`, but `input` has any shape: the result has shape `input.shape + [size[1]]`.
    """
    return looked_up("lookup_table_v2", "fluid.embedding", **locals())


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """A float32 vector of length `depth` with a single 1 for each class number in `input` (`fluid.one_hot`).

    As `fluid.layers.one_hot`, but `input` has any shape: the result has shape `input.shape + [depth]`.
    """
    return encoded("one_hot_v2", input, depth, allow_out_of_range)
