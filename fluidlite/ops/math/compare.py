"""Comparisons, logic and predicates of whole arrays; their results are bool and have no gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.sizes import same_shape
from .. import planning_rules
from ..grad_pairs import register_pair
from ..infer import broadcast_shape, grads_like_inputs, may_equal, middle, operands, require_same_dtype
from ..native import BYTES, NUMERIC, Selector, itemsize, numel, typed, unary
from ..registry import Call, Dispatch, OpSpec, OpView, Planning, Sequences, grad_name, register

Kernel = Callable[..., Any]


def _infer_compare(op: OpView) -> None:
    require_same_dtype(op, "X", "Y")
    op.set("Out", broadcast_shape(op, op.attr("axis")), VarType.BOOL)


def _compare(kernel: str) -> Selector:
    def select(op: OpView) -> Call | None:
        x, y = op.shape("X"), op.shape("Y")
        same = same_shape(x, y)
        layout = [numel(op, "X")] if same else middle(x, y, op.attr("axis"))
        name = typed(op, kernel if same else f"{kernel}_mid", ("X", "Y"), NUMERIC)
        return Call(name, [op.name("X"), op.name("Y"), op.name("Out")], layout) if name and layout else None

    return select


def _register_comparison(op_type: str, symbol: str, function: Kernel, pattern: str = "") -> None:
    def kernel(xp: Any, X: Any, Y: Any, axis: int) -> Any:
        return function(*operands(X, Y, axis))

    register(
        op_type,
        inputs=("X", "Y"),
        attrs={"axis": -1, "force_cpu": False},
        infer=_infer_compare,
        kernel=kernel,
        no_grad=("Out",),
        native=_compare(op_type),
        planning=Planning(batchable=planning_rules.with_operand, pattern=pattern),
        doc=f"Whether X {symbol} Y, element by element.",
    )


_register_comparison("equal", "=", lambda x, y: x == y)
_register_comparison("not_equal", "differs from", lambda x, y: x != y)
_register_comparison("less_than", "<", lambda x, y: x < y, pattern="limit")
_register_comparison("less_equal", "<=", lambda x, y: x <= y)
_register_comparison("greater_than", ">", lambda x, y: x > y)
_register_comparison("greater_equal", ">=", lambda x, y: x >= y)


def _equal_reduce(xp: Any, X: Any, Y: Any, axis: int) -> Any:
    x, y = operands(X, Y, axis)
    return (x == y).all().reshape(1)


def _infer_equal_reduce(op: OpView) -> None:
    require_same_dtype(op, "X", "Y")
    if len(op.shape("X")) < len(op.shape("Y")):
        op.refuse(
            f"X must have at least as many dimensions as Y, got {list(op.shape('X'))} and {list(op.shape('Y'))}"
        )
    broadcast_shape(op, op.attr("axis"))
    op.set("Out", (1,), VarType.BOOL)


register(
    "equal_reduce",
    inputs=("X", "Y"),
    attrs={"axis": -1},
    infer=_infer_equal_reduce,
    kernel=_equal_reduce,
    no_grad=("Out",),
    sequences=Sequences(source=None),
    doc="Whether all elements of X equal those of Y, which is broadcast.",
)


def _infer_logical(op: OpView) -> None:
    slots = [slot for slot in ("X", "Y") if op.has(slot)]
    for slot in slots:
        if op.dtype(slot) != VarType.BOOL:
            raise op.fail(f"{slot} must be bool, got {op.dtype(slot)}")
    shape = op.shape("X")
    if len(slots) == 2 and -1 not in (*shape, *op.shape("Y")) and shape != op.shape("Y"):
        raise op.fail(f"X and Y must have the same shape, got {list(shape)} and {list(op.shape('Y'))}")
    op.set("Out", shape, VarType.BOOL)


def _logical(kernel: str) -> Selector:
    def select(op: OpView) -> Call | None:
        slots = [slot for slot in ("X", "Y") if op.has(slot)]
        name = typed(op, kernel, slots, BYTES)
        return (
            Call(name, [*(op.name(slot) for slot in slots), op.name("Out")], [numel(op, "X")])
            if name
            else None
        )

    return select


def _register_logical(op_type: str, inputs: tuple[str, ...], kernel: Kernel, doc: str) -> None:
    register(
        op_type,
        inputs=inputs,
        infer=_infer_logical,
        kernel=kernel,
        no_grad=("Out",),
        native=_logical(op_type),
        planning=Planning(batchable=planning_rules.all_batched, inplace=(("Out", "X"),)),
        doc=doc,
    )


_register_logical("logical_and", ("X", "Y"), lambda xp, X, Y: X & Y, "Whether both X and Y are true.")
_register_logical("logical_or", ("X", "Y"), lambda xp, X, Y: X | Y, "Whether X or Y or both are true.")
_register_logical(
    "logical_xor", ("X", "Y"), lambda xp, X, Y: X ^ Y, "Whether exactly one of X and Y is true."
)
_register_logical("logical_not", ("X",), lambda xp, X: ~X, "Whether X is false.")


def _infer_one_bool(op: OpView) -> None:
    op.set("Out", (1,), VarType.BOOL)


def _register_question(op_type: str, kernel: Kernel, doc: str, native: Selector | None = None) -> None:
    register(
        op_type,
        inputs=("X",),
        infer=_infer_one_bool,
        kernel=kernel,
        no_grad=("Out",),
        native=native,
        sequences=Sequences(source=None),
        doc=doc,
    )


_register_question(
    "isfinite",
    lambda xp, X: xp.isfinite(X).all().reshape(1),
    "Whether all elements are finite.",
    unary("isfinite"),
)
_register_question("isinf", lambda xp, X: xp.isinf(X).any().reshape(1), "Whether any element is infinite.")
_register_question(
    "isnan", lambda xp, X: xp.isnan(X).any().reshape(1), "Whether any element is not a number."
)
_register_question(
    "is_empty",
    lambda xp, X: xp.full((1,), X.size == 0, dtype="bool"),
    "Whether there are no elements.",
    lambda op: Call("fill.u8", [op.name("Out")], [1, int(numel(op, "X") == 0)]),
)


def _infer_where(op: OpView) -> None:
    dtype = require_same_dtype(op, "X", "Y")
    if op.dtype("Condition") != VarType.BOOL:
        raise op.fail(f"Condition must be bool, got {op.dtype('Condition')}")
    chosen = op.shape("X")
    for slot in ("Condition", "Y"):
        if not may_equal(chosen, op.shape(slot)):
            raise op.fail(f"{slot} must have the shape of X, {list(chosen)}, got {list(op.shape(slot))}")
    op.set("Out", chosen, dtype)
    op.carry("Out", op.lod("X"))


def _where_native(op: OpView) -> Call:
    operands = [op.name(slot) for slot in ("Condition", "X", "Y", "Out")]
    return Call("where", operands, [numel(op, "Out"), itemsize(op, "Out")])


def _where_grad_infer(op: OpView) -> None:
    grads_like_inputs(op)
    for slot in ("X", "Y"):
        op.carry(grad_name(slot), ())


def _where_grad_native(op: OpView) -> Call:
    dout = grad_name("Out")
    operands = [
        op.name("Condition"),
        op.name(dout),
        *[op.name_or_none(grad_name(s)) or None for s in ("X", "Y")],
    ]
    return Call("where_grad", operands, [numel(op, dout), itemsize(op, dout)])


def _where_double_grad(op: OpView) -> list[OpSpec]:
    """`where` is linear: the gradient of the gradient is `where` of the given gradients."""
    takes = {"Condition": list(op.names("Condition"))}
    for slot in ("X", "Y"):
        if op.has(grad_name(slot)):
            takes[slot] = [grad_name(op.name(grad_name(slot)))]
    return [OpSpec("where_grad_grad", takes, {"Out": [grad_name(op.name(grad_name("Out")))]})]


register(
    "where_grad_grad",
    inputs=("Condition", "X?", "Y?"),
    infer=lambda op: op.set("Out", op.shape("Condition"), op.dtype("X" if op.has("X") else "Y")),
    kernel=lambda xp, Condition, X, Y: xp.where(Condition, 0 if X is None else X, 0 if Y is None else Y),
    doc="The gradient of where_grad for the gradient of Out: X where Condition is true, Y elsewhere.",
)

register_pair(
    "where",
    ("Condition", "X", "Y"),
    lambda xp, Condition, X, Y: xp.where(Condition, X, Y),
    lambda xp, Condition, Out_grad: (
        xp.where(Condition, Out_grad, 0),
        xp.where(Condition, 0, Out_grad),
    ),
    _infer_where,
    "X where Condition is true, Y elsewhere.",
    keep=("Condition", "X#", "Y#"),
    no_grad=("Condition",),
    sequences=Sequences(source="X"),
    planning=Planning(inplace=(("Out", "X"), ("Out", "Y"))),
    infer_back=_where_grad_infer,
    grad_grad=_where_double_grad,
    native=(_where_native, _where_grad_native),
)


def _where_index(xp: Any, Condition: Any) -> Any:
    return xp.stack(xp.nonzero(Condition), axis=1).astype("int64")


def _where_index_here(xp: Any, Condition: np.ndarray) -> np.ndarray:
    """`_where_index` by a native kernel."""
    if not Condition.ndim:
        return _where_index(xp, Condition)
    from ..._ext import kernels  # brings SciPy

    true = np.ascontiguousarray(Condition if Condition.dtype == bool else Condition != 0)
    result = np.empty((np.count_nonzero(true), true.ndim), np.int64)
    kernels.call(
        "where_index", [true, np.array(true.shape, np.int64), result], [true.size, true.ndim, len(result)]
    )
    return result


def _infer_where_index(op: OpView) -> None:
    op.set("Out", (-1, len(op.shape("Condition"))), VarType.INT64)


register(
    "where_index",
    inputs=("Condition",),
    infer=_infer_where_index,
    kernel=_where_index,
    no_grad=("Out",),
    dispatch=Dispatch(numpy=_where_index_here),
    sequences=Sequences(source=None),
    doc="The indices of the true elements, one row each.",
)
