"""Fake quantisation: numbers rounded to the steps of an integer of few bits, for quantisation-aware training.

`scale` is the number that maps to the largest integer; larger ones are clipped. None of these operators has a
gradient: passes over programs bypass them.
"""

from __future__ import annotations

from typing import Any

from ..host_fallback import hosted
from ..infer import same_as
from ..math.functions import rounded
from ..registry import Effects, OpDef, OperatorError, OpView, Sequences, register


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
    xp: Any,
    X: Any,
    InScale: Any,
    InAccum: Any,
    InState: Any,
    moving_rate: float,
    bit_length: int,
    is_test: bool,
) -> Any:
    steps, scale, *sums = _quantize_moving(xp, X, InScale, InAccum, InState, moving_rate, bit_length, is_test)
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
        OpDef(
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
