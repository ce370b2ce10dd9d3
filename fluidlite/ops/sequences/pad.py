"""Padding and unpadding of sequences, and the mask of valid elements in a padded batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import VarType, to_numpy
from ...base.sizes import whole
from ..grad_pairs import register_pair
from ..infer import grads_like_inputs, product
from ..native import NUMERIC, bytes_of_row, itemsize, typed
from ..registry import Call, Levels, LodArray, OperatorError, OpView, Sequences, grad_name, register
from ..sequence import Lods, Segments, grads_keep_sequences, offsets_of, one_level, segments_of, single

DX, DOUT = grad_name("X"), grad_name("Out")


def _padded_positions(lengths: np.ndarray, width: int) -> np.ndarray:
    """The indices of the rows of sequences in a flattened batch [sequences, width]."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows * width + np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _flat(batch: Any, row: Sequence[int]) -> Any:
    """The rows of a padded batch, one after the other."""
    return batch.reshape(batch.shape[0] * batch.shape[1], *row)


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


def _misshapen(value: Sequence[int], row: Sequence[int]) -> str | None:
    """The message if PadValue neither has one element nor the shape of a row; else None."""
    if product(tuple(value)) == 1 or tuple(value) == tuple(row):
        return None
    return f"PadValue must have one element or the shape {list(row)} of a row, got {list(value)}"


def _pad(xp: Any, X: Any, PadValue: Any, padded_length: int, lod: Lods) -> Any:
    lengths = Segments(one_level("sequence_pad", lod, "X")).lengths
    width = _padded_width(lengths, padded_length)
    shape = (len(lengths) * width, *X.shape[1:])
    wrong = _misshapen(PadValue.shape, X.shape[1:])
    if wrong is not None:
        raise OperatorError(f"operator sequence_pad: {wrong}")
    value = PadValue.reshape(()) if PadValue.size == 1 else PadValue
    out = xp.array(xp.broadcast_to(value.astype(X.dtype), shape))
    out[xp.asarray(_padded_positions(lengths, width))] = X
    return LodArray(out.reshape(len(lengths), width, *X.shape[1:]), []), LodArray(xp.asarray(lengths), [])


def _pad_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    offsets = one_level("sequence_pad_grad", lod, "X")
    places = _padded_positions(np.diff(offsets), Out_grad.shape[1])
    return LodArray(_flat(Out_grad, X.shape[1:])[xp.asarray(places)], [offsets])


def _pad_infer(op: OpView) -> None:
    shape, padded = op.shape("X"), op.attr("padded_length")
    if len(shape) < 2:
        raise op.fail(f"X must have at least 2 dimensions, got {list(shape)}")
    if padded < 1 and padded != -1:
        raise op.fail(f"padded_length must be -1 or at least 1, got {padded}")
    if single(op, "X") is not None:
        wrong = _misshapen(op.shape("PadValue"), shape[1:])
        if wrong is not None:
            raise op.fail(wrong)
    # If the longest sequence determines the size, it is data-dependent; Fluid declares 1.
    width = padded if padded != -1 else -1 if op.exact else 1
    op.set("Out", (op.sequences("X"), width, *shape[1:]), op.dtype("X"))
    op.set("Length", (op.sequences("X"),), VarType.INT64)
    op.carry("Out", ())
    op.carry("Length", ())


def _pad_native(op: OpView) -> Call | None:
    found, padded = segments_of(op, "X"), op.attr("padded_length")
    if found is None or padded == -1 or op.dtype("PadValue") != op.dtype("X"):
        return None
    offsets, count, rows = found
    operands = [op.name("X"), offsets, op.name("PadValue"), op.name("Out"), op.name("Length")]
    sizes = [product(op.shape("X")[1:]), itemsize(op, "X"), product(op.shape("PadValue"))]
    return Call("sequence_pad", operands, [count, rows, padded, *sizes])


def _pad_grad_native(op: OpView) -> Call | None:
    found = segments_of(op, "X")
    if found is None:
        return None
    offsets, count, rows = found
    ints = [count, rows, op.shape(DOUT)[1], bytes_of_row(op, "X")]
    return Call("sequence_pad_grad", [op.name(DOUT), offsets, op.name(DX)], ints)


