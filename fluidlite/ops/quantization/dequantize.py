"""Dequantisation: from integers of few bits, or codes of a table, to real numbers."""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType
from ..infer import same_as
from ..registry import OpDef, OpView, register


def _max_abs(xp: Any, X: Any, Scale: Any, max_range: float) -> Any:
    return X * (Scale.reshape(-1)[0] / Scale.dtype.type(max_range))


def _channels(xp: Any, X: Any, Scales: Any, quant_bits: list[int]) -> Any:
    """One array of scales: of the entries of dimension 0; two: of dimension 1, times a number."""
    ranges = [X.dtype.type((1 << (bits - 1)) - 1) for bits in quant_bits]
    if len(Scales) == 1:
        return X * Scales[0].reshape(-1, *[1] * (X.ndim - 1)) / ranges[0]
    by_channel = Scales[0].reshape(-1, *[1] * (X.ndim - 2))
    return X * by_channel * Scales[1].reshape(-1)[0] / (ranges[0] * ranges[1])


def _infer_channels(op: OpView) -> None:
    same_as("X")(op)
    count, bits, x = op.count("Scales"), op.attr("quant_bits"), op.shape("X")
    if count not in (1, 2):
        raise op.fail(f"Scales must be one variable or two, got {count}")
    if len(bits) < count:
        raise op.fail(f"quant_bits must have a number for each of the {count} Scales, got {list(bits)}")
    scales, axis = op.shape("Scales"), count - 1
    if len(scales) != 1 or len(x) <= axis or (scales[0] != x[axis] and min(scales[0], x[axis]) >= 0):
        op.refuse(
            f"the first of Scales must have an element for each entry of dimension {axis} of X, "
            f"got {list(scales)}"
        )


def _abs_max(xp: Any, X: Any, Scale: Any, max_range: float) -> Any:
    return X.astype("float32") * (Scale.reshape(-1)[0] / Scale.dtype.type(max_range))


def _log(xp: Any, X: Any, Dict: Any) -> Any:
    """Look codes up in Dict: 0 to 127 are its values, -128 to -1 the same values negated."""
    places = X.astype("int32")
    return xp.where(places < 0, -Dict[places + 128 * (places < 0)], Dict[places + 128 * (places < 0)])


def _infer_float(op: OpView) -> None:
    if op.dtype("X") != VarType.INT8:
        raise op.fail(f"X must be int8, got {op.dtype('X')}")
    op.set("Out", op.shape("X"), VarType.FP32)


def _register(op_type: str, inputs: tuple[str, ...], attrs: dict[str, Any], **rest: Any) -> None:
    register(OpDef(op_type, inputs, ("Out",), attrs, no_grad=("Out",), **rest))


_register(
    "fake_dequantize_max_abs",
    ("X", "Scale"),
    {"max_range": 0.0},
    infer=same_as("X"),
    kernel=_max_abs,
    doc="X * Scale / max_range.",
)
_register(
    "fake_channel_wise_dequantize_max_abs",
    ("X", "Scales*"),
    {"quant_bits": [8]},
    infer=_infer_channels,
    kernel=_channels,
    doc="X, of which each channel has a scale of its own, in place of integers of so many bits.",
)
_register(
    "dequantize_abs_max",
    ("X", "Scale"),
    {"max_range": 0.0},
    infer=_infer_float,
    kernel=_abs_max,
    doc="The int8 X times Scale / max_range.",
)
_register(
    "dequantize_log",
    ("X", "Dict"),
    {},
    infer=_infer_float,
    kernel=_log,
    doc="What the int8 X stand for in a table of 128 numbers; those below zero for the same with a minus.",
)
