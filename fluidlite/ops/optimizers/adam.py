"""Adam, with lazy updates for sparse gradients."""

from __future__ import annotations

from typing import Any

from ...base.selected_rows import SelectedRows
from ..registry import Call, Dispatch, OpView, RowRule
from ..tensor import selected_rows as rows
from .updates import MOMENTS, cast_like, native_rows_update, native_update, update


def _beta(tensor: Any, number: float) -> float:
    return number if tensor is None else float(tensor.reshape(()))


def _adam(
    xp: Any,
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    Moment1: Any,
    Moment2: Any,
    Beta1Pow: Any,
    Beta2Pow: Any,
    Beta1Tensor: Any,
    Beta2Tensor: Any,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> tuple[Any, ...]:
    first, second = _beta(Beta1Tensor, beta1), _beta(Beta2Tensor, beta2)
    moment1 = first * Moment1 + (1.0 - first) * Grad
    moment2 = second * Moment2 + (1.0 - second) * Grad * Grad
    rate = cast_like(LearningRate * xp.sqrt(1 - Beta2Pow) / (1 - Beta1Pow), Param)
    out = Param - rate * (moment1 / (xp.sqrt(moment2) + epsilon))
    return out, moment1, moment2, Beta1Pow * first, Beta2Pow * second


def _adam_rows(
    xp: Any,
    Param: Any,
    Grad: SelectedRows,
    LearningRate: Any,
    Moment1: Any,
    Moment2: Any,
    Beta1Pow: Any,
    Beta2Pow: Any,
    Beta1Tensor: Any,
    Beta2Tensor: Any,
    beta1: float,
    beta2: float,
    epsilon: float,
    lazy_mode: bool,
) -> tuple[Any, ...]:
    first, second = _beta(Beta1Tensor, beta1), _beta(Beta2Tensor, beta2)
    # Paddle 1.8 carries the powers on before it uses them, where the gradient is sparse.
    power1, power2 = Beta1Pow * first, Beta2Pow * second
    grad = Grad.merged(xp)
    chosen = grad.rows if lazy_mode else slice(None)
    tables = (Param, Moment1, Moment2)
    param, moment1, moment2 = (table[chosen] for table in tables)
    values = grad.values if lazy_mode else grad.dense(xp)
    made = _adam(
        xp, param, values, LearningRate, moment1, moment2, power1, power2, None, None, first, second, epsilon
    )
    if not lazy_mode:
        return (*made[:3], power1, power2)
    new = [rows.updated(xp, table, grad.rows, part) for table, part in zip(tables, made, strict=False)]
    return (*new, power1, power2)


def _native(op: OpView) -> Call | None:
    if op.has("Beta1Tensor") or op.has("Beta2Tensor"):
        return None
    return native_update("adam", MOMENTS, ("beta1", "beta2", "epsilon"))(op)


def _native_rows(op: OpView) -> list[Call] | None:
    if op.has("Beta1Tensor") or op.has("Beta2Tensor"):
        return None
    return native_rows_update("adam_rows", MOMENTS, ("beta1", "beta2", "epsilon"), ("lazy_mode",))(op)


update(
    "adam",
    _adam,
    MOMENTS,
    {
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "lazy_mode": False,
        "min_row_size_to_use_multithread": 1000,
    },
    (
        "Adam (Kingma and Ba 2015); the powers of the betas are carried on for the next step. With `lazy_mode` "
        "rows that a sparse gradient does not name stay as they are, moments and all."
    ),
    _native,
    inputs=("Param", "Grad", "LearningRate", *MOMENTS, "Beta1Tensor?", "Beta2Tensor?"),
    dispatch=Dispatch(
        rows=RowRule(_adam_rows, slots=("Grad",), native=_native_rows, cuda="sparse_updates.adam"),
        cuda="updates.make:adam",
    ),
)
