"""CUDA C of the folder `cuda/`, compiled when first used, and its launches on the current stream."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import library

_FOLDER = os.path.join(os.path.dirname(__file__), "cuda")


@functools.cache
def module(name: str, macros: tuple[tuple[str, str], ...] = ()) -> Any:
    """The compiled `cuda/<name>.cu` (a `cupy.RawModule`), with `macros` defined.

    CuPy caches compiled modules on disk, so only the very first use on a machine takes a second or so.
    """
    return compiled(source(name), macros)


def compiled(code: str, macros: tuple[tuple[str, str], ...] = ()) -> Any:
    """CUDA C as a `cupy.RawModule`, with `macros` defined."""
    cupy = library.load()
    options = ("-std=c++17", *(f"-D{key}={value}" for key, value in macros))
    return cupy.RawModule(code=code, options=options)


def source(name: str) -> str:
    """The text of `cuda/<name>.cu`, with `common.cuh` in front."""
    return text("common.cuh") + text(f"{name}.cu")


def text(file: str) -> str:
    """A file of the folder `cuda`, with others of the folder where it includes them."""
    return re.sub(r'^#include "(\w+\.cuh)"$', lambda found: _read(found[1]), _read(file), flags=re.MULTILINE)


def _read(file: str) -> str:
    with open(os.path.join(_FOLDER, file), encoding="utf8") as opened:
        return opened.read()


@functools.cache
def kernel(name: str, function: str, macros: tuple[tuple[str, str], ...] = ()) -> Any:
    """The kernel `function` (declared extern "C") of `cuda/<name>.cu`; call it as kernel(grid, block, arguments).

    Numbers among the arguments must be NumPy scalars of the kernel's exact types. The current stream is used.
    """
    with library.errors(f"compiling the CUDA kernel {function}"):
        return module(name, macros).get_function(function)


SCALARS: Mapping[str, str] = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "int8": "signed char",
    "bool": "bool",
}
"""The CUDA C names of the NumPy types of kernels."""


def typed(dtype: Any) -> tuple[tuple[str, str], ...]:
    """The macros of a kernel for elements of `dtype`: SCALAR is its C type."""
    return (("SCALAR", SCALARS[str(dtype)]),)


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
    run, real = _kernel(file, function, np.dtype(dtype), tuple(sorted(macros.items())) if macros else ())
    size = blocks if isinstance(blocks, tuple) else (blocks,)
    block = threads if isinstance(threads, tuple) else (threads,)
    packed = tuple([_argument(value, real) for value in arguments])
    try:
        run(size, block, packed, shared_mem=shared)
    except Exception:
        with library.errors(f"launching the CUDA kernel {function}"):
            raise


@functools.cache
def _kernel(
    file: str, function: str, dtype: np.dtype, macros: tuple[tuple[str, str], ...]
) -> tuple[Any, type[np.generic]]:
    """A compiled kernel, and the NumPy type of its `SCALAR`."""
    return kernel(file, function, (*typed(dtype), *macros)), dtype.type


@library.on_forget
def _forget() -> None:
    module.cache_clear()
    kernel.cache_clear()
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
