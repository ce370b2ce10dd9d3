"""Inverses and triangular factors of matrices, with their gradients."""

from __future__ import annotations

from typing import Any

from .infer import grads_like_inputs
from .registry import OpDef, OperatorError, OpView, grad_name, register, standard_grad


def _square(slot: str, out: str) -> Any:
    def infer(op: OpView) -> None:
        shape = op.shape(slot)
        if len(shape) < 2 or (shape[-1] != shape[-2] and min(shape[-2:]) >= 0):
            raise op.fail(f"{slot} must be a square matrix or a batch of them, got shape {list(shape)}")
        op.set(out, shape, op.dtype(slot))

    return infer


def _inverse(xp: Any, Input: Any) -> Any:
    try:
        return xp.linalg.inv(Input)
    except xp.linalg.LinAlgError:
        raise OperatorError("operator inverse: Input has no inverse: it is singular") from None


def _inverse_grad(xp: Any, Output: Any, Output_grad: Any) -> Any:
    turned = Output.swapaxes(-1, -2)
    return -(turned @ Output_grad @ turned)


register(
    OpDef(
        "inverse",
        inputs=("Input",),
        outputs=("Output",),
        infer=_square("Input", "Output"),
        kernel=_inverse,
        grad=standard_grad(outputs=("Output",)),
        doc="The inverse of a matrix, or of each of a batch.",
    )
)
register(
    OpDef(
        "inverse_grad",
        inputs=("Output", grad_name("Output")),
        outputs=(grad_name("Input"),),
        infer=grads_like_inputs,
        kernel=_inverse_grad,
        doc="The gradient of inverse.",
    )
)


def _cholesky(xp: Any, X: Any, upper: bool) -> Any:
    # Only the triangle that is asked for is read.
    low = X.swapaxes(-1, -2) if upper else X
    try:
        factor = xp.linalg.cholesky(low)
    except xp.linalg.LinAlgError:
        raise OperatorError("operator cholesky: X must be symmetric and positive definite") from None
    return xp.ascontiguousarray(factor.swapaxes(-1, -2)) if upper else factor


def _cholesky_grad(xp: Any, Out: Any, Out_grad: Any, upper: bool) -> Any:
    """The symmetric gradient, by Murray (2016)."""
    low, dlow = (a.swapaxes(-1, -2) if upper else a for a in (Out, Out_grad))
    turned = low.swapaxes(-1, -2)
    half = xp.tril(turned @ dlow)
    half = half - 0.5 * half * xp.eye(half.shape[-1], dtype=half.dtype)
    inverse = xp.linalg.inv(low)
    found = inverse.swapaxes(-1, -2) @ half @ inverse
    return 0.5 * (found + found.swapaxes(-1, -2))


register(
    OpDef(
        "cholesky",
        inputs=("X",),
        attrs={"upper": False},
        infer=_square("X", "Out"),
        kernel=_cholesky,
        grad=standard_grad(outputs=("Out",)),
        doc="The triangular factor L (or its transpose) of a symmetric positive definite matrix L L^T.",
    )
)
register(
    OpDef(
        "cholesky_grad",
        inputs=("Out", grad_name("Out")),
        outputs=(grad_name("X"),),
        attrs={"upper": False},
        infer=grads_like_inputs,
        kernel=_cholesky_grad,
        doc="The gradient of cholesky, taking X as symmetric.",
    )
)
