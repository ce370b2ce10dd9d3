"""`fluid.data`: variables that a program is fed with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.dtypes import VarType
from ..framework import Variable
from .layers.inputs import check_data, declared

__all__ = ["data"]


def data(name: str, shape: Sequence[int | None], dtype: Any = "float32", lod_level: int = 0) -> Variable:
    """A variable of the main program that each run is fed with (`fluid.data`).

    Args:
        name: the key in the feed.
        shape: the full shape, batch size included; None or -1 where any size will do.
        dtype: the element type of what is fed.
        lod_level: how many levels of sequences the data has; 0 for a plain tensor.

    Returns:
        The variable, whose `shape` has -1 where a size is open.

    Raises:
        TypeError: an argument is of another type.

    Example:
        >>> import paddle.fluid as fluid
        >>> x = fluid.data("x", [None, 3], "float32")
        >>> x.shape
        (-1, 3)
    """
    check_data(name, shape)
    sizes = [-1 if n is None else n for n in shape]
    return declared(
        name,
        sizes,
        dtype=dtype,
        type=VarType.LOD_TENSOR,
        stop_gradient=True,
        lod_level=lod_level,
        need_check_feed=True,
    )
