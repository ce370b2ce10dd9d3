"""Scores of a few classes chosen for each row, which `nce` and `hierarchical_sigmoid` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.selected_rows import SelectedRows
from ..native import typed
from ..registry import Call, OpView, grad_name
from ..tensor import selected_rows as rows


def scores_of(x: Any, weight: Any, bias: Any, chosen: Any) -> Any:
    """[rows, k]: the products of each row of `x` [rows, width] with the rows of `weight` [classes, width] that `chosen`
    [rows, k] names, plus `bias` (of `classes` elements, or None).
    """
    scores = (x[:, None, :] * weight[chosen]).sum(axis=2)
    return scores if bias is None else scores + bias.reshape(-1)[chosen]


def scores_grad(
    xp: Any, x: Any, weight: Any, bias: Any, chosen: Any, dscores: Any, sparse: Any = None
) -> tuple[Any, Any, Any]:
    """The gradients of `scores_of` for `x`, `weight` and `bias` (None without one); `dscores` is [rows, k].

    `sparse`: None for a dense gradient of `weight`; for SelectedRows, the mask [rows, k] of existing scores.
    """
    dx = (dscores[:, :, None] * weight[chosen]).sum(axis=1)
    dchosen = dscores[:, :, None] * x[:, None, :]
    if sparse is None:
        dweight = xp.zeros_like(weight)
        xp.add.at(dweight, chosen, dchosen)
    elif xp is np:
        dweight = SelectedRows(chosen[sparse], dchosen[sparse], len(weight)).merged()
    else:  # counting different rows would wait for the device; missing scores add 0
        dweight = SelectedRows(chosen.reshape(-1), dchosen.reshape(-1, weight.shape[1]), len(weight))
    if bias is None:
        return dx, dweight, None
    dbias = xp.zeros(bias.size, bias.dtype)
    xp.add.at(dbias, chosen, dscores)
    return dx, dweight, dbias.reshape(bias.shape)


def check_rows(op: OpView, first: str, *others: str) -> None:
    """Raise OperatorError unless each of the slots `others` that is there has as many rows as `first`."""
    count = op.shape(first)[0]
    for slot in others:
        rows_of = op.shape(slot)[0] if op.has(slot) else -1
        if rows_of >= 0 and count >= 0 and rows_of != count:
            raise op.fail(f"{slot} must have {count} rows, as many as {first}, got {rows_of}")


def call_of(
    op: OpView,
    kernel: str,
    given: tuple[str, ...],
    made: tuple[str, ...],
    whole: tuple[str, ...],
    ints: list[int],
) -> Call | None:
    """The call of `kernel` with the slots `given` and `made`; None if those in `whole` are not int64, or the others not
    of one real type. A slot that is missing is an operand left out.
    """
    slots = [slot for slot in (*given, *made) if op.has(slot)]
    name = typed(op, kernel, [slot for slot in slots if slot not in whole])
    if name is None or any(op.dtype(slot) != VarType.INT64 for slot in slots if slot in whole):
        return None
    return Call(name, [op.name_or_none(slot) for slot in (*given, *made)], ints)


Selector = Callable[[OpView], list[Call] | None]


def grad_calls(
    kernel: str,
    given: tuple[str, ...],
    table: tuple[str, str, str],
    whole: tuple[str, ...],
    ints: Callable[[OpView], list[int]],
) -> tuple[Selector, Selector]:
    """Selectors of the gradient call for the slots `table` (x, table, bias): with dense gradients, and with that of the
    table as SelectedRows. The other arguments are those of `call_of`.
    """
    dx, dtable, dbias = map(grad_name, table)

    def sparse(op: OpView) -> list[Call] | None:
        in_rows = op.attr("is_sparse") and op.has(dtable)
        call = call_of(op, kernel + "_rows" * in_rows, given, (dx, dtable, dbias), whole, ints(op))
        if call is None or not in_rows:
            return None if call is None else [call]
        before = list(call.operands)
        operands = [*before[:-2], *rows.parts(op.name(dtable)), before[-1]]
        return [Call(call.kernel, operands, call.ints)]

    def dense(op: OpView) -> list[Call] | None:
        return None if op.attr("is_sparse") else sparse(op)

    return dense, sparse
