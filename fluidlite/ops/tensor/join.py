"""Operators that join or part arrays: concat, split, sum and multiplex, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.selected_rows import SelectedRows
from ...base.tensor_array import TensorArray
from .. import planning_rules
from ..grad_pairs import gradient_by, linear_double_grad, register_pair
from ..infer import given_numbers, known_numbers, normalize_axis, product, shape_of_all
from ..native import NUMERIC, itemsize, numel, typed
from ..registry import (
    Call,
    Dispatch,
    Effects,
    OpSpec,
    OpView,
    Planning,
    RowRule,
    Sequences,
    Shape,
    grad_name,
    register,
)
from ..value_checks import require_in_range
from . import gather as rows

DOUT, DX = grad_name("Out"), grad_name("X")


def _axis_of(op: OpView) -> int | None:
    """The axis, an attribute or a tensor; None if the tensor is not constant."""
    if not op.has("AxisTensor"):
        return int(op.attr("axis"))
    known = known_numbers(op, "AxisTensor")
    return known[0] if known else None


def _axis(AxisTensor: Any, axis: int) -> int:
    return axis if AxisTensor is None else given_numbers((), AxisTensor)[0]


def _infer_concat(op: OpView) -> None:
    first, axis = op.shape("X"), _axis_of(op)
    if axis is None:
        op.set("Out", (-1,) * len(first), op.dtype("X"))
        return
    axis = normalize_axis(op, axis, len(first))
    dims = list(first)
    for index in range(1, op.count("X")):
        shape = op.shape("X", index)
        if len(shape) != len(first):
            raise op.fail(f"all X must have {len(first)} dimensions, got {list(shape)}")
        for k, (m, n) in enumerate(zip(dims, shape, strict=True)):
            if k == axis:
                dims[k] = m + n if m >= 0 and n >= 0 else -1
            elif m >= 0 and n >= 0 and m != n:
                raise op.fail(f"all X must be equal in dimension {k}, got {list(first)} and {list(shape)}")
            else:
                dims[k] = max(m, n)
        if op.dtype("X", index) != op.dtype("X"):
            raise op.fail(f"all X must have the dtype {op.dtype('X')}, got {op.dtype('X', index)}")
    op.set("Out", dims, op.dtype("X"))


def row_bytes(op: OpView, slot: str, index: int, axis: int) -> int:
    """The bytes of everything from dimension `axis` on of one variable."""
    return product(op.shape(slot, index)[axis:]) * itemsize(op, slot, index)


def _concat_native(op: OpView) -> Call | None:
    axis = _axis_of(op)
    if axis is None:
        return None
    shape = op.shape("X")
    axis %= len(shape)
    rows = [row_bytes(op, "X", index, axis) for index in range(op.count("X"))]
    return Call("concat", [*op.names("X"), op.name("Out")], [product(shape[:axis]), *rows])


def _sections(xp: Any, whole: Any, sizes: Sequence[int], axis: int) -> list[Any]:
    """Split `whole` along `axis` into parts of `sizes`."""
    result, start = [], 0
    before = (slice(None),) * (axis % whole.ndim)
    for size in sizes:
        result.append(xp.ascontiguousarray(whole[before + (slice(start, start + size),)]))
        start += size
    return result


def _concat_grad(xp: Any, X: Any, AxisTensor: Any, Out_grad: Any, axis: int) -> list[Any]:
    axis = _axis(AxisTensor, axis)
    return _sections(xp, Out_grad, [x.shape[axis] for x in X], axis)


def _split_call(op: OpView, source: str, target: str, sized: str) -> Call | None:
    """Split `source` into the variables of `target`, which have the shapes of those in `sized`."""
    axis = _axis_of(op)
    if axis is None:
        return None
    shape = op.shape("X")
    axis %= len(shape)
    rows = [row_bytes(op, sized, index, axis) for index in range(op.count(sized))]
    operands = [op.name(source), *(name or None for name in op.names(target))]
    return Call("split", operands, [product(shape[:axis]), *rows])


def _concat_lod(op: OpView) -> str:
    """The LoDs of all inputs are joined along axis 0 or an unknown axis; otherwise the first input's stays."""
    return "X*" if _axis_of(op) in (None, 0, -len(op.shape("X"))) else "X"


