"""unpool: maxima scattered to their original positions (Zeiler et al. 2011)."""

from __future__ import annotations

from typing import Any

from ..grad_pairs import register_pair
from ..registry import OpView, Sequences
from ..value_checks import require_in_range


def _sizes(shape: Any, ksize: list[int], strides: list[int], paddings: list[int]) -> list[int]:
    return [
        (n - 1) * stride - 2 * padding + k if n >= 0 else -1
        for n, k, stride, padding in zip(shape[2:], ksize, strides, paddings, strict=True)
    ]


def _flat(x: Any) -> Any:
    return x.reshape(*x.shape[:2], -1)


def _unpool(xp: Any, X: Any, Indices: Any, ksize: list[int], strides: list[int], paddings: list[int]) -> Any:
    height, width = _sizes(X.shape, ksize, strides, paddings)
    require_in_range(xp, "unpool", "Indices", Indices, height * width, "places")
    made = xp.zeros((*X.shape[:2], height * width), X.dtype)
    n, c = xp.arange(X.shape[0])[:, None, None], xp.arange(X.shape[1])[None, :, None]
    made[n, c, _flat(Indices)] = _flat(X)
    return made.reshape(*X.shape[:2], height, width)


def _unpool_grad(xp: Any, Indices: Any, Out_grad: Any) -> Any:
    return xp.take_along_axis(_flat(Out_grad), _flat(Indices), axis=2).reshape(Indices.shape)


def _infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 4:
        raise op.fail(f"X must be [batch, channels, height, width], got {list(shape)}")
    if op.attr("unpooling_type") != "max":
        raise op.fail(f"unpooling_type must be 'max', got {op.attr('unpooling_type')!r}")
    sizes = _sizes(shape, *(list(op.attr(name)) for name in ("ksize", "strides", "paddings")))
    op.set("Out", (*shape[:2], *sizes), op.dtype("X"))


register_pair(
    "unpool",
    ("X", "Indices"),
    _unpool,
    _unpool_grad,
    _infer,
    "Each element of X at the place that Indices names in its channel; zeros elsewhere.",
    attrs={"ksize": [2, 2], "strides": [1, 1], "paddings": [0, 0], "unpooling_type": "max"},
    keep=("X#", "Indices"),
    no_grad=("Indices",),
    sequences=Sequences(source=None),
)
