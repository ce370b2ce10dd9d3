"""Numbers of few bits: fake quantisation in training, quantisation to integers, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ..host_fallback import hosted
from ..infer import same_as
from ..registry import Attr, Effects, OperatorError, OpView, Sequences, register
from ..value_checks import require_in_range
from .functions import rounded

# Fake quantisation: numbers rounded to the steps of an integer of few bits, for quantisation-aware training.
#
# `scale` is the number that maps to the largest integer; larger ones are clipped. None of these operators has a
# gradient: passes over programs bypass them.


def _largest(bits: int) -> int:
    """The largest signed integer of `bits` bits."""
    return (1 << (bits - 1)) - 1


def _inverse(xp: Any, scale: Any) -> Any:
    """1 / scale, finite where scale is almost 0."""
    one, tiny = scale.dtype.type(1), scale.dtype.type(1e-6)
    return xp.where(scale <= 1e-30, one / (scale + tiny), one / scale)


def _steps(xp: Any, x: Any, scale: Any, bits: int) -> Any:
    """The quantised integers of x, in the type of x."""
    steps = x.dtype.type(_largest(bits)) * _inverse(xp, scale)
    return rounded(xp, steps * xp.clip(x, -scale, scale))


def _abs_max(xp: Any, X: Any) -> Any:
    return xp.abs(X).max() if X.size else xp.zeros((), X.dtype)


def _quantize_abs_max(xp: Any, X: Any, bit_length: int) -> Any:
    scale = _abs_max(xp, X)
    return _steps(xp, X, scale, bit_length), scale.reshape(1)


def _quantize_channels(xp: Any, X: Any, bit_length: int) -> Any:
    channels = xp.abs(X).reshape(len(X), -1).max(axis=1)
    return _steps(xp, X, channels.reshape(-1, *[1] * (X.ndim - 1)), bit_length), channels


def _averaged(xp: Any, X: Any, InAccum: Any, InState: Any, rate: float) -> Any:
    """The decaying mean of the largest absolute values, and the two sums that it is the quotient of."""
    if InAccum is None or InState is None:
        raise OperatorError("a moving average needs InAccum and InState unless is_test is set")
    rate = X.dtype.type(rate)
    state = rate * InState.reshape(1) + X.dtype.type(1)
    accum = rate * InAccum.reshape(1) + _abs_max(xp, X)
    return accum / state, state, accum


def _quantize_moving(
    xp: Any,
    X: Any,
    InScale: Any,
    InAccum: Any,
    InState: Any,
    moving_rate: float,
    bit_length: int,
    is_test: bool,
) -> Any:
    if is_test:
        scale, state, accum = InScale.reshape(1), InState, InAccum
    else:
        scale, state, accum = _averaged(xp, X, InAccum, InState, moving_rate)
    return _steps(xp, X, scale, bit_length), scale, state, accum


def _quantize_dequantize_moving(
    xp: Any, X: Any, InScale: Any, InAccum: Any, InState: Any, bit_length: int, **attrs: Any
) -> Any:
    made = _quantize_moving(xp, X, InScale, InAccum, InState, bit_length=bit_length, **attrs)
    steps, scale, *sums = made
    return steps * (scale / scale.dtype.type(_largest(bit_length))), scale, *sums


def _observe_moving(xp: Any, X: Any, InAccum: Any, InState: Any, moving_rate: float, is_test: bool) -> Any:
    if is_test:
        return X, None, InState, InAccum
    return X, *_averaged(xp, X, InAccum, InState, moving_rate)


@hosted
def _quantize_range(
    xp: Any, X: Any, InScale: Any, Iter: Any, OutScales: Any, window_size: int, bit_length: int, is_test: bool
) -> Any:
    """The scale is the largest absolute value of the last `window_size` steps."""
    scale = InScale.reshape(-1)[0]
    if not is_test:
        if Iter is None:
            raise OperatorError(
                "operator fake_quantize_range_abs_max: Iter is missing; only is_test needs none"
            )
        step, now = int(Iter.reshape(-1)[0]), _abs_max(xp, X)
        window = xp.zeros(window_size, X.dtype) if OutScales is None else OutScales.copy()
        dropped = window[step % window_size]
        window[step % window_size] = now
        if now > scale:
            scale = now
        elif abs(dropped - scale) < 1e-6:
            scale = window[: min(step, window_size)].max(initial=0)
        OutScales = window
    return _steps(xp, X, scale, bit_length), scale.reshape(1), OutScales


def _infer_one(op: OpView) -> None:
    same_as("X")(op)
    op.set("OutScale", (1,), op.dtype("X"))


def _infer_channels(op: OpView) -> None:
    same_as("X")(op)
    op.set("OutScale", op.shape("X")[:1], op.dtype("X"))


def _infer_range(op: OpView) -> None:
    _infer_one(op)
    if op.attr("window_size") < 1:
        raise op.fail(f"window_size must be positive, got {op.attr('window_size')}")
    op.set("OutScales", (op.attr("window_size"),), op.dtype("X"))


def _infer_moving(op: OpView) -> None:
    _infer_one(op)
    for slot in ("OutState", "OutAccum"):
        op.set(slot, (1,), op.dtype("X"))


def _infer_observed(op: OpView) -> None:
    if op.building or not op.attr("is_test"):
        _infer_moving(op)
        return
    same_as("X")(op)  # OutScale keeps its value
    for slot, source in (("OutState", "InState"), ("OutAccum", "InAccum")):
        if op.has(source):
            op.set(slot, op.shape(source), op.dtype(source))


def _register(
    op_type: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    attrs: dict[str, Any],
    infer: Any,
    kernel: Any,
    doc: str,
    updates: tuple[str, ...] = (),
) -> None:
    no_grad = tuple(slot.rstrip("?") for slot in outputs)
    register(
        op_type,
        inputs,
        outputs,
        attrs,
        infer=infer,
        kernel=kernel,
        no_grad=no_grad,
        sequences=Sequences(source={"Out": "X"}),
        effects=Effects(updates=updates),
        doc=doc,
    )


_BITS = {"bit_length": 8}
_MOVING = {"moving_rate": 0.9, "is_test": False}
_SUMS_IN, _SUMS_OUT = ("InAccum?", "InState?"), ("OutState?", "OutAccum?")

_register(
    "fake_quantize_abs_max",
    ("X",),
    ("Out", "OutScale"),
    _BITS,
    _infer_one,
    _quantize_abs_max,
    "X in steps, of which the largest absolute value is the last.",
)
_register(
    "fake_channel_wise_quantize_abs_max",
    ("X",),
    ("Out", "OutScale"),
    _BITS,
    _infer_channels,
    _quantize_channels,
    "fake_quantize_abs_max of each entry of the first dimension.",
)
_register(
    "fake_quantize_range_abs_max",
    ("X", "InScale", "Iter?"),
    ("Out", "OutScale", "OutScales?"),
    {"window_size": 10000, "is_test": False, **_BITS},
    _infer_range,
    _quantize_range,
    "X in steps, of which the last is the largest absolute value in a window of steps that OutScales holds.",
    updates=("OutScales",),
)
_register(
    "fake_quantize_moving_average_abs_max",
    ("X", "InScale", *_SUMS_IN),
    ("Out", "OutScale", *_SUMS_OUT),
    {**_MOVING, **_BITS},
    _infer_moving,
    _quantize_moving,
    "X in steps, of which the last is a decaying mean of largest absolute values.",
)
_register(
    "fake_quantize_dequantize_moving_average_abs_max",
    ("X", "InScale", *_SUMS_IN),
    ("Out", "OutScale", *_SUMS_OUT),
    {**_MOVING, **_BITS},
    _infer_moving,
    _quantize_dequantize_moving,
    "What fake_quantize_moving_average_abs_max makes, times the size of a step: X, rounded.",
)
_register(
    "moving_average_abs_max_scale",
    ("X", *_SUMS_IN),
    ("Out", "OutScale", *_SUMS_OUT),
    _MOVING,
    _infer_observed,
    _observe_moving,
    "X itself, and the decaying mean of its largest absolute values.",
)


def _max_abs(xp: Any, X: Any, Scale: Any, max_range: float) -> Any:
    return X * (Scale.reshape(-1)[0] / Scale.dtype.type(max_range))


def _channels(xp: Any, X: Any, Scales: Any, quant_bits: list[int]) -> Any:
    """One array of scales: of the entries of dimension 0; two: of dimension 1, times a number."""
    ranges = [X.dtype.type((1 << (bits - 1)) - 1) for bits in quant_bits]
    if len(Scales) == 1:
        return X * Scales[0].reshape(-1, *[1] * (X.ndim - 1)) / ranges[0]
    by_channel = Scales[0].reshape(-1, *[1] * (X.ndim - 2))
    return X * by_channel * Scales[1].reshape(-1)[0] / (ranges[0] * ranges[1])


def _dequantize_infer_channels(op: OpView) -> None:
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


def _dequantize_abs_max(xp: Any, X: Any, Scale: Any, max_range: float) -> Any:
    return X.astype("float32") * (Scale.reshape(-1)[0] / Scale.dtype.type(max_range))


def _log(xp: Any, X: Any, Dict: Any) -> Any:
    """Look codes up in Dict: 0 to 127 are its values, -128 to -1 the same values negated."""
    places = X.astype("int32")
    return xp.where(places < 0, -Dict[places + 128 * (places < 0)], Dict[places + 128 * (places < 0)])


def _infer_float(op: OpView) -> None:
    if op.dtype("X") != VarType.INT8:
        raise op.fail(f"X must be int8, got {op.dtype('X')}")
    op.set("Out", op.shape("X"), VarType.FP32)


register(
    "fake_dequantize_max_abs",
    ("X", "Scale"),
    attrs={"max_range": 0.0},
    infer=same_as("X"),
    kernel=_max_abs,
    no_grad=("Out",),
    doc="X * Scale / max_range.",
)
register(
    "fake_channel_wise_dequantize_max_abs",
    ("X", "Scales*"),
    attrs={"quant_bits": [8]},
    infer=_dequantize_infer_channels,
    kernel=_channels,
    no_grad=("Out",),
    doc="X, of which each channel has a scale of its own, in place of integers of so many bits.",
)
register(
    "dequantize_abs_max",
    ("X", "Scale"),
    attrs={"max_range": 0.0},
    infer=_infer_float,
    kernel=_dequantize_abs_max,
    no_grad=("Out",),
    doc="The int8 X times Scale / max_range.",
)
register(
    "dequantize_log",
    ("X", "Dict"),
    infer=_infer_float,
    kernel=_log,
    no_grad=("Out",),
    doc="What the int8 X stand for in a table of 128 numbers; those below zero for the same with a minus.",
)


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
    "quantize",
    ("Input",),
    ("Output",),
    {"is_negative_input": False, "Scale": 1.0, "output_format": "NHWC"},
    infer=_infer_quantize,
    kernel=_quantize,
    no_grad=("Output",),
    doc="Input times Scale as int8, or uint8 where nothing is negative.",
)
register(
    "dequantize",
    ("Input",),
    ("Output",),
    {"Scale": 1.0},
    infer=_infer_dequantize,
    kernel=_dequantize,
    no_grad=("Output",),
    doc="Bytes divided by Scale.",
)
register(
    "requantize",
    ("Input",),
    ("Output",),
    {"Scale_in": 1.0, "Scale_out": 1.0},
    infer=_infer_requantize,
    kernel=_requantize,
    no_grad=("Output",),
    doc="Bytes for one scale as bytes for another.",
)
register(
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
