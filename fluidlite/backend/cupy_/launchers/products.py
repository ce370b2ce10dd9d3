"""Launchers of matrix products, fully connected layers and their gradients."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from .. import blas, launch
from ..device import CudaDevice

Wanted = Collection[str] | None


def _takes(wanted: Wanted, slot: str) -> bool:
    return wanted is None or slot in wanted


def _flat(device: CudaDevice, x: Any, columns: int) -> Any:
    """`x` seen as a matrix whose rows are its first `columns` dimensions."""
    return launch.dense(device, x).reshape(math.prod(x.shape[:columns]), math.prod(x.shape[columns:]))


def mul(device: CudaDevice, X: Any, Y: Any, x_num_col_dims: int, y_num_col_dims: int) -> Any:
    """Operator `mul`."""
    if not launch.real(X, Y):
        return NotImplemented
    out = blas.gemm(device, _flat(device, X, x_num_col_dims), _flat(device, Y, y_num_col_dims))
    return out.reshape((*X.shape[:x_num_col_dims], *Y.shape[y_num_col_dims:]))


def mul_grad(
    device: CudaDevice, X: Any, Y: Any, Out_grad: Any, x_num_col_dims: int, y_num_col_dims: int,
    wanted: Wanted = None,
) -> Any:  # fmt: skip
    """Operator `mul_grad`; computes only the wanted gradients."""
    if not launch.real(X, Y, Out_grad):
        return NotImplemented
    x, y = _flat(device, X, x_num_col_dims), _flat(device, Y, y_num_col_dims)
    dout = launch.dense(device, Out_grad).reshape(x.shape[0], y.shape[1])
    dx = dy = None
    if _takes(wanted, "X@GRAD"):
        dx = blas.gemm(device, dout, y, trans_b=True).reshape(X.shape)
    if _takes(wanted, "Y@GRAD"):
        dy = blas.gemm(device, x, dout, trans_a=True).reshape(Y.shape)
    return dx, dy


def _factors(device: CudaDevice, X: Any, Y: Any) -> tuple[Any, Any]:
    """The factors of a `matmul` as (batches of) matrices, before their transposes; batches have the dimensions of X."""
    x, y = launch.dense(device, X), launch.dense(device, Y)
    if min(x.ndim, y.ndim) > 2:
        return x, y.reshape(*x.shape[:-2], *y.shape[-2:])
    return x.reshape(1, -1) if x.ndim == 1 else x, y.reshape(-1, 1) if y.ndim == 1 else y


def _product(
    device: CudaDevice, a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, alpha: float = 1.0
) -> Any:
    """The product of two matrices, of two batches, or of a batch and a matrix."""
    if a.ndim == 2 and b.ndim == 2:
        return blas.gemm(device, a, b, None, trans_a, trans_b, alpha)
    if b.ndim == 2 and not trans_a:  # one product with more rows
        made = blas.gemm(device, a.reshape(-1, a.shape[-1]), b, None, False, trans_b, alpha)
        return made.reshape(*a.shape[:-1], made.shape[-1])
    return blas.gemm_batched(device, a, b, None, trans_a, trans_b, alpha)


def matmul(device: CudaDevice, X: Any, Y: Any, transpose_X: bool, transpose_Y: bool, alpha: float) -> Any:
    """Operator `matmul`."""
    if not launch.real(X, Y):
        return NotImplemented
    x, y = _factors(device, X, Y)
    out = _product(device, x, y, transpose_X, transpose_Y, alpha)
    shape = out.shape[:-2]
    shape += () if X.ndim == 1 == out.shape[-2] else (out.shape[-2],)
    shape += () if Y.ndim == 1 == out.shape[-1] else (out.shape[-1],)
    return out.reshape(shape or (1,))


def matmul_grad(
    device: CudaDevice, X: Any, Y: Any, Out_grad: Any, transpose_X: bool, transpose_Y: bool, alpha: float,
    wanted: Wanted = None,
) -> Any:  # fmt: skip
    """Operator `matmul_grad`; computes only the wanted gradients."""
    if not launch.real(X, Y, Out_grad):
        return NotImplemented
    x, y = _factors(device, X, Y)
    m, n = x.shape[-1 if transpose_X else -2], y.shape[-2 if transpose_Y else -1]
    dout = launch.dense(device, Out_grad).reshape(*(x.shape[:-2] or y.shape[:-2]), m, n)
    dx = dy = None
    if _takes(wanted, "X@GRAD"):
        if transpose_X:
            dx = _product(device, y, dout, transpose_Y, True, alpha)
        else:
            dx = _product(device, dout, y, False, not transpose_Y, alpha)
        dx = _summed(dx, x).reshape(X.shape)
    if _takes(wanted, "Y@GRAD"):
        if y.ndim == 2 < x.ndim and not transpose_X:  # the sum over the batch is a sum over more rows
            rows, more = x.reshape(-1, x.shape[-1]), dout.reshape(-1, n)
            pair = (more, rows) if transpose_Y else (rows, more)
            dy = _product(device, *pair, True, False, alpha)
        elif transpose_Y:
            dy = _product(device, dout, x, True, transpose_X, alpha)
        else:
            dy = _product(device, x, dout, not transpose_X, False, alpha)
        dy = _summed(dy, y).reshape(Y.shape)
    return dx, dy


def _summed(gradient: Any, like: Any) -> Any:
    """`gradient` summed over the batch dimensions that `like` has not."""
    extra = gradient.ndim - like.ndim
    return gradient.sum(axis=tuple(range(extra)), dtype=gradient.dtype) if extra else gradient


# Fully connected layers: product, bias and activation together.
#
# Small layers are one kernel, and one for all of their gradients: a step of many small kernels takes as long as it
# takes to start them. Large ones are products of cuBLAS, and one kernel (or two) for the rest.

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
    args = (x, w, out if act else None, dout, dx, dw, dbias, m, n, k, act)
    launch.grid(_FILE, "layer_grad", x.dtype, blocks, (_TILE, _TILE), *args)
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
