"""Functions of arrays of the host or of a GPU: products, special functions, scatter-add; constants of kernels."""

from __future__ import annotations

import importlib
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .._ext.forks import library_call
from . import device_of
from .cupy_ import library


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


def erf(xp: Any, x: Any) -> Any:
    """The error function of each element of `x`, an array of the array module `xp`, in its dtype."""
    functions = importlib.import_module("scipy.special") if xp is np else library.special()
    return functions.erf(x).astype(x.dtype, copy=False)


def add_at(xp: Any, target: Any, where: Any, values: Any) -> None:
    """target[where] += values where every occurrence of a place counts; `target` may be of any number type.

    CuPy has no such addition of int64; that of uint64 does the same to the bits.
    """
    if target.dtype == "int64":
        target, values = target.view("uint64"), values.astype("uint64")
    xp.add.at(target, where, values)


LIMIT = 1024
"""The size of the cache; the least recently used constants are dropped."""

_lock = threading.Lock()
_kept: OrderedDict[Hashable, Any] = OrderedDict()


def constant(xp: Any, make: Callable[..., Any], *key: Hashable) -> Any:
    """`make(*key)`, an array of NumPy (or a tuple of them), where `xp` can work on it; not to be written into.

    For NumPy it is not cached. For CuPy it is cached by device, `make` and `key`; while a CUDA graph is recorded, it is
    made for that graph, which holds its address and keeps it alive.
    """
    if xp is np:
        return make(*key)
    from .cupy_.device import device

    here = device(xp.cuda.runtime.getDevice())
    if here.recording is not None:
        return _put(here, make(*key))
    name = (here.number, make, key)
    with _lock:
        found = _kept.get(name)
        if found is None:
            with xp.cuda.using_allocator(xp.get_default_memory_pool().malloc):
                found = _kept[name] = _put(here, make(*key))
            if len(_kept) > LIMIT:
                _kept.popitem(last=False)
        _kept.move_to_end(name)
    return found


def _put(device: Any, made: Any) -> Any:
    return tuple(map(device.put, made)) if isinstance(made, tuple) else device.put(made)


@library.on_forget
def _forget() -> None:
    with _lock:
        _kept.clear()
