"""Matrix products of arrays of the host or of a GPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._ext.forks import library_call
from . import device_of


def matmul(xp: Any, a: Any, b: Any) -> Any:
    """a @ b as NumPy has it, batches and vectors included, for arrays that `xp` works on.

    On a GPU float matrices are multiplied by cuBLAS itself rather than through CuPy, which refuses to do it while a
    step is captured into a CUDA graph.
    """
    if xp is np:
        return library_call(np.matmul, a, b)
    device = device_of(a)
    if device is None or a.dtype != b.dtype or a.dtype not in (np.float32, np.float64):
        return xp.matmul(a, b)
    from .cupy_ import blas

    row, column = a.ndim == 1, b.ndim == 1
    a, b = a[None] if row else a, b[:, None] if column else b
    if b.ndim == 2:
        flat = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        made = blas.gemm(device, flat, b).reshape(*a.shape[:-1], b.shape[-1])
    else:
        if a.ndim > 2 and a.shape[:-2] != b.shape[:-2]:
            batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            a, b = (xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
        made = blas.gemm_batched(device, a, b)
    made = made[..., 0, :] if row else made
    return made[..., 0] if column else made
