"""Local response normalisation across channels (Krizhevsky et al. 2012)."""

from __future__ import annotations

from typing import Any

from ...base.windows import channels_last
from ..grad_pairs import register_pair
from ..registry import Effects, OpView, Sequences


def _window(xp: Any, x: Any, n: int, axis: int) -> Any:
    """The sum of the `n` neighbours around each element along `axis`."""
    half = (n - 1) // 2
    widths = [(half, n - 1 - half) if k == axis else (0, 0) for k in range(x.ndim)]
    padded = xp.pad(x, widths)
    before = (slice(None),) * axis
    size = x.shape[axis]
    total = xp.zeros_like(x)
    for step in range(n):
        total += padded[before + (slice(step, step + size),)]
    return total


def _channel_axis(data_format: str) -> int:
    return 3 if channels_last(data_format) else 1


def _lrn(xp: Any, X: Any, n: int, k: float, alpha: float, beta: float, data_format: str) -> Any:
    middle = k + alpha * _window(xp, X * X, n, _channel_axis(data_format))
    return X * middle ** X.dtype.type(-beta), middle


def _lrn_grad(
    xp: Any, X: Any, Out: Any, MidOut: Any, Out_grad: Any, n: int, alpha: float, beta: float, data_format: str
) -> Any:
    spread = _window(xp, Out_grad * Out / MidOut, n, _channel_axis(data_format))
    return Out_grad * MidOut ** X.dtype.type(-beta) - 2 * alpha * beta * X * spread


def _infer(op: OpView) -> None:
    shape, n = op.shape("X"), op.attr("n")
    if len(shape) != 4:
        raise op.fail(f"X must have 4 dimensions, got shape {list(shape)}")
    if n < 1 or n % 2 == 0:
        raise op.fail(f"n must be positive and odd, got {n}")
    op.set("Out", shape, op.dtype("X"))
    op.set("MidOut", shape, op.dtype("X"))


_ATTRS: dict[str, Any] = {
    "n": 5,
    "k": 2.0,
    "alpha": 1e-4,
    "beta": 0.75,
    "data_format": "AnyLayout",
    "is_test": False,
}

register_pair(
    "lrn",
    ("X",),
    _lrn,
    _lrn_grad,
    _infer,
    "X over (k + alpha times the sum of squares of n neighbouring channels) to the power of beta.",
    outputs=("Out", "MidOut"),
    attrs=_ATTRS,
    keep_out=("Out", "MidOut"),
    no_grad=("MidOut",),
    sequences=Sequences(source={"Out": "X"}),
    effects=Effects(numbered=False),
)
