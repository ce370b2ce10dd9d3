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

    As `fluid.layers.embedding`, but `input` has any shape.

    Args:
        input: int64 ids of any shape, from 0 to below `size[0]`.
        size: rows and columns of the table.
        is_sparse: the gradient has the rows that were read only.
        is_distributed: the table is on parameter servers.
        padding_idx: an id whose row is read as zeros; negative ones are counted from the end.
        param_attr: a ParamAttr, a name or an initializer of the table.
        dtype: float32 or float64.

    Returns:
        A tensor of shape `input.shape + [size[1]]` and type `dtype`.

    Raises:
        TypeError: for arguments of other types. An id that is out of range raises an OperatorError in the step.

    Example:
        >>> import paddle.fluid as fluid
        >>> words = fluid.data("words", [None, 20], "int64")
        >>> fluid.embedding(words, size=[1000, 32]).shape
        (-1, 20, 32)
    """
    return looked_up("lookup_table_v2", "fluid.embedding", **locals())


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """A float32 vector of length `depth` with a single 1 for each class number in `input` (`fluid.one_hot`).

    As `fluid.layers.one_hot`, but `input` has any shape: the result has shape `input.shape + [depth]`.
    """
    return encoded("one_hot_v2", input, depth, allow_out_of_range)
