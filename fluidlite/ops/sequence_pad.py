"""Sequences as a padded batch, a padded batch as sequences, and the mask of what counts in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend import to_host
from ..base.dtypes import VarType, to_numpy
from .pairs import register_pair
from .registry import LodArray, OpDef, OperatorError, OpView, register
from .sequence import Lods, Segments, offsets_of, one_level


def _places(lengths: np.ndarray, width: int) -> np.ndarray:
    """Where the rows of sequences stand in a batch [sequences, width] that is read row by row."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows * width + np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _padded_width(lengths: np.ndarray, padded_length: int) -> int:
    longest = int(lengths.max(initial=0))
    if padded_length == -1:
        return longest
    if padded_length < longest:
        raise OperatorError(
            f"operator sequence_pad: padded_length must be -1 or at least {longest}, the length of the longest "
            f"sequence, got {padded_length}"
        )
    return padded_length


def _pad(xp: Any, X: Any, PadValue: Any, padded_length: int, lod: Lods) -> Any:
    lengths = Segments(one_level("sequence_pad", lod, "X")).lengths
    width = _padded_width(lengths, padded_length)
    shape = (len(lengths) * width, *X.shape[1:])
    if PadValue.size != 1 and PadValue.shape != X.shape[1:]:
        raise OperatorError(
            f"operator sequence_pad: PadValue must have one element or the shape {list(X.shape[1:])} of a row, "
            f"got {list(PadValue.shape)}"
        )
    value = PadValue.reshape(()) if PadValue.size == 1 else PadValue
    out = xp.array(xp.broadcast_to(value.astype(X.dtype), shape))
    out[xp.asarray(_places(lengths, width))] = X
    return LodArray(out.reshape(len(lengths), width, *X.shape[1:]), []), LodArray(xp.asarray(lengths), [])


def _pad_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    offsets = one_level("sequence_pad_grad", lod, "X")
    places = _places(np.diff(offsets), Out_grad.shape[1])
    return LodArray(Out_grad.reshape(-1, *X.shape[1:])[xp.asarray(places)], [offsets])


def _pad_infer(op: OpView) -> None:
    shape, padded = op.shape("X"), op.attr("padded_length")
    if len(shape) < 2:
        raise op.fail(f"X must have at least 2 dimensions, got {list(shape)}")
    if padded < 1 and padded != -1:
        raise op.fail(f"padded_length must be -1 or at least 1, got {padded}")
    # Fluid says 1 where the length of the longest sequence decides.
    op.set("Out", (-1, max(padded, 1), *shape[1:]), op.dtype("X"))
    op.set("Length", (-1,), VarType.INT64)


register_pair(
    "sequence_pad",
    ("X", "PadValue"),
    _pad,
    _pad_grad,
    _pad_infer,
    "A batch [sequences, time, ...] with PadValue behind the shorter sequences, and their lengths.",
    outputs=("Out", "Length"),
    attrs={"padded_length": -1},
    keep=("X",),
    gradable=("X",),
    frozen=("Length",),
    lod=True,
)


def _valid(X: Any, Length: Any) -> np.ndarray:
    lengths = np.asarray(to_host(Length), np.int64).reshape(-1)
    if len(lengths) != len(X):
        raise OperatorError(f"operator sequence_unpad: X has {len(X)} rows but Length has {len(lengths)}")
    if ((lengths < 0) | (lengths > X.shape[1])).any():
        raise OperatorError(
            f"operator sequence_unpad: lengths must be in [0, {X.shape[1]}], the padded length, got {lengths.tolist()}"
        )
    return lengths


def _unpad(xp: Any, X: Any, Length: Any, lod: Lods) -> Any:
    lengths = _valid(X, Length)
    rows = X.reshape(-1, *(X.shape[2:] or (1,)))
    return LodArray(rows[xp.asarray(_places(lengths, X.shape[1]))], [offsets_of(lengths)])


def _unpad_grad(xp: Any, X: Any, Length: Any, Out_grad: Any, lod: Lods) -> Any:
    dx = xp.zeros_like(X)
    places = xp.asarray(_places(_valid(X, Length), X.shape[1]))
    dx.reshape(-1, *(X.shape[2:] or (1,)))[places] = Out_grad
    return LodArray(dx, [])


def _unpad_infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) < 2 or len(op.shape("Length")) != 1:
        raise op.fail("X must be [rows, time, ...] and Length [rows]")
    op.set("Out", (-1, *(shape[2:] or (1,))), op.dtype("X"))


register_pair(
    "sequence_unpad",
    ("X", "Length"),
    _unpad,
    _unpad_grad,
    _unpad_infer,
    "The sequences in a padded batch, given their lengths.",
    gradable=("X",),
    lod=True,
)


def _limit(maxlen: int, lengths: Any, tensor: Any) -> int:
    """How wide a mask gets: the value of MaxLenTensor, else `maxlen`, else (-1) the largest length."""
    if tensor is not None:
        return int(np.asarray(to_host(tensor)).reshape(-1)[0])
    return maxlen if maxlen >= 0 else int(np.max(to_host(lengths), initial=0))


def _mask(xp: Any, X: Any, MaxLenTensor: Any, maxlen: int, out_dtype: int) -> Any:
    width = _limit(maxlen, X, MaxLenTensor)
    return (xp.arange(width) < X[..., None]).astype(to_numpy(VarType(out_dtype)))


def _mask_infer(op: OpView) -> None:
    maxlen = op.attr("maxlen")
    if op.has("MaxLenTensor"):
        known = op.value("MaxLenTensor")
        width = -1 if known is None else _limit(maxlen, None, known)
    else:
        known = op.value("X") if maxlen < 0 else None
        width = maxlen if known is None else _limit(maxlen, known, None)
    if width == 0 and maxlen == 0:
        raise op.fail("maxlen must be at least 1, or -1 for the largest length, got 0")
    op.set("Y", (*op.shape("X"), width), VarType(op.attr("out_dtype")))


register(
    OpDef(
        "sequence_mask",
        inputs=("X", "MaxLenTensor?"),
        outputs=("Y",),
        attrs={"maxlen": -1, "out_dtype": int(VarType.INT64)},
        infer=_mask_infer,
        kernel=_mask,
        frozen=("Y",),
        keeps_lod=False,
        doc="For each length the numbers 0, 1, ... below maxlen: 1 where they are below the length, else 0.",
    )
)
