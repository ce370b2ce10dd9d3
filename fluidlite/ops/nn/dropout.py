"""Dropout, with the masks real Fluid draws on the CPU for a seed."""

from __future__ import annotations

from typing import Any

from ..._ext import rng
from ...base.dtypes import VarType
from ..grad_pairs import self_adjoint_double_grad
from ..infer import grads_like_inputs, product
from ..native import numel, typed
from ..registry import (
    Call,
    Dispatch,
    Effects,
    OpDef,
    OpSpec,
    OpView,
    Planning,
    Sequences,
    grad_name,
    register,
    standard_grad,
)
from ..tensor.random_ import fresh_seed

DOUT, DX = grad_name("Out"), grad_name("X")
UPSCALE = "upscale_in_train"

_ATTRS: dict[str, Any] = {
    "dropout_prob": 0.5,
    "is_test": False,
    "fix_seed": False,
    "seed": 0,
    "dropout_implementation": "downgrade_in_infer",
}


def _seed(given: int, fixed: bool) -> int:
    """The seed of a mask; 0 if each run draws its own. Fluid's generator treats a fixed seed of 0 as 1."""
    return (int(given) or 1) if fixed else int(given)


def _masked(xp: Any, values: Any, mask: Any, prob: float, kind: str) -> Any:
    """`values` where they are kept, scaled by `kind`, and 0 elsewhere."""
    kept = xp.where(mask != 0, values, values.dtype.type(0))
    return kept / values.dtype.type(1.0 - prob) if kind == UPSCALE and prob < 1 else kept


def _dropout(
    xp: Any,
    X: Any,
    Seed: Any,
    dropout_prob: float,
    is_test: bool,
    fix_seed: bool,
    seed: int,
    dropout_implementation: str,
) -> Any:
    if is_test:
        return (X if dropout_implementation == UPSCALE else X * X.dtype.type(1.0 - dropout_prob)), None
    if Seed is not None:
        seed, fix_seed = int(Seed.ravel()[0]), True
    drawn = rng.dropout_mask(_seed(seed, fix_seed) or fresh_seed(), dropout_prob, product(X.shape))
    mask = xp.asarray(drawn).reshape(X.shape)
    return _masked(xp, X, mask, dropout_prob, dropout_implementation), mask


def _dropout_grad(xp: Any, Mask: Any, Out_grad: Any, dropout_prob: float, dropout_implementation: str) -> Any:
    return _masked(xp, Out_grad, Mask, dropout_prob, dropout_implementation)


def _infer(op: OpView) -> None:
    prob, kind = op.attr("dropout_prob"), op.attr("dropout_implementation")
    if not 0 <= prob <= 1:
        raise op.fail(f"dropout_prob must be in [0, 1], got {prob}")
    if kind not in (UPSCALE, "downgrade_in_infer"):
        raise op.fail(f"dropout_implementation must be 'downgrade_in_infer' or '{UPSCALE}', got {kind!r}")
    op.set("Out", op.shape("X"), op.dtype("X"))
    op.set("Mask", op.shape("X"), VarType.UINT8)


def _rule(op: OpView) -> list[OpSpec]:
    if op.attr("is_test"):
        raise op.fail("has no gradient with is_test=True; differentiate the training program")
    return standard_grad(outputs=("Mask",))(op)


def _native(op: OpView) -> Call | None:
    prob, upscale = op.attr("dropout_prob"), op.attr("dropout_implementation") == UPSCALE
    x, out, n = op.name("X"), op.name("Out"), numel(op, "X")
    if op.attr("is_test"):
        name = typed(op, "scale", ("X",))
        return None if name is None else Call(name, [x, out], [n, 1], [1.0 if upscale else 1.0 - prob, 0.0])
    name = typed(op, "dropout", ("X",))
    if name is None or op.has("Seed") or not op.has("Mask"):
        return None
    seed = _seed(op.attr("seed"), op.attr("fix_seed"))
    return Call(name, [x, out, op.name("Mask")], [n, int(upscale), seed], [prob])


def _native_grad(op: OpView) -> Call | None:
    name = typed(op, "dropout_grad", (DOUT,))
    if name is None:
        return None
    ints = [numel(op, DOUT), int(op.attr("dropout_implementation") == UPSCALE)]
    return Call(name, [op.name(DOUT), op.name("Mask"), op.name(DX)], ints, [op.attr("dropout_prob")])


register(
    OpDef(
        "dropout",
        inputs=("X", "Seed?"),
        outputs=("Out", "Mask"),
        attrs=_ATTRS,
        infer=_infer,
        kernel=_dropout,
        grad=_rule,
        no_grad=("Seed", "Mask"),
        native=_native,
        dispatch=Dispatch(cuda="random.dropout"),
        sequences=Sequences(source={"Out": "X"}),
        effects=Effects(random=True),
        planning=Planning(inplace=(("Out", "X"),)),
        doc=(
            "Sets elements to zero with probability dropout_prob in training; Mask (uint8) says which "
            "were kept."
        ),
    )
)
register(
    OpDef(
        "dropout_grad",
        inputs=("Mask", DOUT),
        outputs=(DX,),
        attrs=_ATTRS,
        infer=grads_like_inputs,
        kernel=_dropout_grad,
        grad=self_adjoint_double_grad,
        native=_native_grad,
        dispatch=Dispatch(cuda="random.dropout_grad"),
        planning=Planning(inplace=((DX, DOUT),)),
        doc="The gradient of dropout: that of the kept elements, scaled as they were.",
    )
)
