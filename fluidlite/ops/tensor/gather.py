"""Operators that read or write rows by index, with their gradients.

An index out of range is an error that names the value and the number of rows.
"""

from __future__ import annotations

from typing import Any

from ...base.shapes import product
from ..infer import grads_like_inputs, require_same_dtype
from ..native import itemsize, typed
from ..pairs import applied_again
from ..ranges import require_in_range
from ..registry import Call, OpDef, OpView, grad_name, register, standard_grad
from ..scatter import add_at

DOUT, DX, DUPDATES = grad_name("Out"), grad_name("X"), grad_name("Updates")


def _rows(xp: Any, op_type: str, slot: str, index: Any, size: int) -> Any:
    """`index` as a vector of row numbers; raises OperatorError unless all are in [0, size)."""
    flat = index.reshape(-1)
    require_in_range(xp, op_type, slot, flat, size, "rows")
    return flat


def _infer_gather(op: OpView) -> None:
    index, x = op.shape("Index"), op.shape("X")
    if len(index) not in (1, 2) or (len(index) == 2 and index[1] != 1):
        raise op.fail(f"Index must be of shape [n] or [n, 1], got {list(index)}")
    if not x:
        raise op.fail("X must have at least one dimension")
    op.set("Out", (index[0], *x[1:]), op.dtype("X"))


def _gather_grad(xp: Any, X: Any, Index: Any, Out_grad: Any, overwrite: bool) -> Any:
    rows = _rows(xp, "gather", "Index", Index, X.shape[0])
    dx = xp.zeros_like(X)
    if overwrite:
        dx[rows] = Out_grad
    else:
        add_at(xp, dx, rows, Out_grad)
    return dx


register(
    OpDef(
        "gather",
        lod_from=None,
        inputs=("X", "Index"),
        attrs={"overwrite": True},
        infer=_infer_gather,
        kernel=lambda xp, X, Index: X[_rows(xp, "gather", "Index", Index, X.shape[0])],
        grad=standard_grad(inputs=("X", "Index")),
        gradable=("X",),
        doc="The rows of X that Index names.",
    )
)
register(
    OpDef(
        "gather_grad",
        inputs=("X#", "Index", DOUT),
        outputs=(DX,),
        attrs={"overwrite": True},
        infer=grads_like_inputs,
        kernel=_gather_grad,
        grad=applied_again("gather"),
        doc="Gradient of gather; of rows taken several times the last counts, or their sum.",
    )
)


def _points(xp: Any, op_type: str, Index: Any, shape: Any) -> tuple[Any, ...]:
    """The columns of the last dimension of Index, one for each indexed dimension of an array of `shape`."""
    depth = Index.shape[-1]
    return tuple(
        _rows(xp, op_type, f"Index[..., {k}]", Index[..., k], shape[k]).reshape(Index.shape[:-1])
        for k in range(depth)
    )


def _infer_gather_nd(op: OpView) -> None:
    index, x = op.shape("Index"), op.shape("X")
    if not index or index[-1] > len(x) or index[-1] < 1:
        raise op.fail(
            f"the last dimension of Index must be between 1 and the {len(x)} of X, got {list(index)}"
        )
    op.set("Out", (*index[:-1], *x[index[-1] :]) or (1,), op.dtype("X"))


def _gather_nd(xp: Any, X: Any, Index: Any) -> Any:
    out = xp.asarray(X[_points(xp, "gather_nd", Index, X.shape)])
    return out if out.ndim else out.reshape(1)


def _gather_nd_native(op: OpView) -> Call | None:
    name = typed(op, "gather_nd", ("Index",), ("i32", "i64"))
    if name is None:
        return None
    x, index = op.shape("X"), op.shape("Index")
    ints = [product(index[:-1]), product(x[index[-1] :]) * itemsize(op, "X"), *x[: index[-1]]]
    return Call(name, [op.name("X"), op.name("Index"), op.name("Out")], ints)


def _gather_nd_grad(xp: Any, X: Any, Index: Any, Out_grad: Any) -> Any:
    points = _points(xp, "gather_nd", Index, X.shape)
    dx = xp.zeros_like(X)
    add_at(xp, dx, points, Out_grad.reshape((*Index.shape[:-1], *X.shape[Index.shape[-1] :])))
    return dx


