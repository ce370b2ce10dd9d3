"""`RowsInScope`: SelectedRows as the value of a scope variable (`fluid.core.SelectedRows`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base import selected_rows
from .lod_tensor import LoDTensor


class RowsInScope:
    """Some rows of a table: their indices (`rows()`) and values (`get_tensor()`), and its `height()`."""

    def __init__(self, rows: Sequence[int] = (), height: int = 0) -> None:
        self._rows = [int(row) for row in rows]
        self._height = int(height)
        self._tensor = LoDTensor()

    def height(self) -> int:
        return self._height

    def set_height(self, height: int) -> None:
        self._height = int(height)

    def rows(self) -> list[int]:
        return self._rows

    def set_rows(self, rows: Sequence[int]) -> None:
        self._rows = [int(row) for row in rows]

    def get_tensor(self) -> LoDTensor:
        """The values, [len(rows), ...], as a tensor that can be set."""
        return self._tensor

    def numel(self) -> int:
        """The number of elements of the values."""
        return int(np.prod(self._tensor.shape()))

    def sync_index(self) -> None:
        """Do nothing: there is no index of rows."""

    def value(self) -> selected_rows.SelectedRows:
        """The rows as operators take them; ValueError unless there is a row for each value."""
        return selected_rows.SelectedRows(
            np.array(self._rows, "int64"), self._tensor._elements(), self._height
        )

    def take(self, value: selected_rows.SelectedRows) -> None:
        """Take over the rows that an operator has computed."""
        self._rows, self._height = [int(row) for row in value.rows], value.height
        self._tensor.replace(value.values)
