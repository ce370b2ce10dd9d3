"""The patches of each image as a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backend import to_host
from ...base.windows import Geometry, window_count
from ..grad_pairs import register_pair
from ..native import typed
from ..nn.conv import gather_patches, scatter_patches
from ..registry import Call, Levels, LodArray, OperatorError, OpView, Sequences, grad_name
from ..sequence import Lods, grads_keep_sequences, has_lod, offsets_of

DX, DOUT = grad_name("X"), grad_name("Out")


def _sizes(
    image: Sequence[int], kernels: list[int], strides: list[int], paddings: list[int]
) -> tuple[int, int]:
    """The numbers of patches in an image, down and across; `paddings` are up, left, down, right."""
    high, wide = (
        window_count(image[k] + paddings[k] + paddings[k + 2] - kernels[k], strides[k]) for k in range(2)
    )
    return high, wide


def _grids(X: Any, Y: Any, attrs: dict[str, Any]) -> list[tuple[int, int]]:
    """The patches of each image; with Y, which holds real sizes, of so much as out_stride makes of these."""
    windows = (attrs["kernels"], attrs["strides"], attrs["paddings"])
    if Y is None:
        grids = [_sizes(X.shape[2:], *windows)] * len(X)
    else:
        stride = attrs["out_stride"]
        real = np.asarray(to_host(Y)).astype(np.int64)
        grids = [_sizes((-(-int(h) // stride[0]), -(-int(w) // stride[1])), *windows) for h, w in real]
    for k, grid in enumerate(grids):
        if min(grid) < 1:
            raise OperatorError(f"operator im2sequence: image {k} would have {grid[0]} x {grid[1]} patches")
    return grids


def _geometry(X: Any, grids: list[tuple[int, int]], attrs: dict[str, Any]) -> Geometry:
    """The geometry with the maximum numbers of patches down and across of all images; zeros beyond an image."""
    kernels, strides, paddings = attrs["kernels"], attrs["strides"], attrs["paddings"]
    pads = ((paddings[0], paddings[2]), (paddings[1], paddings[3]))
    out = (max((high for high, _ in grids), default=0), max((wide for _, wide in grids), default=0))
    return Geometry(X.shape[2:], tuple(kernels), tuple(strides), (1, 1), pads, out)


def _rows(grids: list[tuple[int, int]], g: Geometry) -> np.ndarray:
    """The indices of the patches that belong to sequences, among all patches of all images."""
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
    g = _geometry(X, grids, attrs)
    patches = gather_patches(xp, X, g, 1)[:, 0].swapaxes(1, 2)
    out = patches.reshape(-1, patches.shape[2])
    if Y is not None:
        out = out[xp.asarray(_rows(grids, g))]
    return LodArray(xp.ascontiguousarray(out), [offsets_of(np.array([h * w for h, w in grids], np.int64))])


def _im2sequence_grad(xp: Any, X: Any, Y: Any, Out_grad: Any, lod: Lods, **attrs: Any) -> Any:
    grids = _grids(X, Y, attrs)
    g = _geometry(X, grids, attrs)
    patches = xp.zeros((len(X) * g.out[0] * g.out[1], Out_grad.shape[1]), X.dtype)
    patches[xp.asarray(_rows(grids, g))] = Out_grad
    patches = patches.reshape(len(X), 1, g.out[0] * g.out[1], Out_grad.shape[1]).swapaxes(2, 3)
    return LodArray(scatter_patches(xp, patches, g), [])


def _infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 4:
        raise op.fail(f"X must be images [batch, channels, height, width], got {list(shape)}")
    kernels = op.attr("kernels")
    high, wide = _sizes(shape[2:], kernels, op.attr("strides"), op.attr("paddings"))
    known = not op.has("Y") and min(shape) >= 0
    if known and min(high, wide) < 1:
        op.refuse(f"an image would have {high} x {wide} patches")
    known = known and (has_lod(op) or not op.exact)
    rows = shape[0] * high * wide if known else -1
    if op.building:
        rows = shape[0]  # as Fluid declares it
    op.set("Out", (rows, shape[1] * kernels[0] * kernels[1]), op.dtype("X"))
    if known and op.exact:
        op.carry("Out", (op.offsets("Out", shape[0]),))


def _ints(op: OpView) -> list[int]:
    shape, kernels, strides, paddings = (
        op.shape("X"),
        *(op.attr(a) for a in ("kernels", "strides", "paddings")),
    )
    return [*shape, *kernels, *strides, *paddings[:2], *_sizes(shape[2:], kernels, strides, paddings)]


def _native(op: OpView) -> Call | None:
    name, made = typed(op, "im2sequence", ("X",)), op.lod("Out")
    return Call(name, [op.name("X"), op.name("Out"), *made], _ints(op)) if name and made else None


def _native_grad(op: OpView) -> Call | None:
    name = typed(op, "im2sequence_grad", ("X", DOUT))
    return Call(name, [op.name(DOUT), op.name(DX)], _ints(op)) if name and not op.has("Y") else None


register_pair(
    "im2sequence",
    ("X", "Y?"),
    _im2sequence,
    _im2sequence_grad,
    _infer,
    "For each image the sequence of its patches, row by row, each flattened.",
    attrs={"kernels": [1, 1], "strides": [1, 1], "paddings": [0, 0, 0, 0], "out_stride": [1, 1]},
    no_grad=("Y",),
    sequences=Sequences(levels=Levels(least=1), takes_lod=True),
    infer_back=grads_keep_sequences,
    native=(_native, _native_grad),
)
