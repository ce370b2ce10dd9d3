"""The inputs of a program: `data`, `InputSpec`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...fluid.data import data as fluid_data
from ...fluid.dygraph.jit.models import InputSpec
from ..dtypes import get_default_dtype

__all__ = ["InputSpec", "data"]


def data(name: str, shape: Sequence[int | None], dtype: Any = None, lod_level: int = 0) -> Any:
    """A variable that `Executor.run` feeds (`paddle.static.data`).

    Args:
        name: the key in `feed`.
        shape: None or -1 where the size is not known yet.
        dtype: its element type, by default that of floats.
        lod_level: how many levels of sequences it holds.
    """
    return fluid_data(name, shape, get_default_dtype() if dtype is None else dtype, lod_level)
