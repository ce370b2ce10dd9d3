"""spp: an image pooled into 1, 2 x 2, 4 x 4, ... bins, whatever its size."""

from __future__ import annotations

from typing import Any

from ..grad_pairs import register_pair
from ..registry import OpView, Sequences
from .pool import _pool, _pool_grad


def _levels(height: int, width: int, pyramid_height: int) -> list[dict[str, Any]]:
    """The attributes of each level's pooling."""
    result = []
    for level in range(pyramid_height):
        bins = 1 << level
        size = [-(-n // bins) for n in (height, width)]
        paddings = [(k * bins - n + 1) // 2 for k, n in zip(size, (height, width), strict=True)]
        result.append(
            {
                "ksize": size,
                "strides": size,
                "paddings": paddings,
                "global_pooling": False,
                "exclusive": True,
                "adaptive": False,
            }
        )
    return result


def _spp(xp: Any, X: Any, pyramid_height: int, pooling_type: str) -> Any:
    parts = [
        _pool(xp, X, pooling_type=pooling_type, **level).reshape(len(X), -1)
        for level in _levels(X.shape[2], X.shape[3], pyramid_height)
    ]
    return xp.concatenate(parts, axis=1)


def _spp_grad(xp: Any, X: Any, Out_grad: Any, pyramid_height: int, pooling_type: str) -> Any:
    total, begin = xp.zeros_like(X), 0
    for number, level in enumerate(_levels(X.shape[2], X.shape[3], pyramid_height)):
        bins = 1 << number
        end = begin + X.shape[1] * bins * bins
        part = Out_grad[:, begin:end].reshape(*X.shape[:2], bins, bins)
        total += _pool_grad(xp, X, part, pooling_type=pooling_type, **level)
        begin = end
    return total


def _infer(op: OpView) -> None:
    shape, count = op.shape("X"), op.attr("pyramid_height")
    if len(shape) != 4:
        raise op.fail(f"X must be images [batch, channels, height, width], got shape {list(shape)}")
    if op.attr("pooling_type") not in ("max", "avg"):
        raise op.fail(f"pooling_type must be 'max' or 'avg', got {op.attr('pooling_type')!r}")
    for size in shape[2:]:
        for bins in (1 << level for level in range(count)):
            kernel = -(-size // bins)
            if size >= 0 and (kernel * bins - size + 1) // 2 >= kernel:
                raise op.fail(f"an image of shape {list(shape[2:])} is too small for {bins} x {bins} bins")
    op.set("Out", (shape[0], shape[1] * ((4**count - 1) // 3)), op.dtype("X"))


register_pair(
    "spp",
    ("X",),
    _spp,
    _spp_grad,
    _infer,
    "The maxima or means of 1, 2 x 2, 4 x 4, ... bins of an image, side by side.",
    attrs={"pyramid_height": 1, "pooling_type": "max"},
    sequences=Sequences(source=None),
)
