"""The native call of a matrix product."""

from __future__ import annotations

from ..registry import Call


def gemm(
    name: str, a: str, b: str, c: str, sizes: tuple[int, int, int], trans: tuple[bool, bool], alpha: float
) -> Call:
    """C[m, n] = alpha op(A) op(B) for sizes (m, n, k)."""
    return Call(name, [a, b, c, None], [*sizes, int(trans[0]), int(trans[1]), 0], [alpha, 0.0])


def batched(
    name: str, a: str, b: str, c: str, sizes: tuple[int, int, int], trans: tuple[bool, bool], alpha: float,
    batch: int, strides: tuple[int, int, int],
) -> Call:  # fmt: skip
    """As `gemm`, for `batch` matrices; `strides`: the elements from one to the next, 0 where there is one for all."""
    if batch == 1:
        return gemm(name, a, b, c, sizes, trans, alpha)
    flags = [int(trans[0]), int(trans[1])]
    kernel = name.replace("gemm", "gemm_batched")
    return Call(kernel, [a, b, c], [*sizes, *flags, batch, *strides], [alpha, 0.0])


def is_product(call: Call) -> bool:
    """Whether a call is one that `gemm` makes."""
    return call.kernel.partition(".")[0] == "gemm"
