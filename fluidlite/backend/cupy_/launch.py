"""Launching kernels of `cuda/` on the current stream: grids, argument types, common checks."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import library, modules

THREADS = 256
"""Threads of a block, unless a kernel needs another number."""

MOST_BLOCKS = 4096
"""Enough blocks to fill any GPU; kernels loop over further elements in grid-sized strides."""

REAL = frozenset({np.dtype("float32"), np.dtype("float64")})
"""The element types that kernels are made for."""

INTEGER = frozenset({np.dtype("int32"), np.dtype("int64")})
"""The types that class numbers and row numbers may have."""

NOTHING = np.uint64(0)
"""The null pointer."""


def blocks_for(threads: int, per_block: int = THREADS, most: int = MOST_BLOCKS) -> int:
    """The number of blocks of `per_block` threads for `threads` threads, at most `most`."""
    return max(1, min(-(-threads // per_block), most))


def each(
    file: str, function: str, dtype: Any, count: int, *arguments: Any, macros: Mapping[str, str] | None = None
) -> None:
    """Launch kernel `function` of `cuda/<file>.cu` with a thread for each of `count` elements; see `grid`.

    Nothing is launched for 0 elements.
    """
    if count:
        grid(file, function, dtype, blocks_for(count), THREADS, *arguments, macros=macros)


def grid(
    file: str,
    function: str,
    dtype: Any,
    blocks: int | tuple[int, ...],
    threads: int | tuple[int, ...],
    *arguments: Any,
    macros: Mapping[str, str] | None = None,
    shared: int = 0,
) -> None:
    """Launch kernel `function` of `cuda/<file>.cu`, compiled for elements of `dtype` and with `macros` defined.

    `arguments`: arrays of the device, None for a null pointer, NumPy scalars as they are; Python's integers and
    booleans become 64-bit integers, and its floats elements of `dtype`. `shared`: bytes of dynamic shared memory.
    """
    kernel, real = _kernel(file, function, np.dtype(dtype), tuple(sorted(macros.items())) if macros else ())
    size = blocks if isinstance(blocks, tuple) else (blocks,)
    block = threads if isinstance(threads, tuple) else (threads,)
    packed = tuple([_argument(value, real) for value in arguments])
    try:
        kernel(size, block, packed, shared_mem=shared)
    except Exception:
        with library.errors(f"launching the CUDA kernel {function}"):
            raise


@functools.cache
def _kernel(
    file: str, function: str, dtype: np.dtype, macros: tuple[tuple[str, str], ...]
) -> tuple[Any, type[np.generic]]:
    """A compiled kernel, and the NumPy type of its `SCALAR`."""
    return modules.kernel(file, function, (*modules.typed(dtype), *macros)), dtype.type


@library.on_forget
def _forget() -> None:
    _kernel.cache_clear()


_integer = functools.lru_cache(maxsize=4096)(np.int64)


def _argument(value: Any, real: type[np.generic]) -> Any:
    kind = type(value)
    if kind is int or kind is bool:
        return _integer(value)
    if kind is float:
        return real(value)  # type: ignore[call-arg]
    return NOTHING if value is None else value


def real(*arrays: Any) -> bool:
    """Whether kernels exist for these arrays (those that are not None): all of one type of `REAL`."""
    kind = None
    for array in arrays:
        if array is None:
            continue
        if kind is None:
            kind = array.dtype
        elif array.dtype != kind:
            return False
    return kind in REAL


def is_index(array: Any) -> bool:
    """Whether an array holds numbers of classes or rows, of a type that kernels read."""
    return array.dtype in INTEGER


def wide(array: Any) -> bool:
    """Whether an array of `INTEGER` has 64-bit elements."""
    return bool(array.dtype.itemsize == 8)


def dense(device: Any, array: Any) -> Any:
    """`array` if it is C-contiguous, else a contiguous copy; None for None."""
    return array if array is None or array.flags.c_contiguous else device.xp.ascontiguousarray(array)
