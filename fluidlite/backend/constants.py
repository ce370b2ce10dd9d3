"""A cache of constant arrays of kernels, which depend on shapes and attributes alone, for each GPU.

A copy from the host to a GPU costs more than the kernel that reads it, and is no part of a CUDA graph.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .cupy_ import library

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
