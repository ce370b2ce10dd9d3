"""Chains of elementwise operators as one generated kernel, compiled on first use.

The functions are those of `unary.cu`, `functions.cu` and `binary.cu`: here they become functions of the device.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import launch, library
from .device import CudaDevice

_UNARY = """
#define UNARY(NAME, VALUE, GRADIENT) \\
    __device__ inline real NAME##_of(real x, real a, real b, real c) { return VALUE; } \\
    __device__ inline real NAME##_slope(real k, real g, real a, real b, real c) { return GRADIENT; }
"""
_BINARY = """
#define BINARY(NAME, VALUE, DX, DY) \\
    __device__ inline real NAME##_of_both(real x, real y) { return VALUE; } \\
    __device__ inline real NAME##_slope_x(real x, real y, real g) { return DX; } \\
    __device__ inline real NAME##_slope_y(real x, real y, real g) { return DY; }
"""
_OTHERS = """
__device__ inline real scaled(real x, real factor, real bias, real after) {
    return after != real(0) ? x * factor + bias : (x + bias) * factor;
}
"""

MOST_ARRAYS, MOST_STEPS = 24, 32
"""Limits on the arrays that a kernel reads and writes, and on the functions that it applies."""


@dataclass(frozen=True)
class Step:
    """One function of a chain: its operands are indices of values (None: zero), followed by `count` numbers."""

    function: str
    operands: tuple[int | None, ...]
    count: int = 0


@dataclass(frozen=True)
class Chain:
    """The expression of a kernel: values are numbered inputs first, then the results of the steps.

    `spread`: for each input whether it is smaller than the results and repeats. `stored`: the values to write.
    """

    spread: tuple[bool, ...]
    steps: tuple[Step, ...]
    stored: tuple[int, ...]


def run(
    device: CudaDevice,
    chain: Chain,
    inputs: Sequence[Any],
    layouts: Sequence[tuple[int, int] | None],
    numbers: Sequence[float],
    shape: tuple[int, ...],
) -> list[Any]:
    """The stored values, of `shape`, for `inputs` of one type of `launch.REAL`, contiguous.

    `layouts`: (n, post) for an input that repeats: element i meets number i / post % n of it. `numbers`: those of all
    steps in order.
    """
    dtype = inputs[0].dtype
    outs = [device.xp.empty(shape, dtype) for _ in chain.stored]
    size = outs[0].size
    if size:
        arguments: list[Any] = [np.int64(size), *inputs, *outs]
        arguments += [np.int64(n) for layout in layouts if layout is not None for n in layout]
        arguments += [dtype.type(number) for number in numbers]
        kernel = _kernel(chain, launch.typed(dtype))
        with library.errors("launching a kernel for a chain of operators"):
            kernel((launch.blocks_for(size),), (launch.THREADS,), tuple(arguments))
    return outs


@functools.lru_cache(maxsize=1024)
def _kernel(chain: Chain, macros: tuple[tuple[str, str], ...]) -> Any:
    with library.errors("compiling a kernel for a chain of operators"):
        return launch.compiled(source(chain), macros).get_function("chain")


def source(chain: Chain) -> str:
    """The CUDA C of a chain."""
    count = len(chain.spread)
    parameters = ["i64 size"]
    parameters += [f"const real *in{k}" for k in range(count)] + [
        f"real *out{k}" for k in range(len(chain.stored))
    ]
    parameters += [f"i64 n{k}, i64 post{k}" for k, small in enumerate(chain.spread) if small]
    parameters += [f"real number{k}" for k in range(sum(step.count for step in chain.steps))]
    lines = [
        f"const real v{k} = in{k}[{f'partner(i, size, n{k}, post{k})' if small else 'i'}];"
        for k, small in enumerate(chain.spread)
    ]
    taken = 0
    for k, step in enumerate(chain.steps):
        words = ["real(0)" if operand is None else f"v{operand}" for operand in step.operands]
        words += [f"number{taken + j}" for j in range(step.count)]
        taken += step.count
        lines.append(f"const real v{count + k} = {step.function}({', '.join(words)});")
    lines += [f"out{k}[i] = v{value};" for k, value in enumerate(chain.stored)]
    body = "\n        ".join(lines)
    return (
        f"{_functions()}\n"
        f'extern "C" __global__ void chain({", ".join(parameters)}) {{\n'
        f"    EACH(i, size) {{\n        {body}\n    }}\n}}\n"
    )


@functools.cache
def _functions() -> str:
    """The CUDA C of all functions that chains may apply."""
    return "".join(
        (
            launch.text("common.cuh"),
            _UNARY,
            launch.text("unary.cu"),
            launch.text("functions.cu"),
            _BINARY,
            launch.text("binary.cu"),
            _OTHERS,
        )
    )


@library.on_forget
def _forget() -> None:
    _kernel.cache_clear()
