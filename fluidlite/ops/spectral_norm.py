"""Spectral normalisation: weights divided by their largest singular value (Miyato et al. 2018)."""

from __future__ import annotations

from typing import Any

from .infer import grads_like_inputs, normalize_axis, product
from .registry import OpDef, OpView, grad_name, register, standard_grad

DOUT, DWEIGHT = grad_name("Out"), grad_name("Weight")


def _matrix(xp: Any, weight: Any, dim: int) -> Any:
    """`weight` as a matrix whose rows are its dimension `dim`."""
    return xp.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)


def _unit(xp: Any, vector: Any, eps: float) -> Any:
    return vector / (xp.sqrt((vector * vector).sum()) + vector.dtype.type(eps))


def _directions(xp: Any, matrix: Any, U: Any, V: Any, power_iters: int, eps: float) -> tuple[Any, Any]:
    """U and V after some steps towards the singular vectors of the largest singular value."""
    u, v = U.reshape(-1), V.reshape(-1)
    for _ in range(power_iters):
        v = _unit(xp, matrix.T @ u, eps)
        u = _unit(xp, matrix @ v, eps)
    return u, v


def _spectral_norm(xp: Any, Weight: Any, U: Any, V: Any, dim: int, power_iters: int, eps: float) -> Any:
    matrix = _matrix(xp, Weight, dim)
    u, v = _directions(xp, matrix, U, V, power_iters, eps)
    return Weight / (u @ matrix @ v)


def _spectral_norm_grad(
    xp: Any, Weight: Any, U: Any, V: Any, Out_grad: Any, dim: int, power_iters: int, eps: float
) -> Any:
    matrix, dout = _matrix(xp, Weight, dim), _matrix(xp, Out_grad, dim)
    u, v = _directions(xp, matrix, U, V, power_iters, eps)
    sigma = u @ matrix @ v
    gradient = (dout - ((dout * matrix).sum() / sigma) * (u[:, None] * v)) / sigma
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

register(
    OpDef(
        "spectral_norm",
        inputs=("Weight", "U", "V"),
        attrs=_ATTRS,
        infer=_infer,
        kernel=_spectral_norm,
        grad=standard_grad(inputs=("Weight", "U", "V")),
        gradable=("Weight",),
        doc="Weight over its largest singular value, found by power_iters iterations that start at U and V.",
    )
)
register(
    OpDef(
        "spectral_norm_grad",
        inputs=("Weight", "U", "V", DOUT),
        outputs=(DWEIGHT,),
        attrs=_ATTRS,
        infer=grads_like_inputs,
        kernel=_spectral_norm_grad,
        doc="The gradient of spectral_norm for Weight, taking the singular vectors as constant.",
    )
)
