"""Launchers of matrix products and their gradients: cuBLAS with its own transposes, one product for each gradient."""

from __future__ import annotations

import math
from collections.abc import Collection
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
    """The factors of a `matmul` as (batches of) matrices, before their transposes."""
    x, y = launch.dense(device, X), launch.dense(device, Y)
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
