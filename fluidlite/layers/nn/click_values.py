"""Rows that begin with counts of showing and clicking: `continuous_value_model`."""

from __future__ import annotations

from ...framework import Variable
from ...layer_helper import LayerHelper
from ..checks import check_dtype

__all__ = ["continuous_value_model"]


def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Rows whose first two elements count how often something was shown and clicked
    (`fluid.layers.continuous_value_model`).

    Args:
        input: floats [rows, width], the width at least 2; with or without sequences.
        cvm: float counts of showing and clicking, [rows, 2], or a row for each sequence. They are what `input` gets as
            the gradients of its first two columns.
        use_cvm: whether the counts stay, as log(shown + 1) and log(clicked + 1) - log(shown + 1), or are left out.

    Returns:
        [rows, width], or [rows, width - 2].

    Raises:
        TypeError: for arguments of another type.
    """
    check_dtype(input, "input", "cvm")
    helper = LayerHelper("cvm")
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        type="cvm", inputs={"X": [input], "CVM": [cvm]}, outputs={"Y": [out]}, attrs={"use_cvm": use_cvm}
    )
    out.lod_level = input.lod_level
    return out