register(
    OpDef(
        "gather_nd",
        inputs=("X", "Index"),
        infer=_infer_gather_nd,
        kernel=_gather_nd,
        grad=standard_grad(inputs=("X", "Index")),
        gradable=("X",),
        native=_gather_nd_native,
        counted=False,
        doc="The elements or slices of X at the points that the last dimension of Index holds.",
    )
)
register(
    OpDef(
        "gather_nd_grad",
        inputs=("X#", "Index", DOUT),
        outputs=(DX,),
        infer=grads_like_inputs,
        kernel=_gather_nd_grad,
        grad=applied_again("gather_nd"),
        doc="Gradient of gather_nd: the sum where a point was taken several times.",
    )
)


def _infer_scatter(op: OpView) -> None:
    ids, updates, x = op.shape("Ids"), op.shape("Updates"), op.shape("X")
    if len(ids) not in (1, 2) or (len(ids) == 2 and ids[1] != 1):
        raise op.fail(f"Ids must be of shape [n] or [n, 1], got {list(ids)}")
    if len(updates) != len(x) or (updates[0] != ids[0] and min(updates[0], ids[0]) >= 0):
        raise op.fail(
            f"Updates must have one row for each of the {ids[0]} Ids and X's other sizes, got {list(updates)}"
        )
    require_same_dtype(op, "X", "Updates")
    op.set("Out", x, op.dtype("X"))


def _scatter(xp: Any, X: Any, Ids: Any, Updates: Any, overwrite: bool) -> Any:
    rows = _rows(xp, "scatter", "Ids", Ids, X.shape[0])
    out = X.copy()
    if overwrite:
        out[rows] = Updates
    else:
        out[rows] = 0
        add_at(xp, out, rows, Updates)
    return out


def _scatter_grad(xp: Any, Ids: Any, Out_grad: Any) -> Any:
    return Out_grad, Out_grad[_rows(xp, "scatter", "Ids", Ids, Out_grad.shape[0])]


def _infer_scatter_grad(op: OpView) -> None:
    op.set(DX, op.shape(DOUT), op.dtype(DOUT))
    op.set(DUPDATES, op.shape("Updates"), op.dtype("Updates"))


register(
    OpDef(
        "scatter",
        inputs=("X", "Ids", "Updates"),
        attrs={"overwrite": True},
        infer=_infer_scatter,
        kernel=_scatter,
        grad=standard_grad(inputs=("Ids", "Updates")),
        gradable=("X", "Updates"),
        doc="X with the rows Ids replaced by Updates, or by the sum of theirs without `overwrite`.",
        lod_from=None,
    )
)
register(
    OpDef(
        "scatter_grad",
        inputs=("Ids", "Updates#", DOUT),
        outputs=(DX, DUPDATES),
        attrs={"overwrite": True},
        infer=_infer_scatter_grad,
        kernel=_scatter_grad,
        doc="Gradients of scatter. As in Fluid 1.8 that of X includes the replaced rows.",
    )
)


def _infer_scatter_nd_add(op: OpView) -> None:
    index, updates, x = op.shape("Index"), op.shape("Updates"), op.shape("X")
    if not index or not 1 <= index[-1] <= len(x):
        raise op.fail(
            f"the last dimension of Index must be between 1 and the {len(x)} of X, got {list(index)}"
        )
    wanted = (*index[:-1], *x[index[-1] :])
    if len(updates) != len(wanted) or any(
        m != n and min(m, n) >= 0 for m, n in zip(updates, wanted, strict=True)
    ):
        raise op.fail(f"Updates must be of shape {list(wanted)}, got {list(updates)}")
    require_same_dtype(op, "X", "Updates")
    op.set("Out", x, op.dtype("X"))


def _scatter_nd_add(xp: Any, X: Any, Index: Any, Updates: Any) -> Any:
    out = X.copy()
    add_at(xp, out, _points(xp, "scatter_nd_add", Index, X.shape), Updates)
    return out


def _scatter_nd_add_grad(xp: Any, Index: Any, Out_grad: Any) -> Any:
    return Out_grad, Out_grad[_points(xp, "scatter_nd_add", Index, Out_grad.shape)]


register(
    OpDef(
        "scatter_nd_add",
        inputs=("X", "Index", "Updates"),
        infer=_infer_scatter_nd_add,
        kernel=_scatter_nd_add,
        grad=standard_grad(inputs=("Index", "Updates")),
        gradable=("X", "Updates"),
        doc="X with Updates added at the points that the last dimension of Index holds.",
    )
)
register(
    OpDef(
        "scatter_nd_add_grad",
        inputs=("Index", "Updates#", DOUT),
        outputs=(DX, DUPDATES),
        infer=_infer_scatter_grad,
        kernel=_scatter_nd_add_grad,
        doc="Gradients of scatter_nd_add.",
    )
)