register_pair(
    "concat",
    ("X*", "AxisTensor?"),
    lambda xp, X, AxisTensor, axis: xp.concatenate(X, axis=_axis(AxisTensor, axis)),
    _concat_grad,
    _infer_concat,
    "The X one after another along dimension `axis`.",
    attrs={"axis": 0},
    keep=("X#", "AxisTensor"),
    no_grad=("AxisTensor",),
    sequences=Sequences(source=_concat_lod),
    planning=Planning(batchable=planning_rules.joined),
    planning_back=Planning(batchable=planning_rules.joined),
    grad_grad=linear_double_grad("concat"),
    native=(_concat_native, lambda op: _split_call(op, DOUT, DX, "X")),
    cuda=("moves.concat", "moves.concat_grad"),
)


def _sizes(fail: Any, size: int, num: int, sections: Sequence[int], count: int) -> list[int]:
    """The sizes of the parts of a dimension of `size`; -1 where it is unknown."""
    if not sections:
        parts = num or count
        if size >= 0 and size % parts:
            raise fail(f"a dimension of {size} cannot be split into {parts} equal parts")
        return [size // parts if size >= 0 else -1] * parts
    if len([n for n in sections if n < 0]) > 1:
        raise fail(f"only one of sections may be -1, got {list(sections)}")
    known = sum(n for n in sections if n >= 0)
    result = [n if n >= 0 else size - known if size >= 0 else -1 for n in sections]
    if size >= 0 and (sum(result) != size or min(result) < 0):
        raise fail(f"sections {list(sections)} must add up to {size}, the size of the dimension to split")
    return result


def _infer_split(op: OpView) -> None:
    x, axis, count = op.shape("X"), _axis_of(op), op.count("Out")
    if axis is None:
        parts: list[Shape] = [(-1,) * len(x)] * count
    else:
        axis = normalize_axis(op, axis, len(x))
        sections = op.attr("sections")
        if op.has("SectionsTensorList"):
            known = known_numbers(op, "SectionsTensorList")
            sizes = list(sections) if known is None else _sizes(op.fail, x[axis], 0, known, count)
        else:
            sizes = _sizes(op.fail, x[axis], op.attr("num"), sections, count)
        if len(sizes) != count:
            raise op.fail(f"{len(sizes)} parts do not fit {count} outputs")
        parts = [(*x[:axis], size, *x[axis + 1 :]) for size in sizes]
    for index, shape in enumerate(parts):
        op.set("Out", shape, op.dtype("X"), index)


def _split(
    xp: Any, X: Any, AxisTensor: Any, SectionsTensorList: Any, sections: Any, num: int, axis: int
) -> list[Any]:
    axis = _axis(AxisTensor, axis)
    sections = given_numbers(sections, SectionsTensorList)
    return _sections(xp, X, _sizes(ValueError, X.shape[axis], num, sections, num), axis)


register(
    "split",
    inputs=("X", "AxisTensor?", "SectionsTensorList*?"),
    outputs=("Out*",),
    attrs={"sections": [], "num": 0, "axis": 0},
    infer=_infer_split,
    kernel=_split,
    grad=gradient_by(
        "concat", {"X": DOUT, "AxisTensor": "AxisTensor"}, attrs=lambda op: {"axis": op.attr("axis")}
    ),
    native=lambda op: _split_call(op, "X", "Out", "Out"),
    dispatch=Dispatch(cuda="moves.split"),
    sequences=Sequences(source=lambda op: None if _axis_of(op) in (0, -len(op.shape("X"))) else "X"),
    planning=Planning(batchable=planning_rules.joined),
    doc="X cut along dimension `axis` into `num` equal parts or parts of the sizes `sections`.",
)


def _infer_sum(op: OpView) -> None:
    op.set("Out", shape_of_all(op, "X"), op.dtype("X"))


def _sum_arrays(X: list[TensorArray]) -> TensorArray:
    total = X[0].copy()
    for array in X[1:]:
        for index, (value, lod) in enumerate(array):
            if value is not None:
                before = total.arrays[index] if index < len(total) else None
                total.write(index, value if before is None else before + value, lod)
    return total


def _sum(xp: Any, X: list[Any]) -> Any:
    if isinstance(X[0], TensorArray):
        return _sum_arrays(X)
    total = X[0].copy()
    for x in X[1:]:
        total += x
    return total


def _sum_grad(op: OpView) -> list[OpSpec]:
    dout = grad_name(op.name("Out"))
    return [
        OpSpec("scale", {"X": [dout]}, {"Out": [grad_name(name)]}, {"scale": 1.0}) for name in op.names("X")
    ]


def _sum_native(op: OpView) -> Call | None:
    name = typed(op, "sum", ("X",), NUMERIC)
    return Call(name, [*op.names("X"), op.name("Out")], [numel(op, "X")]) if name else None


def _sum_rows(xp: Any, X: list[Any]) -> SelectedRows:
    row_numbers = xp.concatenate([x.rows for x in X])
    return SelectedRows(row_numbers, xp.concatenate([x.values for x in X]), X[0].height)


def _sum_rows_native(op: OpView) -> list[Call]:
    names, out = [rows.parts(name) for name in op.names("X")], rows.parts(op.name("Out"))
    counts = [op.rows("X", k) or 0 for k in range(op.count("X"))]
    bytes_of_row = product(op.shape("X")[1:]) * itemsize(op, "X")
    return [
        Call("concat", [*(part for part, _ in names), out[0]], [1, *(8 * n for n in counts)]),
        Call("concat", [*(part for _, part in names), out[1]], [1, *(bytes_of_row * n for n in counts)]),
    ]


register(
    "sum",
    inputs=("X*",),
    infer=_infer_sum,
    kernel=_sum,
    grad=_sum_grad,
    native=_sum_native,
    dispatch=Dispatch(
        cuda="elementwise.add_many",
        rows=RowRule(_sum_rows, slots=("X",), out="Out", native=_sum_rows_native),
    ),
    effects=Effects(numbered=False),
    planning=Planning(batchable=planning_rules.all_batched, inplace=(("Out", "X"),)),
    doc="The sum of the X, all of one shape; of SelectedRows, the rows of all; of arrays, element by element.",
)


def _infer_multiplex(op: OpView) -> None:
    ids, x = op.shape("Ids"), op.shape("X")
    if len(ids) != 2 or ids[1] not in (1, -1):
        raise op.fail(f"Ids must be of shape [rows, 1], got {list(ids)}")
    if op.count("X") < 2:
        raise op.fail("at least two X are needed")
    op.set("Out", x, op.dtype("X"))


def _row_choices(xp: Any, Ids: Any, count: int, rows: int) -> Any:
    chosen = Ids.reshape(-1)[:rows]
    require_in_range(xp, "multiplex", "Ids", chosen, count, "inputs X")
    return chosen


def _multiplex(xp: Any, Ids: Any, X: list[Any]) -> Any:
    rows = X[0].shape[0]
    return xp.stack(X)[_row_choices(xp, Ids, len(X), rows), xp.arange(rows)]


def _multiplex_grad(xp: Any, Ids: Any, X: list[Any], Out_grad: Any) -> list[Any]:
    chosen = _row_choices(xp, Ids, len(X), X[0].shape[0]).reshape((-1,) + (1,) * (Out_grad.ndim - 1))
    return [xp.where(chosen == k, Out_grad, 0) for k in range(len(X))]


register_pair(
    "multiplex",
    ("Ids", "X*"),
    _multiplex,
    _multiplex_grad,
    _infer_multiplex,
    "Row i of Out is row i of the X that Ids[i] chooses.",
    keep=("Ids", "X#"),
    no_grad=("Ids",),
    sequences=Sequences(source=None),
    grad_grad=linear_double_grad("multiplex"),
)
