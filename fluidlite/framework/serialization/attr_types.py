"""The wire types of attributes in saved programs.

Fluid's own reader insists on the declared type (FLOAT for `scale=2`, LONGS for the shape of `fill_constant`).
Most types follow from the operator's declared default, or are declared with it (`Attr`); the names below are those
where Python's types are not enough, for any operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.dtypes import VarType

if TYPE_CHECKING:
    from ..operator import Operator

_BY_NAME = {
    "FLOATS": (
        "anchor_sizes aspect_ratios bbox_reg_weights fixed_ratios fixed_sizes fp32_values max_sizes "
        "min_sizes scale_y "
        "stride variance variances"
    ),
    "LONG": (
        "blocksize max_average_window min_average_window min_row_size_to_use_multithread mod_by num_columns "
        "num_rows out_val_if_empty padding_idx seek"
    ),
    "LONGS": "height_sections int64_values shifts",
    "STRINGS": (
        "op_role_var op_callstack endpoints epmap states ex_states varnames table_names "
        "skip_eager_deletion_vars original_output_grad"
    ),
}
_NAMED = {name: kind for kind, names in _BY_NAME.items() for name in names.split()}
_INT32 = range(-(2**31), 2**31)


def wire_type(op: Operator, name: str, value: Any) -> str:
    """The name of the attribute type that a saved program gives to attribute `name` of `op`, which has
    `value`.

    Raises TypeError for a value that no attribute can hold.
    """
    known = op.definition.attr_types.get(name) or _NAMED.get(name)
    if known is not None:
        return known
    default = op.definition.attrs.get(name)
    if default is not None and not (isinstance(default, (list, tuple)) and not default):
        declared = _of_value(default)
        if declared not in ("INT", "INTS"):
            return declared
    try:
        return _of_value(value)
    except TypeError:
        raise TypeError(
            f"attribute {name!r} of operator {op.type} cannot be saved: expected numbers, strings, blocks or "
            "lists "
            f"of them, got {value!r} of type {type(value).__name__}"
        ) from None


def _of_value(value: Any) -> str:
    from ..block import Block

    if isinstance(value, np.ndarray):
        value = value.ravel().tolist()
    if isinstance(value, (list, tuple)):
        kinds = {_of_value(item) for item in value}
        if kinds <= {"INT", "LONG"}:
            return "LONGS" if "LONG" in kinds else "INTS"
        if kinds <= {"INT", "LONG", "FLOAT"}:
            return "FLOATS"
        if len(kinds) > 1:
            raise TypeError
        return kinds.pop() + "S"
    if isinstance(value, Block):
        return "BLOCK"
    if isinstance(value, (bool, np.bool_)):
        return "BOOLEAN"
    if isinstance(value, (int, np.integer, VarType)):
        return "INT" if int(value) in _INT32 else "LONG"
    if isinstance(value, (float, np.floating)):
        return "FLOAT"
    if isinstance(value, (str, bytes)):
        return "STRING"
    raise TypeError
