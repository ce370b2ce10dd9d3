"""Operators that limit values and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.selected_rows import SelectedRows
from .. import native
from ..grad_pairs import register_pair, self_adjoint_double_grad
from ..registry import Call, Dispatch, Effects, OpView, Planning, RowRule, Sequences, register
from ..tensor import gather as rows

_LIMITS = {"min": 0.0, "max": 0.0}


def _limit(tensor: Any, number: float) -> Any:
    return number if tensor is None else tensor.reshape(())


def _clip_infer(op: OpView) -> None:
    low, high = op.attr("min"), op.attr("max")
    if not op.has("Min") and not op.has("Max") and low > high:
        raise op.fail(f"min must not be above max, got {low} and {high}")
    op.set("Out", op.shape("X"), op.dtype("X"))


def _clip(xp: Any, X: Any, Min: Any, Max: Any, min: float, max: float) -> Any:
    return xp.minimum(xp.maximum(X, _limit(Min, min)), _limit(Max, max)).astype(X.dtype)


def _clip_native(op: OpView) -> Call | list[Call] | None:
    if op.has("Min") or op.has("Max"):
        return None
    return native.unary("clip", ("min", "max"))(op)


def _clip_rows(xp: Any, X: SelectedRows, Min: Any, Max: Any, min: float, max: float) -> SelectedRows:
    merged = X.merged(xp)
    return merged.with_values(_clip(xp, merged.values, Min, Max, min, max))


def _rows_native(kernel: str, *limits: str) -> Callable[[OpView], list[Call] | None]:
    """The calls that merge the SelectedRows X and clip their values by the attributes `limits`."""

    def select(op: OpView) -> list[Call] | None:
        merge, name = rows.merge_call(op, "X", "Out"), native.typed(op, kernel, ("X",))
        if merge is None or name is None or op.has("Min") or op.has("Max"):
            return None
        count, _, width = rows.extent(op, "X")
        values = rows.parts(op.name("Out"))[1]
        return [merge, Call(name, [values, values], [count * width], [op.attr(limit) for limit in limits])]

    return select


def _clip_grad(xp: Any, X: Any, Min: Any, Max: Any, Out_grad: Any, min: float, max: float) -> Any:
    inside = (X > _limit(Min, min)) & (X < _limit(Max, max))
    return xp.where(inside, Out_grad, xp.zeros_like(Out_grad))


def _clip_grad_native(op: OpView) -> Call | list[Call] | None:
    if op.has("Min") or op.has("Max"):
        return None
    return native.unary_grad("clip", ("min", "max"))(op)


register_pair(
    "clip",
    ("X", "Min?", "Max?"),
    _clip,
    _clip_grad,
    _clip_infer,
    "X, raised to `min` and lowered to `max` where it is beyond them, or to Min and Max if given.",
    attrs=_LIMITS,
    no_grad=("Min", "Max"),
    effects=Effects(numbered=False),
    planning=Planning(inplace=(("Out", "X"),)),
    planning_back=Planning(inplace=(("X@GRAD", "Out@GRAD"),)),
    grad_grad=self_adjoint_double_grad,
    native=(_clip_native, _clip_grad_native),
    cuda=("elementwise.clip", "elementwise.clip_grad"),
    rows=RowRule(_clip_rows, slots=("X",), out="Out", native=_rows_native("clip", "min", "max")),
)


def _clip_by_norm_infer(op: OpView) -> None:
    if not op.attr("max_norm") > 0:  # nor is NaN
        raise op.fail(f"max_norm must be greater than 0, got {op.attr('max_norm')}")
    op.set("Out", op.shape("X"), op.dtype("X"))


def _clip_by_norm(xp: Any, X: Any, max_norm: float) -> Any:
    norm = xp.sqrt(xp.sum(X * X))
    return X * (max_norm / xp.maximum(norm, max_norm)).astype(X.dtype)


def _clip_by_norm_rows(xp: Any, X: SelectedRows, max_norm: float) -> SelectedRows:
    merged = X.merged(xp)
    return merged.with_values(_clip_by_norm(xp, merged.values, max_norm))


register(
    "clip_by_norm",
    inputs=("X",),
    attrs={"max_norm": 1.0},
    infer=_clip_by_norm_infer,
    kernel=_clip_by_norm,
    native=native.unary("clip_by_norm", ("max_norm",)),
    dispatch=Dispatch(
        rows=RowRule(
            _clip_by_norm_rows, slots=("X",), out="Out", native=_rows_native("clip_by_norm", "max_norm")
        )
    ),
    planning=Planning(inplace=(("Out", "X"),)),
    doc="X, shortened to the Euclidean norm `max_norm` if it is longer.",
)


def _squared_l2_norm_double_grad(xp: Any, X: Any, DOut: Any, DDX: Any) -> Any:
    return 2 * DOut.reshape(()) * DDX, 2 * (X * DDX).sum().reshape(1)


register_pair(
    "squared_l2_norm",
    ("X",),
    lambda xp, X: xp.sum(X * X).reshape(1),
    lambda xp, X, Out_grad: 2 * Out_grad.reshape(()) * X,
    lambda op: op.set("Out", (1,), op.dtype("X")),
    "The sum of the squares of X, as one element.",
    sequences=Sequences(source=None),
    second=(_squared_l2_norm_double_grad, ("X",)),
    native=(native.unary("squared_l2_norm"), None),
)
