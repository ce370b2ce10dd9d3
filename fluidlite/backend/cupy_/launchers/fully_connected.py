"""Fully connected layers: product, bias and activation together.

Small layers are one kernel, and one for all of their gradients: a step of many small kernels takes as long as it takes
to start them. Large ones are products of cuBLAS, and one kernel (or two) for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import blas, launch
from ..device import CudaDevice

ACTIVATIONS: Mapping[str | None, int] = {None: 0, "relu": 1, "sigmoid": 2, "tanh": 3}
"""The activations that can be fused (`cuda/fully_connected.cu`)."""

_FILE = "fully_connected"
_TILE = 16
_SMALL = 128
"""The largest number of rows and columns for the single fused kernel."""

_SHARE, _PARTS = 256, 64
"""Rows of a partial sum of bias gradients, one block each; the limit on partial sums."""


def _small(m: int, n: int, k: int) -> bool:
    return max(m, n, k) <= _SMALL


def _tiles(rows: int, columns: int) -> int:
    return -(-rows // _TILE) * -(-columns // _TILE)


def layer(device: CudaDevice, x: Any, w: Any, bias: Any, activation: str | None) -> Any:
    """activation(x w + bias) for x [m, k], w [k, n] and bias [n], contiguous and of one type of `launch.REAL`."""
    (m, k), n, act = x.shape, w.shape[1], ACTIVATIONS[activation]
    if _small(m, n, k):
        out = device.xp.empty((m, n), x.dtype)
        if out.size:
            block = (_TILE, _TILE)
            launch.grid(_FILE, "layer", x.dtype, _tiles(m, n), block, x, w, bias, out, m, n, k, act)
        return out
    out = blas.gemm(device, x, w)
    launch.each(_FILE, "finish", x.dtype, out.size, out, bias, out.size, n, act)
    return out


def layer_grad(
    device: CudaDevice, x: Any, w: Any, out: Any, dout: Any, activation: str | None, wants_x: bool
) -> tuple[Any, Any, Any]:
    """The gradients of `layer` for x (None unless wanted), w and bias; `out` may be None without an activation."""
    xp, (m, k), n, act = device.xp, x.shape, w.shape[1], ACTIVATIONS[activation]
    if not _small(m, n, k) or not m * n * k:
        before, dbias = _activation_grad(device, out, dout, act)
        dx = blas.gemm(device, before, w, trans_b=True) if wants_x else None
        return dx, blas.gemm(device, x, before, trans_a=True), dbias
    dx = xp.empty((m, k), x.dtype) if wants_x else None
    dw, dbias = xp.empty((k, n), x.dtype), xp.empty(n, x.dtype)
    blocks = _tiles(k, n) + (_tiles(m, k) if wants_x else 0)
    block = (_TILE, _TILE)
    launch.grid(
        _FILE,
        "layer_grad",
        x.dtype,
        blocks,
        block,
        x,
        w,
        out if act else None,
        dout,
        dx,
        dw,
        dbias,
        m,
        n,
        k,
        act,
    )
    return dx, dw, dbias


def _activation_grad(device: CudaDevice, out: Any, dout: Any, act: int) -> tuple[Any, Any]:
    """The gradient before the activation, and the sums of its columns."""
    xp, (m, n), dtype = device.xp, dout.shape, dout.dtype
    dbias = xp.empty(n, dtype)
    before = xp.empty_like(dout) if act else dout
    parts = max(1, min(-(-m // _SHARE), _PARTS))
    sums = xp.empty((parts, n), dtype) if parts > 1 else dbias
    if n:
        share = max(1, -(-m // parts))
        grid = (-(-n // 32), parts)
        where = before if act else None
        launch.grid(
            _FILE, "unfinish", dtype, grid, (32, 8), out if act else None, dout, where, sums, m, n, share, act
        )
        if parts > 1:
            launch.each(_FILE, "add_rows", dtype, n, sums, dbias, parts, n)
    return before, dbias
