"""`SelectedRows`: rows that may come several times."""

import numpy as np
import pytest

from fluidlite.base.selected_rows import SelectedRows, as_dense


def rows():
    return SelectedRows(np.array([4, 1, 4]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float32"), 6)


def test_shape_and_dtype_are_those_of_the_table():
    assert rows().shape == (6, 2) and rows().dtype == np.float32 and rows().size == 12


def test_merged_has_each_row_once_in_ascending_order():
    merged = rows().merged()
    np.testing.assert_array_equal(merged.rows, [1, 4])
    np.testing.assert_array_equal(merged.values, [[3, 4], [6, 8]])
    assert merged.shape == (6, 2) and merged.dtype == np.float32


def test_dense_is_the_whole_table():
    table = np.zeros((6, 2), "float32")
    table[1], table[4] = [3, 4], [6, 8]
    np.testing.assert_array_equal(rows().dense(), table)
    np.testing.assert_array_equal(as_dense(rows()), table)
    assert as_dense(table) is table


def test_sums_keep_rows_or_become_dense():
    twice = rows() + rows()
    assert isinstance(twice, SelectedRows) and len(twice.rows) == 6
    ones = np.ones((6, 2), "float32")
    for total in (ones + rows(), rows() + ones):
        np.testing.assert_array_equal(total, ones + rows().dense())


def test_every_value_needs_a_row():
    with pytest.raises(ValueError, match="got 2 rows and 3 values"):
        SelectedRows(np.array([1, 2]), np.zeros((3, 2)), 6)
