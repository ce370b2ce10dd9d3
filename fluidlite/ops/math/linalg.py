"""Inverses and triangular factors of matrices, with their gradients."""

from __future__ import annotations

from typing import Any

from ..._ext.forks import library_call
from ...backend.products import matmul
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..registry import OperatorError, OpView


def _square(slot: str, out: str) -> Any:
    def infer(op: OpView) -> None:
        shape = op.shape(slot)
        if len(shape) < 2 or (shape[-1] != shape[-2] and min(shape[-2:]) >= 0):
            raise op.fail(f"{slot} must be a square matrix or a batch of them, got shape {list(shape)}")
        op.set(out, shape, op.dtype(slot))

    return infer


@hosted
def _inverse(xp: Any, Input: Any) -> Any:
    try:
        return library_call(xp.linalg.inv, Input)
    except xp.linalg.LinAlgError:
        raise OperatorError("operator inverse: Input has no inverse: it is singular") from None


def _inverse_grad(xp: Any, Output: Any, Output_grad: Any) -> Any:
    transposed = Output.swapaxes(-1, -2)
    return -matmul(xp, matmul(xp, transposed, Output_grad), transposed)


register_pair(
    "inverse",
    ("Input",),
    _inverse,
    _inverse_grad,
    _square("Input", "Output"),
    "The inverse of a matrix, or of each of a batch.",
    outputs=("Output",),
    keep=(),
    keep_out=("Output",),
)


@hosted
def _cholesky(xp: Any, X: Any, upper: bool) -> Any:
    # Only the selected triangle is read.
    low = X.swapaxes(-1, -2) if upper else X
    try:
        factor = library_call(xp.linalg.cholesky, low)
    except xp.linalg.LinAlgError:
        raise OperatorError("operator cholesky: X must be symmetric and positive definite") from None
    return xp.ascontiguousarray(factor.swapaxes(-1, -2)) if upper else factor


@hosted
def _cholesky_grad(xp: Any, Out: Any, Out_grad: Any, upper: bool) -> Any:
    """The symmetric gradient, by Murray (2016)."""
    low, dlow = (a.swapaxes(-1, -2) if upper else a for a in (Out, Out_grad))
    transposed = low.swapaxes(-1, -2)
    half = xp.tril(matmul(xp, transposed, dlow))
    half = half - 0.5 * half * xp.eye(half.shape[-1], dtype=half.dtype)
    inverse = library_call(xp.linalg.inv, low)
    found = matmul(xp, matmul(xp, inverse.swapaxes(-1, -2), half), inverse)
    return 0.5 * (found + found.swapaxes(-1, -2))


register_pair(
    "cholesky",
    ("X",),
    _cholesky,
    _cholesky_grad,
    _square("X", "Out"),
    "The triangular factor L (or its transpose) of a symmetric positive definite matrix L L^T.",
    attrs={"upper": False},
    keep=(),
    keep_out=("Out",),
)
