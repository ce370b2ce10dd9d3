"""Results of operators that run on their own: the types that the program declares, and those that are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import FLOATS, VarType, to_numpy
from ...base.selected_rows import SelectedRows
from ...base.tensor_array import TensorArray
from ...framework import Operator


def declared_type(op: Operator, name: str) -> np.dtype | None:
    """The type of elements that the program declares for a variable of `op`."""
    var = op.block._find_var_recursive(name)
    return None if var is None or var._dtype is None else to_numpy(var._dtype)


def kept_as(op: Operator, name: str) -> tuple[bool, np.dtype | None]:
    """Whether a result of `op` is a tensor, and its precision, which it does not exceed: for `fitted`."""
    var = op.block._find_var_recursive(name)
    if var is None or var.type != VarType.LOD_TENSOR:
        return False, None
    return True, to_numpy(var._dtype) if var._dtype in FLOATS else None


def fitted(
    value: Any, tensor: bool, precision: np.dtype | None, xp: Any = np, exact: np.dtype | None = None
) -> Any:
    """A result as an array: of type `exact`, or what the kernel made, in the declared precision if that is less.

    Other types that are declared and not computed make no difference, as in Fluid.
    """
    if value is None or not tensor or isinstance(value, (SelectedRows, TensorArray)):
        return value
    made = xp.asarray(value, dtype=exact)
    if (
        exact is None
        and precision is not None
        and made.dtype.kind == "f"
        and made.itemsize > precision.itemsize
    ):
        return made.astype(precision)
    return made
