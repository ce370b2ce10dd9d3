"""var_conv_2d: convolution of images of different sizes, each of which is a sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..registry import Levels, LodArray, OpView, Sequences
from ..sequence import Lods, input_lod
from .matching import pictures

Windows = list[tuple[int, int, slice, slice, slice, slice]]


def _windows(height: int, width: int, kernel: tuple[int, int], stride: tuple[int, int]) -> Windows:
    """For each element of the kernel the slices of outputs that it contributes to, and of pixels that it multiplies.

    The kernel's centre is on every stride-th pixel; the border is padded with zeros.
    """
    result = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            spans = []
            for n, k, s, at in ((height, kernel[0], stride[0], i), (width, kernel[1], stride[1], j)):
                shift = at - k // 2
                first = max(0, -(shift // s))
                last = min((n - 1) // s, (n - 1 - shift) // s)
                spans.append(
                    (slice(first, last + 1), slice(first * s + shift, last * s + shift + 1, s), last >= first)
                )
            (out_rows, rows, some), (out_columns, columns, more) = spans
            if some and more:
                result.append((i, j, out_rows, out_columns, rows, columns))
    return result


def _each(
    op_type: str, X: Any, lod: Lods, channels: int, kernel: tuple[int, int], stride: tuple[int, int]
) -> Iterator[tuple[Any, tuple[int, int], Windows]]:
    """Each picture, the size of its result, and `_windows`."""
    for picture, _ in pictures(op_type, X, lod, channels):
        height, width = picture.shape[1:]
        if height and width:
            size = (height - 1) // stride[0] + 1, (width - 1) // stride[1] + 1
            yield picture, size, _windows(height, width, kernel, stride)
        else:
            yield picture, (0, 0), []


@hosted
def _conv(
    xp: Any,
    X: Any,
    W: Any,
    InputChannel: int,
    OutputChannel: int,
    StrideH: int,
    StrideW: int,
    KernelH: int,
    KernelW: int,
    lod: Lods,
) -> Any:
    kernel, stride = (KernelH, KernelW), (StrideH, StrideW)
    weights = W.reshape(OutputChannel, InputChannel, *kernel)
    parts, patches = [], []
    for picture, size, windows in _each("var_conv_2d", X, lod, InputChannel, kernel, stride):
        made = np.zeros((OutputChannel, *size), X.dtype)
        seen = np.zeros((InputChannel, *kernel, *size), X.dtype)
        for i, j, out_rows, out_columns, rows, columns in windows:
            pixels = seen[:, i, j, out_rows, out_columns] = picture[:, rows, columns]
            made[:, out_rows, out_columns] += np.tensordot(weights[:, :, i, j], pixels, 1)
        parts.append(made)
        patches.append(seen)
    return _sequences(parts, X.dtype), _sequences(patches, X.dtype)


def _sequences(parts: list[np.ndarray], dtype: Any) -> LodArray:
    """The elements of each part as a sequence of rows of one."""
    rows = np.concatenate([*(part.ravel() for part in parts), np.zeros(0, dtype)]).reshape(-1, 1)
    return LodArray(rows, [np.cumsum([0, *(part.size for part in parts)])])


@hosted
def _conv_grad(
    xp: Any,
    X: Any,
    W: Any,
    Out_grad: Any,
    InputChannel: int,
    OutputChannel: int,
    StrideH: int,
    StrideW: int,
    KernelH: int,
    KernelW: int,
    lod: Lods,
) -> Any:
    kernel, stride = (KernelH, KernelW), (StrideH, StrideW)
    weights = W.reshape(OutputChannel, InputChannel, *kernel)
    dw, parts, at = np.zeros_like(weights), [], 0
    for picture, size, windows in _each("var_conv_2d", X, lod, InputChannel, kernel, stride):
        count = OutputChannel * size[0] * size[1]
        grad = Out_grad.reshape(-1)[at : at + count].reshape(OutputChannel, *size)
        at += count
        made = np.zeros_like(picture)
        for i, j, out_rows, out_columns, rows, columns in windows:
            part = grad[:, out_rows, out_columns]
            made[:, rows, columns] += np.tensordot(weights[:, :, i, j].T, part, 1)
            dw[:, :, i, j] += np.tensordot(part, picture[:, rows, columns], ((1, 2), (1, 2)))
        parts.append(made.ravel())
    dx = np.concatenate([*parts, np.zeros(0, X.dtype)]).reshape(X.shape)
    return LodArray(dx, input_lod(lod, "X")), dw.reshape(W.shape)


def _infer(op: OpView) -> None:
    for name in ("InputChannel", "OutputChannel", "StrideH", "StrideW", "KernelH", "KernelW"):
        if op.attr(name) < 1:
            raise op.fail(f"{name} must be positive, got {op.attr(name)}")
    wanted = op.attr("OutputChannel"), op.attr("InputChannel") * op.attr("KernelH") * op.attr("KernelW")
    if op.shape("W") != wanted:
        raise op.fail(f"W must be {list(wanted)}, got {list(op.shape('W'))}")
    for slot in ("Out", "Col"):
        op.set(slot, (-1, 1), op.dtype("X"))


register_pair(
    "var_conv_2d",
    ("X", "ROW", "COLUMN", "W"),
    _conv,
    _conv_grad,
    _infer,
    "The convolution of each sequence of X, a picture with as many rows and columns as those of ROW and COLUMN.",
    outputs=("Out", "Col?"),
    attrs={"InputChannel": 1, "OutputChannel": 1, "StrideH": 1, "StrideW": 1, "KernelH": 1, "KernelW": 1},
    keep=("X", "ROW#", "COLUMN#", "W"),
    keep_out=("Out#", "Col#"),
    no_grad=("ROW", "COLUMN", "Col"),
    sequences=Sequences(levels=Levels("X", outs=("Out",)), takes_lod=True),
)
