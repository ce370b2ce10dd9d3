"""Operators that look for the largest and smallest elements and that sort."""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType, to_numpy, to_vartype
from .. import batchable, native
from ..infer import grads_like_inputs, normalize_axis
from ..registry import Attr, Call, Effects, OpDef, OpView, Planning, Sequences, register, standard_grad


def _arg_infer(op: OpView) -> None:
    shape = op.shape("X")
    axis = normalize_axis(op, op.attr("axis"), len(shape))
    if shape[axis] == 0 and 0 not in (*shape[:axis], *shape[axis + 1 :]):
        raise op.fail(f"there is nothing to compare along dimension {axis} of shape {list(shape)}")
    kept = [*shape[:axis], *([1] if op.attr("keepdims") else []), *shape[axis + 1 :]]
    wanted = op.attr("dtype")
    op.set("Out", kept or [1], VarType.INT64 if wanted < 0 else to_vartype(wanted))


def _arg_kernel(find: str) -> Any:
    def kernel(xp: Any, X: Any, axis: int, keepdims: bool, dtype: int) -> Any:
        if X.dtype.kind == "f":  # NaN is never the best
            X = xp.where(xp.isnan(X), -xp.inf if find == "argmax" else xp.inf, X)
        found = getattr(xp, find)(X, axis=axis)
        if keepdims:
            found = xp.expand_dims(found, axis)
        return found.reshape(found.shape or (1,)).astype(to_numpy(VarType.INT64 if dtype < 0 else dtype))

    return kernel


def _arg_native(kernel: str) -> Any:
    def select(op: OpView) -> Call | None:
        name = native.typed(op, kernel, ("X",))
        if name is None or op.dtype("Out") != VarType.INT64:
            return None
        shape = op.shape("X")
        return Call(
            name, [op.name("X"), op.name("Out")], native.split_at(shape, op.attr("axis") % len(shape))
        )

    return select


for _type, _find in (("arg_max", "argmax"), ("arg_min", "argmin")):
    register(
        OpDef(
            _type,
            inputs=("X",),
            attrs={"axis": Attr(0, "LONG"), "keepdims": False, "dtype": -1},
            infer=_arg_infer,
            kernel=_arg_kernel(_find),
            no_grad=("Out",),
            native=_arg_native(_type),
            sequences=Sequences(source=None),
            effects=Effects(numbered=False),
            planning=Planning(batchable=batchable.along_other_axis),
            doc=f"Where along an axis the {_find[3:]}imum stands; the first place if there are several.",
        )
    )


def _argsort_infer(op: OpView) -> None:
    normalize_axis(op, op.attr("axis"), len(op.shape("X")))
    op.set("Out", op.shape("X"), op.dtype("X"))
    op.set("Indices", op.shape("X"), VarType.INT64)


def _argsort(xp: Any, X: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    if descending:
        # Sorting the reversed tensor, and reversing the result, keeps the order of equal elements.
        last = X.shape[axis] - 1
        order = last - xp.flip(xp.argsort(xp.flip(X, axis), axis=axis, kind="stable"), axis)
    else:
        order = xp.argsort(X, axis=axis, kind="stable")
    return xp.take_along_axis(X, order, axis), order.astype("int64")


register(
    OpDef(
        "argsort",
        inputs=("X",),
        outputs=("Out", "Indices"),
        attrs={"axis": -1, "descending": False},
        infer=_argsort_infer,
        kernel=_argsort,
        grad=standard_grad(inputs=("X",), outputs=("Indices",)),
        no_grad=("Indices",),
        effects=Effects(numbered=False),
        doc="X sorted along an axis, and where each element stood; equal elements keep their order.",
    )
)


def _argsort_grad(xp: Any, X: Any, Indices: Any, Out_grad: Any, axis: int) -> Any:
    return xp.take_along_axis(Out_grad, xp.argsort(Indices, axis=axis), axis)


register(
    OpDef(
        "argsort_grad",
        inputs=("X", "Indices", "Out@GRAD"),
        outputs=("X@GRAD",),
        attrs={"axis": -1, "descending": False},
        infer=grads_like_inputs,
        kernel=_argsort_grad,
        doc="The gradient of argsort: each element of Out's goes back to where it came from.",
    )
)
