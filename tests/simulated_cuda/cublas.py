"""A stand-in for libcublas: the functions that the package calls, on simulated device memory, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from .machine import machine
from .memory import device_view
from .streams import enqueue, queue_of

OK, NOT_INITIALIZED, INVALID_VALUE, EXECUTION_FAILED = 0, 1, 7, 13


@dataclass
class Handle:
    """What `cublasCreate_v2` makes."""

    device: int
    stream: int = 0
    workspace: tuple[int, int] | None = None
    math: int = 0


class FakeCublas:
    """Looks like the library that ctypes opens; `calls` lists the products by name and sizes (m, n, k, batch)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int, int, int]] = []
        self.handles: dict[int, Handle] = {}
        functions: dict[str, Callable[..., int]] = {
            "cublasCreate_v2": self._create,
            "cublasSetStream_v2": self._set_stream,
            "cublasSetWorkspace_v2": self._set_workspace,
            "cublasSetMathMode": self._set_math,
        }
        for letter, dtype in (("S", "float32"), ("D", "float64")):
            functions[f"cublas{letter}gemm_v2"] = self._gemm(f"cublas{letter}gemm_v2", dtype)
            name = f"cublas{letter}gemmStridedBatched"
            functions[name] = self._gemm_batched(name, dtype)
        for name, function in functions.items():
            setattr(self, name, _foreign(name, function))

    def _create(self, place: Any) -> int:
        machine().check_driver()
        place._obj.value = 0x1000 + len(self.handles)
        self.handles[place._obj.value] = Handle(machine().device)
        return OK

    def _of(self, handle: Any) -> Handle | None:
        found = self.handles.get(handle.value)
        return found if found is not None and found.device == machine().device else None

    def _set_stream(self, handle: Any, stream: int) -> int:
        made = self._of(handle)
        if made is None:
            return NOT_INITIALIZED
        made.stream, made.workspace = stream, None
        return OK

    def _set_workspace(self, handle: Any, pointer: int, size: int) -> int:
        made = self._of(handle)
        if made is None:
            return NOT_INITIALIZED
        if pointer % 256:
            return INVALID_VALUE
        device_view(pointer, (size,), np.uint8)
        made.workspace = pointer, size
        return OK

    def _set_math(self, handle: Any, mode: int) -> int:
        made = self._of(handle)
        if made is None:
            return NOT_INITIALIZED
        if mode not in (0, 3):
            return INVALID_VALUE
        made.math = mode
        return OK

    def _gemm(self, name: str, dtype: str) -> Callable[..., int]:
        def gemm(
            handle: Any, trans_a: int, trans_b: int, m: int, n: int, k: int, alpha: Any, a: int, lda: int, b: int,
            ldb: int, beta: Any, c: int, ldc: int,
        ) -> int:  # fmt: skip
            sizes = m, n, k, 1
            return self._product(
                name,
                dtype,
                handle,
                (trans_a, trans_b),
                sizes,
                (alpha, beta),
                (a, lda, 0),
                (b, ldb, 0),
                (c, ldc, 0),
            )

        return gemm

    def _gemm_batched(self, name: str, dtype: str) -> Callable[..., int]:
        def gemm(
            handle: Any, trans_a: int, trans_b: int, m: int, n: int, k: int, alpha: Any, a: int, lda: int, step_a: int,
            b: int, ldb: int, step_b: int, beta: Any, c: int, ldc: int, step_c: int, count: int,
        ) -> int:  # fmt: skip
            sizes = m, n, k, count
            operands = (a, lda, step_a), (b, ldb, step_b), (c, ldc, step_c)
            if count > 1 and step_c < ldc * (n - 1) + m:
                return INVALID_VALUE
            return self._product(name, dtype, handle, (trans_a, trans_b), sizes, (alpha, beta), *operands)

        return gemm

    def _product(
        self, name: str, dtype: str, handle: Any, trans: tuple[int, int], sizes: tuple[int, int, int, int],
        scalars: tuple[Any, Any], *operands: tuple[int, int, int],
    ) -> int:  # fmt: skip
        made = self._of(handle)
        if made is None:
            return NOT_INITIALIZED
        m, n, k, count = sizes
        shapes = [(k, m) if trans[0] else (m, k), (n, k) if trans[1] else (k, n), (m, n)]
        if min(m, n, k, count) < 0 or any(flag not in (0, 1) for flag in trans):
            return INVALID_VALUE
        if any(ld < max(1, shape[0]) for shape, (_, ld, _) in zip(shapes, operands, strict=True)):
            return INVALID_VALUE
        if queue_of(made.stream).capture is not None and made.workspace is None:
            return EXECUTION_FAILED  # it would have to allocate memory
        alpha, beta = (np.dtype(dtype).type(scalar._obj.value) for scalar in scalars)
        item = np.dtype(dtype).itemsize
        a, b, c = (
            device_view(pointer, (count, *shape), dtype, (step * item, item, ld * item))
            for shape, (pointer, ld, step) in zip(shapes, operands, strict=True)
        )

        def work() -> None:
            made = (a.swapaxes(1, 2) if trans[0] else a) @ (b.swapaxes(1, 2) if trans[1] else b)
            c[...] = alpha * made + beta * c if beta else alpha * made

        self.calls.append((name, *sizes))
        enqueue(made.stream, work)
        return OK


def _foreign(name: str, function: Callable[..., int]) -> Callable[..., int]:
    """A function as ctypes has them: with `argtypes`, and as strict about the number of arguments."""

    def call(*arguments: Any) -> int:
        if len(arguments) != len(call.argtypes):
            raise TypeError(f"{name} takes {len(call.argtypes)} arguments, got {len(arguments)}")
        return function(*arguments)

    call.argtypes = ()
    return call


@contextmanager
def patched() -> Iterator[FakeCublas]:
    """Have the package find this cuBLAS while the block runs."""
    from fluidlite.backend.cupy_ import blas

    fake, real = FakeCublas(), blas.open_library
    blas.open_library = lambda: fake
    blas._forget()
    try:
        yield fake
    finally:
        blas.open_library = real
        blas._forget()


@contextmanager
def absent() -> Iterator[SimpleNamespace]:
    """Have the package find no cuBLAS while the block runs."""
    from fluidlite.backend.cupy_ import blas

    def refuse() -> Any:
        raise OSError("libcublas.so.12: cannot open shared object file")

    real, blas.open_library = blas.open_library, refuse
    blas._forget()
    try:
        yield SimpleNamespace()
    finally:
        blas.open_library = real
        blas._forget()
