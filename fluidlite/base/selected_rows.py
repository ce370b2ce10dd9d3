"""`SelectedRows`: some rows of a large table, the others being zero, as in gradients of sparse embeddings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class SelectedRows:
    """`values[k]` is added to row `rows[k]` of a table of `height` rows; rows may repeat.

    `rows`: int64 [n]; `values`: [n, ...]. `shape` and `dtype` are those of the table. Follows
    `fluid.core.SelectedRows`. Raises ValueError if there are not as many rows as values.
    """

    __slots__ = ("height", "rows", "values")

    def __init__(self, rows: Any, values: Any, height: int) -> None:
        if len(rows) != len(values):
            raise ValueError(
                f"SelectedRows need a row for each value, got {len(rows)} rows and {len(values)} values"
            )
        self.rows = rows
        self.values = values
        self.height = int(height)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.height, *self.values.shape[1:])

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def size(self) -> int:
        """The number of elements of the table."""
        return math.prod(self.shape)

    def merged(self, xp: Any = np) -> SelectedRows:
        """The same with every row once, in ascending order."""
        rows, place = xp.unique(self.rows, return_inverse=True)
        values = xp.zeros((len(rows), *self.values.shape[1:]), self.values.dtype)
        xp.add.at(values, place.reshape(-1), self.values)
        return SelectedRows(rows, values, self.height)

    def held(self) -> SelectedRows:
        """The same without the rows that a merge in a plan has left over, which are below 0."""
        held = self.rows >= 0
        return self if held.all() else SelectedRows(self.rows[held], self.values[held], self.height)

    def dense(self, xp: Any = np) -> Any:
        """The dense table as an array."""
        table = xp.zeros(self.shape, self.values.dtype)
        xp.add.at(table, self.rows, self.values)
        return table

    def with_values(self, values: Any) -> SelectedRows:
        """Other values for the same rows."""
        return SelectedRows(self.rows, values, self.height)

    def __add__(self, other: Any) -> Any:
        """All rows of both; an array if `other` is one."""
        return total(self, other) if isinstance(other, (SelectedRows, np.ndarray)) else NotImplemented

    __radd__ = __add__

    __array_ufunc__ = None  # an array + SelectedRows is our business

    def __repr__(self) -> str:
        return f"SelectedRows({len(self.rows)} of {self.height} rows, values {list(self.values.shape)} {self.dtype})"


def as_dense(value: Any, xp: Any = np) -> Any:
    """`value`, as an array if it is SelectedRows."""
    return value.dense(xp) if isinstance(value, SelectedRows) else value


def total(first: Any, second: Any, xp: Any = np) -> Any:
    """The sum of two values, arrays or SelectedRows: all rows of both, or an array if one is an array."""
    if isinstance(first, SelectedRows) and isinstance(second, SelectedRows):
        rows = xp.concatenate([first.rows, second.rows])
        return SelectedRows(rows, xp.concatenate([first.values, second.values]), first.height)
    return as_dense(first, xp) + as_dense(second, xp)
