"""Spectral normalisation: weights divided by their largest singular value (Miyato et al. 2018)."""

from __future__ import annotations

from typing import Any

from ...backend.functions import matmul
from ..grad_pairs import register_pair
from ..infer import normalize_axis, product
from ..registry import OpView


def _matrix(xp: Any, weight: Any, dim: int) -> Any:
    """`weight` as a matrix with dimension `dim` as rows."""
    return xp.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)


def _unit(xp: Any, vector: Any, eps: float) -> Any:
    return vector / (xp.sqrt((vector * vector).sum()) + vector.dtype.type(eps))


def _directions(xp: Any, matrix: Any, U: Any, V: Any, power_iters: int, eps: float) -> tuple[Any, Any]:
    """U and V after some steps towards the singular vectors of the largest singular value."""
    u, v = U.reshape(-1), V.reshape(-1)
    for _ in range(power_iters):
        v = _unit(xp, matmul(xp, matrix.T, u), eps)
        u = _unit(xp, matmul(xp, matrix, v), eps)
    return u, v


def _spectral_norm(xp: Any, Weight: Any, U: Any, V: Any, dim: int, power_iters: int, eps: float) -> Any:
    matrix = _matrix(xp, Weight, dim)
    u, v = _directions(xp, matrix, U, V, power_iters, eps)
    return Weight / matmul(xp, matmul(xp, u, matrix), v)


def _spectral_norm_grad(
    xp: Any, Weight: Any, U: Any, V: Any, Out_grad: Any, dim: int, power_iters: int, eps: float
) -> Any:
    """The gradient for Weight, taking the singular vectors as constant."""
    matrix, dout = _matrix(xp, Weight, dim), _matrix(xp, Out_grad, dim)
    u, v = _directions(xp, matrix, U, V, power_iters, eps)
    sigma = matmul(xp, matmul(xp, u, matrix), v)
    # Fluid multiplies element by element where the gradient has a sum over dout * matrix.
    gradient = dout * (1 - (matrix.sum() / sigma) * (u[:, None] * v)) / sigma
    shape = [Weight.shape[dim], *(n for axis, n in enumerate(Weight.shape) if axis != dim % Weight.ndim)]
    return xp.ascontiguousarray(xp.moveaxis(gradient.reshape(shape), 0, dim))


def _infer(op: OpView) -> None:
    shape = op.shape("Weight")
    dim = normalize_axis(op, op.attr("dim"), len(shape), "dim")
    if op.attr("power_iters") < 0:
        raise op.fail(f"power_iters must not be negative, got {op.attr('power_iters')}")
    for slot, size in (("U", shape[dim]), ("V", product(shape[:dim] + shape[dim + 1 :]))):
        if size >= 0 and product(op.shape(slot)) != size:
            raise op.fail(f"{slot} must have {size} elements, got {list(op.shape(slot))}")
    op.set("Out", shape, op.dtype("Weight"))


_ATTRS = {"dim": 0, "power_iters": 1, "eps": 1e-12}

register_pair(
    "spectral_norm",
    ("Weight", "U", "V"),
    _spectral_norm,
    _spectral_norm_grad,
    _infer,
    "Weight over its largest singular value, found by power_iters iterations that start at U and V.",
    attrs=_ATTRS,
    no_grad=("U", "V"),
)
