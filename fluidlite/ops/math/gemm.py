"""Native calls of matrix products, with plain and with prepacked matrices."""

from __future__ import annotations

from typing import NamedTuple

from ...base.sizes import current, is_fixed
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
    """As `gemm`, for `batch` matrices; `strides`: the elements from one to the next, 0 for a shared one."""
    if batch == 1:
        return gemm(name, a, b, c, sizes, trans, alpha)
    flags = [int(trans[0]), int(trans[1])]
    kernel = name.replace("gemm", "gemm_batched")
    return Call(kernel, [a, b, c], [*sizes, *flags, batch, *strides], [alpha, 0.0])


class Matrix(NamedTuple):
    """The second operand of products, `depth` x `columns` or stored transposed, of the type of `suffix`."""

    name: str
    suffix: str
    depth: int
    columns: int
    transposed: bool

    @property
    def packed_elements(self) -> int:
        """Room for it, packed, with any instruction set."""
        return self.depth * (self.columns + 32)


PRODUCTS = ("gemm.f32", "gemm.f64")
"""The kernels of products that may have a prepacked matrix."""

_LEAST, _MOST_ROWS = 1 << 11, 128
"""The least elements of a matrix that is prepacked, and the most rows of its products."""


def shared_matrix(call: Call) -> Matrix | None:
    """The second operand of a product that is worth prepacking, to share it with other products; else None.

    With many rows packing takes little of the time, and a BLAS is as fast.
    """
    if call.kernel not in PRODUCTS:
        return None
    (_, b, _, _), (m, n, k, trans_a, trans_b, *_), (alpha, beta) = call.operands, call.ints, call.floats
    if b is None or not is_fixed((n, k)) or n * k < _LEAST or current(m) > _MOST_ROWS:
        return None
    return None if trans_a or alpha != 1 or beta not in (0, 1) else Matrix(b, call.type, k, n, bool(trans_b))


def by_packed(call: Call, packed: str) -> Call:
    """A product by its second operand as `packed` has it."""
    a, _, c, bias = call.operands
    m, n, k, _, _, *act = call.ints
    return Call(f"gemm_packed.{call.type}", [a, packed, c, bias], [m, n, k, *act], call.floats[1:])


def packing(matrix: Matrix, packed: str) -> Call:
    """The call that packs a matrix."""
    sizes = [matrix.depth, matrix.columns, int(matrix.transposed)]
    return Call(f"gemm_pack.{matrix.suffix}", [matrix.name, packed], sizes)
