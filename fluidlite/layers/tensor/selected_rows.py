"""Layers on `SelectedRows`, which gradients of sparse embeddings are."""

from __future__ import annotations

from ...base.dtypes import VarType
from ...framework import Variable
from ...layer_helper import check_variable, run_op

__all__ = ["get_tensor_from_selected_rows", "merge_selected_rows"]


def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """`x` with every row once, the values of equal rows added up (`fluid.layers.merge_selected_rows`).

    Raises TypeError unless `x` is a Variable of type SELECTED_ROWS.
    """
    return _append("merge_selected_rows", x, name)


def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """The values of `x` as a tensor, one row for each row it holds (`fluid.layers.get_tensor_from_selected_rows`).

    Raises TypeError unless `x` is a Variable of type SELECTED_ROWS.
    """
    return _append("get_tensor_from_selected_rows", x, name)


def _append(op_type: str, x: Variable, name: str | None) -> Variable:
    check_variable(x, "x", op_type)
    if x.type != VarType.SELECTED_ROWS:
        raise TypeError(f"The type of 'x' in {op_type} must be SELECTED_ROWS, but {x.name!r} is {x.type}")
    return run_op(op_type, {"X": x}, name=name)
