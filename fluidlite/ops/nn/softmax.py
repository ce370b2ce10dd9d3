"""Softmax along an axis."""

from __future__ import annotations

from typing import Any

from ...base.sizes.shapes import rows_along
from .. import batchable
from ..grad_pairs import double_grad, register_double_grad
from ..infer import grads_like_inputs, normalize_axis
from ..native import typed
from ..registry import Call, Dispatch, OpDef, OpView, Planning, grad_name, register, standard_grad

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


def rows_of(op: OpView, slot: str, axis: int) -> list[int] | None:
    """[rows, n] when `axis` is the last axis of `slot` that is longer than 1, which row kernels need; else
    None.
    """
    found = rows_along(op.shape(slot), axis)
    return None if found is None else list(found)


def _native(op: OpView) -> Call | None:
    name, rows = typed(op, "softmax", ("X",)), rows_of(op, "X", op.attr("axis"))
    return None if name is None or rows is None else Call(name, [op.name("X"), op.name("Out")], rows)


def _native_grad(op: OpView) -> Call | None:
    name, rows = typed(op, "softmax_grad", ("Out", DOUT)), rows_of(op, "Out", op.attr("axis"))
    return (
        None
        if name is None or rows is None
        else Call(name, [op.name("Out"), op.name(DOUT), op.name(DX)], rows)
    )


register(
    OpDef(
        "softmax",
        inputs=("X",),
        attrs=_ATTRS,
        infer=_infer,
        kernel=_softmax,
        grad=standard_grad(outputs=("Out",)),
        native=_native,
        dispatch=Dispatch(cuda="softmax.softmax"),
        planning=Planning(inplace=(("Out", "X"),), batchable=batchable.along_other_axis),
        doc="Exponentials divided by their sum along an axis.",
    )
)
register(
    OpDef(
        "softmax_grad",
        inputs=("Out", DOUT),
        outputs=(DX,),
        attrs=_ATTRS,
        infer=grads_like_inputs,
        kernel=_softmax_grad,
        grad=double_grad("Out", ("Out",)),
        native=_native_grad,
        dispatch=Dispatch(cuda="softmax.softmax_grad"),
        planning=Planning(inplace=((DX, DOUT),), batchable=batchable.along_other_axis),
        doc="The gradient of softmax from its output.",
    )
)
register_double_grad("softmax", ("Out",), "Out", ("Out",), _softmax_double_grad, _ATTRS, ("X",))
