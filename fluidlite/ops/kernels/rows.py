"""Kernels on SelectedRows, and on rows that a mask chooses."""

from __future__ import annotations

from .kernel_def import BYTES, declare

declare("merge_rows", "Rows Values OutRows OutValues", "OutRows OutValues", ints="n height width")
declare("rows_to_dense", "Rows Values Out", ints="n height width")
declare("merge_rows", "Mask InTrue InFalse Out", ints="rows true_rows false_rows bytes", types=BYTES)
declare("count_rows", "Mask Out", ints="rows", types=BYTES)
declare(
    "split_rows",
    "Mask X OutTrue OutFalse",
    "OutTrue OutFalse",
    ints="rows true_rows false_rows bytes",
    types=BYTES,
)
