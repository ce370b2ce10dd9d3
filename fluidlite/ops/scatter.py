"""Scatter-add with repeated indices."""

from __future__ import annotations

from typing import Any


def add_at(xp: Any, target: Any, where: Any, values: Any) -> None:
    """target[where] += values where every occurrence of a place counts; `target` may be of any number type.

    CuPy has no such addition of int64; that of uint64 does the same to the bits.
    """
    if target.dtype == "int64":
        target, values = target.view("uint64"), values.astype("uint64")
    xp.add.at(target, where, values)
