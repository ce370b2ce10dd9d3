"""quantize, dequantize, requantize, lookup_table_dequant: numbers kept as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ..host_fallback import hosted
from ..infer import same_as
from ..registry import Attr, OpDef, OpView, Sequences, register
from ..value_checks import require_in_range


def _rounded(xp: Any, x: Any, kind: Any) -> Any:
    """The nearest integers, halves to even ones, within the range of `kind`."""
    limits = np.iinfo(kind)
    return xp.clip(xp.rint(x), limits.min, limits.max).astype(kind)


def _quantize(xp: Any, Input: Any, Scale: float, is_negative_input: bool) -> Any:
    return _rounded(xp, Input * np.float32(Scale), np.int8 if is_negative_input else np.uint8)


def _infer_quantize(op: OpView) -> None:
    if op.dtype("Input") != VarType.FP32:
        raise op.fail(f"Input must be float32, got {op.dtype('Input')}")
    op.set("Output", op.shape("Input"), VarType.INT8 if op.attr("is_negative_input") else VarType.UINT8)


def _dequantize(xp: Any, Input: Any, Scale: float) -> Any:
    return Input.astype("float32") * np.float32(1 / Scale)


def _bytes_only(op: OpView) -> None:
    if op.dtype("Input") not in (VarType.INT8, VarType.UINT8):
        raise op.fail(f"Input must be int8 or uint8, got {op.dtype('Input')}")


def _infer_dequantize(op: OpView) -> None:
    _bytes_only(op)
    if op.attr("Scale") == 0:
        raise op.fail("Scale must not be 0")
    op.set("Output", op.shape("Input"), VarType.FP32)


def _requantize(xp: Any, Input: Any, Scale_in: float, Scale_out: float) -> Any:
    return _rounded(xp, Input.astype("float32") * np.float32(Scale_out / Scale_in), to_numpy(Input.dtype))


def _infer_requantize(op: OpView) -> None:
    _bytes_only(op)
    if op.attr("Scale_in") == 0:
        raise op.fail("Scale_in must not be 0")
    same_as("Input", "Output")(op)


@hosted
def _lookup(xp: Any, W: Any, Ids: Any, padding_idx: int) -> Any:
    """A row of W: the least and the greatest number, then four bytes in each element."""
    ids = Ids.reshape(-1)
    known = padding_idx if padding_idx >= 0 else None
    require_in_range(xp, "lookup_table_dequant", "Ids", ids, len(W), "rows in W", known)
    found = np.ascontiguousarray(W[np.where(ids == padding_idx, 0, ids)])
    least, step = found[:, :1], (found[:, 1:2] - found[:, :1]) / np.float32(256)
    out = step * found[:, 2:].view(np.uint8).astype("float32") + least
    out[ids == padding_idx] = 0
    return out.reshape(*Ids.shape[:-1], -1)


def _infer_lookup(op: OpView) -> None:
    table, ids = op.shape("W"), op.shape("Ids")
    if len(table) != 2 or 0 <= table[1] <= 2:
        raise op.fail(f"W must be a matrix of more than 2 columns, got shape {list(table)}")
    if op.dtype("W") != VarType.FP32 or op.dtype("Ids") != VarType.INT64:
        raise op.fail(f"W must be float32 and Ids int64, got {op.dtype('W')} and {op.dtype('Ids')}")
    if not ids or ids[-1] not in (1, -1):
        raise op.fail(f"the last dimension of Ids must be 1, got shape {list(ids)}")
    op.set("Out", (*ids[:-1], (table[1] - 2) * 4), VarType.FP32)


register(
    OpDef(
        "quantize",
        ("Input",),
        ("Output",),
        {"is_negative_input": False, "Scale": 1.0, "output_format": "NHWC"},
        infer=_infer_quantize,
        kernel=_quantize,
        no_grad=("Output",),
        doc="Input times Scale as int8, or uint8 where nothing is negative.",
    )
)
register(
    OpDef(
        "dequantize",
        ("Input",),
        ("Output",),
        {"Scale": 1.0},
        infer=_infer_dequantize,
        kernel=_dequantize,
        no_grad=("Output",),
        doc="Bytes divided by Scale.",
    )
)
register(
    OpDef(
        "requantize",
        ("Input",),
        ("Output",),
        {"Scale_in": 1.0, "Scale_out": 1.0},
        infer=_infer_requantize,
        kernel=_requantize,
        no_grad=("Output",),
        doc="Bytes for one scale as bytes for another.",
    )
)
register(
    OpDef(
        "lookup_table_dequant",
        ("W", "Ids"),
        ("Out",),
        {"padding_idx": Attr(-1, "LONG")},
        infer=_infer_lookup,
        kernel=_lookup,
        no_grad=("Out",),
        sequences=Sequences(source="Ids"),
        doc="Rows of a table whose numbers are bytes between the first two elements of each row.",
    )
)
