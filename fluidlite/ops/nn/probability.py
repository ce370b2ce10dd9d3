"""Softmax along an axis, and dropout with the masks real Fluid draws on the CPU for a seed."""

from __future__ import annotations

from typing import Any

from ..._ext import rng
from ...base.dtypes import VarType
from ...base.sizes import rows_along
from .. import planning_rules
from ..grad_pairs import register_pair, self_adjoint_double_grad
from ..infer import normalize_axis, product
from ..native import numel, typed_call
from ..registry import Call, Effects, OpSpec, OpView, Planning, Sequences, grad_name, standard_grad
from ..tensor.random_ import fresh_seed

DOUT, DX = grad_name("Out"), grad_name("X")

FLOOR = -64.0
"""Fluid takes exponents below the maximum by more than this as this: no probability is ever zero."""

_ATTRS: dict[str, Any] = {"axis": -1, "use_cudnn": False, "data_format": "AnyLayout", "is_test": False}


def shifted(xp: Any, x: Any, axis: int) -> Any:
    """`x` minus its maximum along `axis`, not less than FLOOR."""
    return xp.maximum(x - x.max(axis=axis, keepdims=True), x.dtype.type(FLOOR))


def _softmax(xp: Any, X: Any, axis: int) -> Any:
    if X.size == 0:
        return X
    powers = xp.exp(shifted(xp, X, axis))
    return powers / powers.sum(axis=axis, keepdims=True)


def _softmax_grad(xp: Any, Out: Any, Out_grad: Any, axis: int) -> Any:
    return Out * (Out_grad - (Out * Out_grad).sum(axis=axis, keepdims=True))


def _softmax_double_grad(xp: Any, Out: Any, DOut: Any, DDX: Any, axis: int) -> Any:
    mean = (Out * DOut).sum(axis=axis, keepdims=True)
    seen = (Out * DDX).sum(axis=axis, keepdims=True)
    return DDX * (DOut - mean) - DOut * seen, Out * (DDX - seen)


def _infer(op: OpView) -> None:
    normalize_axis(op, op.attr("axis"), len(op.shape("X")))
    op.set("Out", op.shape("X"), op.dtype("X"))


def _native(op: OpView) -> Call | None:
    rows = rows_along(op.shape("X"), op.attr("axis"))
    return None if rows is None else typed_call(op, "softmax", ("X",), ("Out",), rows)


def _native_grad(op: OpView) -> Call | None:
    rows = rows_along(op.shape("Out"), op.attr("axis"))
    return None if rows is None else typed_call(op, "softmax_grad", ("Out", DOUT), (DX,), rows)


register_pair(
    "softmax",
    ("X",),
    _softmax,
    _softmax_grad,
    _infer,
    "Exponentials divided by their sum along an axis.",
    attrs=_ATTRS,
    keep=(),
    keep_out=("Out",),
    planning=Planning(inplace=(("Out", "X"),), batchable=planning_rules.along_other_axis),
    planning_back=Planning(inplace=((DX, DOUT),), batchable=planning_rules.along_other_axis),
    second=(_softmax_double_grad, ("Out",)),
    native=(_native, _native_grad),
    cuda=("losses.softmax", "losses.softmax_grad"),
)


UPSCALE = "upscale_in_train"

_DROPOUT_ATTRS: dict[str, Any] = {
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


def _dropout_infer(op: OpView) -> None:
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


def _dropout_native(op: OpView) -> Call | None:
    prob, upscale = op.attr("dropout_prob"), op.attr("dropout_implementation") == UPSCALE
    n = numel(op, "X")
    if op.attr("is_test"):
        return typed_call(op, "scale", ("X",), ("Out",), [n, 1], [1.0 if upscale else 1.0 - prob, 0.0])
    if op.has("Seed") or not op.has("Mask"):
        return None
    seed = _seed(op.attr("seed"), op.attr("fix_seed"))
    return typed_call(op, "dropout", ("X",), ("Out", "Mask"), [n, int(upscale), seed], [prob])


def _dropout_native_grad(op: OpView) -> Call | None:
    ints = [numel(op, DOUT), int(op.attr("dropout_implementation") == UPSCALE)]
    return typed_call(op, "dropout_grad", (DOUT,), ("Mask", DX), ints, [op.attr("dropout_prob")])


register_pair(
    "dropout",
    ("X", "Seed?"),
    _dropout,
    _dropout_grad,
    _dropout_infer,
    "Sets elements to zero with probability dropout_prob in training; Mask (uint8) says which were kept.",
    outputs=("Out", "Mask"),
    attrs=_DROPOUT_ATTRS,
    keep=(),
    keep_out=("Mask",),
    no_grad=("Seed", "Mask"),
    grad=_rule,
    sequences=Sequences(source={"Out": "X"}),
    effects=Effects(random=True),
    planning=Planning(inplace=(("Out", "X"),)),
    planning_back=Planning(inplace=((DX, DOUT),)),
    grad_grad=self_adjoint_double_grad,
    native=(_dropout_native, _dropout_native_grad),
    cuda=("random.dropout", "random.dropout_grad"),
)
