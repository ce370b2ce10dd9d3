"""Operators that run blocks, tensor arrays, and rows that go several ways."""

from . import branches, loops, rank_table, recurrent, split_rows, step_arrays, tensor_array  # noqa: F401