register_pair(
    "sequence_pad",
    ("X", "PadValue"),
    _pad,
    _pad_grad,
    _pad_infer,
    "A batch [sequences, time, ...] with PadValue after the shorter sequences, and their lengths.",
    outputs=("Out", "Length"),
    attrs={"padded_length": -1},
    keep=("X#",),
    no_grad=("PadValue", "Length"),
    sequences=Sequences(takes_lod=True),
    infer_back=grads_keep_sequences,
    native=(_pad_native, _pad_grad_native),
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
    rows = _flat(X, X.shape[2:] or (1,))
    return LodArray(rows[xp.asarray(_padded_positions(lengths, X.shape[1]))], [offsets_of(lengths)])


def _unpad_grad(xp: Any, X: Any, Length: Any, Out_grad: Any, lod: Lods) -> Any:
    dx = xp.zeros_like(X)
    # Fluid's programs do not pass the lengths here; those of the gradient's sequences are the same.
    lengths = np.diff(one_level("sequence_unpad_grad", lod, DOUT)) if Length is None else Length
    places = xp.asarray(_padded_positions(_valid(X, lengths), X.shape[1]))
    _flat(dx, X.shape[2:] or (1,))[places] = Out_grad
    return LodArray(dx, [])


def _unpad_infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) < 2 or len(op.shape("Length")) != 1:
        raise op.fail("X must be [rows, time, ...] and Length [rows]")
    if op.exact and op.shape("Length")[0] != shape[0]:
        raise op.fail(f"X has {shape[0]} rows but Length has {op.shape('Length')[0]}")
    op.set("Out", (-1, *(shape[2:] or (1,))), op.dtype("X"))


def _unpad_grad_infer(op: OpView) -> None:
    grads_like_inputs(op)
    op.carry(DX, ())


def _unpad_grad_native(op: OpView) -> Call | None:
    if not op.has("Length") or op.dtype("Length") != VarType.INT64:
        return None
    batch, padded, *rest = op.shape("X")
    ints = [batch, op.shape(DOUT)[0], padded, product(tuple(rest)) * itemsize(op, "X")]
    return Call("sequence_unpad_grad", [op.name(DOUT), op.name("Length"), op.name(DX)], ints)


register_pair(
    "sequence_unpad",
    ("X", "Length"),
    _unpad,
    _unpad_grad,
    _unpad_infer,
    "The sequences in a padded batch, given their lengths.",
    keep=("X#", "Length?"),
    no_grad=("Length",),
    sequences=Sequences(levels=Levels("X", least=1), takes_lod=True),
    infer_back=_unpad_grad_infer,
    native=(None, _unpad_grad_native),
)


def _limit(maxlen: int, lengths: Any, tensor: Any) -> int:
    """The width of a mask: the value of MaxLenTensor, else `maxlen`, else (-1) the largest length."""
    if tensor is not None:
        width: int = whole(np.asarray(to_host(tensor)).reshape(-1)[:1])[0]
        if width < 1:
            raise OperatorError(f"operator sequence_mask: MaxLenTensor must be at least 1, got {width}")
        return width
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


def _mask_native(op: OpView) -> Call | None:
    width = op.shape("Y")[-1]
    name = typed(op, "sequence_mask", ("Y",), (*NUMERIC, "u8"))
    if name is None or op.dtype("X") not in (VarType.INT32, VarType.INT64):
        return None
    return Call(name, [op.name("X"), op.name("Y")], [product(op.shape("X")), width, itemsize(op, "X")])


register(
    "sequence_mask",
    inputs=("X", "MaxLenTensor?"),
    outputs=("Y",),
    attrs={"maxlen": -1, "out_dtype": int(VarType.INT64)},
    infer=_mask_infer,
    kernel=_mask,
    no_grad=("Y",),
    native=_mask_native,
    sequences=Sequences(source=None),
    doc="For each length the numbers 0, 1, ... below maxlen: 1 where they are below the length, else 0.",
)
