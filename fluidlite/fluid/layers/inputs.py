"""`fluid.layers.data`: variables that a program is fed with, by shapes without the batch size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base import callsite
from ...base.dtypes import VarType
from ...framework import Variable, default_main_program

__all__ = ["data"]


def data(
    name: str,
    shape: Sequence[int | None],
    append_batch_size: bool = True,
    dtype: Any = "float32",
    lod_level: int = 0,
    type: VarType = VarType.LOD_TENSOR,
    stop_gradient: bool = True,
) -> Variable:
    """A variable of the main program that each run is fed with (`fluid.layers.data`).

    Args:
        name: the key in the feed.
        shape: the shape of one sample; the full one if it holds None or -1, or without `append_batch_size`.
        append_batch_size: put a dimension of any size before `shape`.
        dtype: the element type of what is fed.
        lod_level: how many levels of sequences the data has; 0 for a plain tensor.
        type: the kind of variable.
        stop_gradient: whether no gradient of it is computed.

    Raises:
        TypeError: `name` is no string, or `shape` no list.
    """
    check_data(name, shape)
    sizes = [-1 if n is None else int(n) for n in shape]
    if append_batch_size and all(n >= 0 for n in sizes):
        sizes.insert(0, -1)
    return declared(name, sizes, dtype=dtype, lod_level=lod_level, type=type, stop_gradient=stop_gradient)


def check_data(name: Any, shape: Any) -> None:
    """Raise TypeError if `name` is no string or `shape` no list."""
    if not isinstance(name, (str, bytes)):
        raise TypeError(f"The type of 'name' in data must be a string, but received {name!r}")
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"The type of 'shape' in data must be a list or tuple, but received {shape!r}")


def declared(name: str | bytes, shape: Sequence[int], **described: Any) -> Variable:
    """A data variable of the main program that remembers the user's line, for errors about what is fed."""
    text = name.decode() if isinstance(name, bytes) else name
    var = default_main_program().global_block().create_var(name=text, shape=shape, is_data=True, **described)
    var.line = callsite.user_line()
    return var
