"""CUDA C of the folder `cuda/`, compiled when first used."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import Any

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


@library.on_forget
def _forget() -> None:
    module.cache_clear()
    kernel.cache_clear()
