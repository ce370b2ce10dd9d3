"""Elements picked by index or place: index_select, index_sample, masked_select, roll, unbind, meshgrid, diagonals,
triangles.
"""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType
from ..grad_pairs import linear_double_grad, register_pair
from ..infer import normalize_axis, product, same_as
from ..native import itemsize, numel
from ..registry import Attr, Call, OpView, Sequences, grad_name
from ..value_checks import require_in_range
from .manipulation import unstacked


def _along(axis: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * axis + (index,)


def _index_select(xp: Any, X: Any, Index: Any, dim: int) -> Any:
    index = Index.reshape(-1)
    require_in_range(xp, "index_select", "Index", index, X.shape[dim], f"entries in dimension {dim}")
    return xp.ascontiguousarray(X[_along(dim % X.ndim, index)])


def _index_select_grad(xp: Any, X: Any, Index: Any, Out_grad: Any, dim: int) -> Any:
    dx = xp.zeros_like(X)
    xp.add.at(dx, _along(dim % X.ndim, Index.reshape(-1)), Out_grad)
    return dx


def _infer_index_select(op: OpView) -> None:
    shape, index = list(op.shape("X")), op.shape("Index")
    if len(index) not in (1, 2) or (len(index) == 2 and index[1] != 1):
        raise op.fail(f"Index must be of shape [n] or [n, 1], got {list(index)}")
    if op.dtype("Index") not in (VarType.INT32, VarType.INT64):
        raise op.fail(f"Index must be int32 or int64, got {op.dtype('Index')}")
    shape[normalize_axis(op, op.attr("dim"), len(shape), "dim")] = index[0]
    op.set("Out", shape, op.dtype("X"))


register_pair(
    "index_select",
    ("X", "Index"),
    _index_select,
    _index_select_grad,
    _infer_index_select,
    "The entries of X along dimension `dim` that Index names.",
    attrs={"dim": 0},
    keep=("X#", "Index"),
    no_grad=("Index",),
    grad_grad=linear_double_grad("index_select"),
)


def _index_sample(xp: Any, X: Any, Index: Any) -> Any:
    require_in_range(xp, "index_sample", "Index", Index, X.shape[1], "columns in X")
    return xp.take_along_axis(X, Index, axis=1)


def _index_sample_grad(xp: Any, X: Any, Index: Any, Out_grad: Any) -> Any:
    dx = xp.zeros_like(X)
    xp.add.at(dx, (xp.arange(len(X))[:, None], Index), Out_grad)
    return dx


def _infer_index_sample(op: OpView) -> None:
    x, index = op.shape("X"), op.shape("Index")
    if len(x) != 2 or len(index) != 2 or (x[0] != index[0] and min(x[0], index[0]) >= 0):
        raise op.fail(f"X and Index must be matrices with as many rows, got {list(x)} and {list(index)}")
    op.set("Out", index, op.dtype("X"))


register_pair(
    "index_sample",
    ("X", "Index"),
    _index_sample,
    _index_sample_grad,
    _infer_index_sample,
    "Of each row of X the elements that the same row of Index names.",
    keep=("X#", "Index"),
    no_grad=("Index",),
    grad_grad=linear_double_grad("index_sample"),
    sequences=Sequences(source="Index"),
)


def _masked_grad(xp: Any, X: Any, Mask: Any, Y_grad: Any) -> Any:
    dx = xp.zeros_like(X)
    dx[xp.nonzero(Mask)] = Y_grad
    return dx


def _infer_masked(op: OpView) -> None:
    x, mask = op.shape("X"), op.shape("Mask")
    if op.dtype("Mask") != VarType.BOOL or len(x) != len(mask):
        raise op.fail(f"Mask must be bool and of the shape of X, got {op.dtype('Mask')} and {list(mask)}")
    op.set("Y", (-1,), op.dtype("X"))


def _masked_grad_native(op: OpView) -> Call:
    dy, dx = grad_name("Y"), grad_name("X")
    ints = [numel(op, "X"), numel(op, dy), itemsize(op, "X")]
    return Call("masked_select_grad", [op.name(dy), op.name("Mask"), op.name(dx)], ints)


register_pair(
    "masked_select",
    ("X", "Mask"),
    lambda xp, X, Mask: X[Mask],
    _masked_grad,
    _infer_masked,
    "The elements of X where Mask is true, one after another.",
    outputs=("Y",),
    keep=("X#", "Mask"),
    no_grad=("Mask",),
    grad_grad=linear_double_grad("masked_select", out="Y"),
    sequences=Sequences(source=None),
    native=(None, _masked_grad_native),
)


def _rolled(xp: Any, X: Any, shifts: Any, dims: Any) -> Any:
    if not dims:
        return xp.roll(X.reshape(-1), shifts[0]).reshape(X.shape)
    return xp.roll(X, tuple(shifts), axis=tuple(dims))


def _infer_roll(op: OpView) -> None:
    shifts, dims = op.attr("shifts"), op.attr("dims")
    if len(shifts) != (len(dims) or 1):
        raise op.fail(f"there must be one shift for each of dims, got {list(shifts)} and {list(dims)}")
    for axis in dims:
        normalize_axis(op, axis, len(op.shape("X")), "dims")
    op.set("Out", op.shape("X"), op.dtype("X"))


register_pair(
    "roll",
    ("X",),
    _rolled,
    lambda xp, Out_grad, shifts, dims: _rolled(xp, Out_grad, [-n for n in shifts], dims),
    _infer_roll,
    "X moved on by `shifts` along `dims`; what leaves at the end comes in at the front.",
    attrs={"shifts": [], "dims": Attr([], "LONGS")},
    keep=("X#",),
    grad_grad=linear_double_grad("roll"),
)


def _infer_unbind(op: OpView) -> None:
    x = op.shape("X")
    axis = normalize_axis(op, op.attr("axis"), len(x))
    if x[axis] >= 0 and op.count("Out") != x[axis]:
        raise op.fail(f"dimension {axis} of X has {x[axis]} entries, got {op.count('Out')} outputs")
    for index in range(op.count("Out")):
        op.set("Out", x[:axis] + x[axis + 1 :], op.dtype("X"), index)


register_pair(
    "unbind",
    ("X",),
    unstacked,
    lambda xp, Out_grad, axis: xp.stack(Out_grad, axis=axis),
    _infer_unbind,
    "X split into its entries along dimension `axis`.",
    outputs=("Out*",),
    attrs={"axis": 0},
    grad_grad=linear_double_grad("unbind"),
)


def _meshgrid(xp: Any, X: list[Any]) -> list[Any]:
    shape = tuple(x.size for x in X)
    return [
        xp.broadcast_to(x.reshape((1,) * k + (-1,) + (1,) * (len(X) - k - 1)), shape).copy()
        for k, x in enumerate(X)
    ]


def _meshgrid_grad(xp: Any, X: list[Any], Out_grad: list[Any]) -> list[Any]:
    result = []
    for k, (x, dout) in enumerate(zip(X, Out_grad, strict=True)):
        others = tuple(axis for axis in range(dout.ndim) if axis != k)
        result.append(dout.sum(axis=others, dtype=dout.dtype).reshape(x.shape))
    return result


def _infer_meshgrid(op: OpView) -> None:
    shape = [product(op.shape("X", index)) for index in range(op.count("X"))]
    for index in range(op.count("X")):
        if len(op.shape("X", index)) > 1:
            raise op.fail(f"all X must be vectors, got shape {list(op.shape('X', index))}")
        op.set("Out", shape, op.dtype("X", index), index)


register_pair(
    "meshgrid",
    ("X*",),
    _meshgrid,
    _meshgrid_grad,
    _infer_meshgrid,
    "Each vector X along a dimension of its own, repeated along those of the others.",
    outputs=("Out*",),
    sequences=Sequences(source=None),
)


def _trace_axes(op: OpView, a: str, b: str, rank: int) -> tuple[int, int]:
    first, second = (normalize_axis(op, op.attr(name), rank, name) for name in (a, b))
    if first == second:
        raise op.fail(f"{a} and {b} must differ, got {first}")
    return first, second


def _diagonal_places(shape: Any, offset: int, first: int, second: int) -> tuple[range, range]:
    """The indices of a diagonal's elements along its two dimensions."""
    rows, columns = shape[first], shape[second]
    row, column = max(-offset, 0), max(offset, 0)
    length = max(min(rows - row, columns - column), 0)
    return range(row, row + length), range(column, column + length)


def _diagonal(xp: Any, array: Any, offset: int, first: int, second: int) -> tuple[Any, Any]:
    """A view of `array` with the two dimensions in front, and the index of the diagonal in it."""
    moved = xp.moveaxis(array, (first, second), (0, 1))
    rows, columns = _diagonal_places(array.shape, offset, first % array.ndim, second % array.ndim)
    return moved, (xp.arange(rows.start, rows.stop), xp.arange(columns.start, columns.stop))


def _in_order(array: Any, dim1: int, dim2: int) -> list[int]:
    """The dimensions of a trace: in Fluid the offset always counts along the later one."""
    return sorted((dim1 % array.ndim, dim2 % array.ndim))


def _trace(xp: Any, Input: Any, offset: int, dim1: int, dim2: int) -> Any:
    moved, places = _diagonal(xp, Input, offset, *_in_order(Input, dim1, dim2))
    total = moved[places].sum(axis=0, dtype=Input.dtype)
    return total if total.ndim else total.reshape(1)


def _trace_grad(xp: Any, Input: Any, Out_grad: Any, offset: int, dim1: int, dim2: int) -> Any:
    whole = xp.zeros_like(Input)
    moved, places = _diagonal(xp, whole, offset, *_in_order(Input, dim1, dim2))
    moved[places] = Out_grad.reshape(moved.shape[2:])
    return whole


def _infer_trace(op: OpView) -> None:
    shape = op.shape("Input")
    axes = _trace_axes(op, "dim1", "dim2", len(shape))
    op.set("Out", tuple(n for axis, n in enumerate(shape) if axis not in axes) or (1,), op.dtype("Input"))


register_pair(
    "trace",
    ("Input",),
    _trace,
    _trace_grad,
    _infer_trace,
    "The sum of a diagonal of the matrices that the dimensions dim1 and dim2 make.",
    attrs={"offset": 0, "dim1": -2, "dim2": -1},
    keep=("Input#",),
    grad_grad=linear_double_grad("trace", "Input"),
    sequences=Sequences(source=None),
)


def _diag_embed(xp: Any, Input: Any, offset: int, dim1: int, dim2: int) -> Any:
    size = Input.shape[-1] + abs(offset)
    rank = Input.ndim + 1
    first, second = dim1 % rank, dim2 % rank
    shape = list(Input.shape[:-1])
    for axis in sorted((first, second)):
        shape.insert(axis, size)
    whole = xp.zeros(shape, Input.dtype)
    moved, places = _diagonal(xp, whole, offset, first, second)
    moved[places] = xp.moveaxis(Input, -1, 0)
    return whole


def _diag_embed_grad(xp: Any, Out_grad: Any, offset: int, dim1: int, dim2: int) -> Any:
    moved, places = _diagonal(xp, Out_grad, offset, dim1, dim2)
    return xp.ascontiguousarray(xp.moveaxis(moved[places], 0, -1))


def _infer_diag_embed(op: OpView) -> None:
    given = op.shape("Input")
    shape, size = list(given[:-1]), given[-1] + abs(op.attr("offset")) if given[-1] >= 0 else -1
    for axis in sorted(_trace_axes(op, "dim1", "dim2", len(given) + 1)):
        shape.insert(axis, size)
    op.set("Out", shape, op.dtype("Input"))


register_pair(
    "diag_embed",
    ("Input",),
    _diag_embed,
    _diag_embed_grad,
    _infer_diag_embed,
    "Matrices over the dimensions dim1 and dim2 whose diagonal is the last dimension of Input; 0 elsewhere.",
    attrs={"offset": 0, "dim1": -2, "dim2": -1},
    keep=("Input#",),
    grad_grad=linear_double_grad("diag_embed", "Input"),
    sequences=Sequences(source=None),
)


def _triangle(xp: Any, X: Any, diagonal: int, lower: bool) -> Any:
    return (xp.tril if lower else xp.triu)(X, diagonal)


register_pair(
    "tril_triu",
    ("X",),
    _triangle,
    lambda xp, Out_grad, diagonal, lower: _triangle(xp, Out_grad, diagonal, lower),
    same_as("X"),
    "The lower or upper triangle of each matrix from a diagonal on, 0 elsewhere.",
    attrs={"diagonal": 0, "lower": False},
    keep=(),
    grad_grad=linear_double_grad("tril_triu"),
)
