"""The patches of each image as a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend import to_host
from ..base.windows import Geometry
from .pairs import register_pair
from .patches import gather_patches, scatter_patches
from .registry import LodArray, OperatorError, OpView
from .sequence import Lods, offsets_of


def _sizes(
    image: tuple[int, int], kernels: list[int], strides: list[int], paddings: list[int]
) -> tuple[int, int]:
    """How many patches fit into an image, downwards and across; `paddings` are up, left, down, right."""
    high, wide = ((image[k] + paddings[k] + paddings[k + 2] - kernels[k]) // strides[k] + 1 for k in range(2))
    return high, wide


def _grids(X: Any, Y: Any, attrs: dict[str, Any]) -> list[tuple[int, int]]:
    """The patches of each image; with Y, which holds real sizes, of so much of it as out_stride makes of these."""
    windows = (attrs["kernels"], attrs["strides"], attrs["paddings"])
    whole = _sizes(X.shape[2:], *windows)
    if Y is None:
        grids = [whole] * len(X)
    else:
        stride = attrs["out_stride"]
        real = np.asarray(to_host(Y)).astype(np.int64)
        grids = [_sizes((-(-int(h) // stride[0]), -(-int(w) // stride[1])), *windows) for h, w in real]
    for k, (high, wide) in enumerate(grids):
        if not (0 < high <= whole[0] and 0 < wide <= whole[1]):
            raise OperatorError(
                f"operator im2sequence: image {k} would have {high} x {wide} patches, of {whole[0]} x {whole[1]} that "
                "there are"
            )
    return grids


def _geometry(X: Any, kernels: list[int], strides: list[int], paddings: list[int]) -> Geometry:
    pads = ((paddings[0], paddings[2]), (paddings[1], paddings[3]))
    out = _sizes(X.shape[2:], kernels, strides, paddings)
    return Geometry(X.shape[2:], tuple(kernels), tuple(strides), (1, 1), pads, out)


def _rows(grids: list[tuple[int, int]], g: Geometry) -> np.ndarray:
    """Which of all patches, image by image and row by row, belong to a sequence."""
    each = g.out[0] * g.out[1]
    return np.concatenate(
        [
            (k * each + np.arange(high)[:, None] * g.out[1] + np.arange(wide)).reshape(-1)
            for k, (high, wide) in enumerate(grids)
        ]
        or [np.zeros(0, np.int64)]
    )


def _im2sequence(xp: Any, X: Any, Y: Any, lod: Lods, **attrs: Any) -> Any:
    grids = _grids(X, Y, attrs)
    g = _geometry(X, attrs["kernels"], attrs["strides"], attrs["paddings"])
    patches = gather_patches(xp, X, g, 1)[:, 0].swapaxes(1, 2)
    out = patches.reshape(-1, patches.shape[2])
    if Y is not None:
        out = out[xp.asarray(_rows(grids, g))]
    return LodArray(xp.ascontiguousarray(out), [offsets_of(np.array([h * w for h, w in grids], np.int64))])


def _im2sequence_grad(xp: Any, X: Any, Y: Any, Out_grad: Any, lod: Lods, **attrs: Any) -> Any:
    grids = _grids(X, Y, attrs)
    g = _geometry(X, attrs["kernels"], attrs["strides"], attrs["paddings"])
    patches = xp.zeros((len(X) * g.out[0] * g.out[1], Out_grad.shape[1]), X.dtype)
    patches[xp.asarray(_rows(grids, g))] = Out_grad
    patches = patches.reshape(len(X), 1, -1, Out_grad.shape[1]).swapaxes(2, 3)
    return LodArray(scatter_patches(xp, patches, g), [])


def _infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 4:
        raise op.fail(f"X must be images [batch, channels, height, width], got {list(shape)}")
    kernels = op.attr("kernels")
    high, wide = _sizes(shape[2:], kernels, op.attr("strides"), op.attr("paddings"))
    count = -1 if op.has("Y") or min(shape) < 0 else shape[0] * high * wide
    op.set("Out", (count, shape[1] * kernels[0] * kernels[1]), op.dtype("X"))


register_pair(
    "im2sequence",
    ("X", "Y?"),
    _im2sequence,
    _im2sequence_grad,
    _infer,
    "For each image the sequence of its patches, row by row, each flattened.",
    attrs={"kernels": [1, 1], "strides": [1, 1], "paddings": [0, 0, 0, 0], "out_stride": [1, 1]},
    gradable=("X",),
    lod=True,
)
