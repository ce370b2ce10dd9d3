"""Connectionist temporal classification: `warpctc`."""

from __future__ import annotations

from ..base.dtypes import VarType
from ..base.errors import ArgumentError
from ..framework import Variable
from ..layer_helper import LayerHelper
from .checks import check_dtype

__all__ = ["warpctc"]


def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> Variable:
    """The cost of labels whose places in a sequence are not known (`fluid.layers.warpctc`).

    Args:
        input: logits: floats [rows, classes] with sequences; or padded, [time, batch, classes].
        label: integers [rows, 1] with sequences; or padded, [batch, longest].
        blank: the class that stands for no label.
        norm_by_times: divide gradients by the length of their sequence.
        input_length, label_length: int64 [batch]: how long the padded sequences and labels are.

    Returns:
        [batch, 1]; a sequence too short for its label costs 0.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    check_dtype(input, "input", "warpctc")
    check_dtype(label, "label", "warpctc", (VarType.INT32, VarType.INT64))
    if (input_length is None) != (label_length is None):
        raise ArgumentError("'input_length' and 'label_length' of warpctc come together")
    inputs = {
        "Logits": input,
        "Label": label,
        "LogitsLength": input_length,
        "LabelLength": label_length,
    }
    attrs = {"blank": blank, "norm_by_times": norm_by_times}
    loss: Variable
    loss, _ = LayerHelper("warpctc").apply(
        "warpctc", inputs, ("Loss", "WarpCTCGrad"), attrs=attrs, dtype=input.dtype
    )
    return loss
