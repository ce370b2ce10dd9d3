"""Operators of plans on tensor arrays, and on what the iterations of a loop stash for its gradient.

Both live in memory of the engine (`_ext/tensor_array.h`). Elements of an array have one size and no sequences (`PUT`,
`GET`). `STASH_PUSH` pushes a value onto a stash and `STASH_POP` takes it back in the opposite order, so that nested
loops need no indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...base.dtypes import VarType
from ...base.sizes import is_fixed
from ...framework import Operator
from ...ops.native import REAL, element, itemsize, numel
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import VERSION, Call, Effects, OpDef, OpView, Sequences, grad_name
from ..ir.errors import DataDependentShape, Unsupported
from ..ir.inference import in_place_of
from ..ir.jumps import by_hand

TENSOR_ARRAY = "@ELEMENTS"
"""Stands behind the name of an array: its elements, as kernels have them."""


def _check(op: OpView, slot: str) -> None:
    if op.dtype("I") != VarType.INT64 or not is_fixed(op.shape("I")) or numel(op, "I") != 1:
        raise Unsupported(f"the index {op.name('I')!r} of an array is no int64 of one element")


def _operator(name: str, doc: str, infer: Any, native: Any, *inputs: str, **how: Any) -> OpDef:
    """An operator of plans alone; `how`: what of `OpDef` is not as with most of them."""
    how = {"outputs": (), "attrs": {"array": ""}, "effects": Effects(host=True), **how}
    return OpDef(
        name,
        inputs=inputs,
        infer=infer,
        kernel=by_hand,
        native=native,
        sequences=Sequences(source=None),
        doc=doc,
        **how,
    )


def _infer_arrays(op: OpView) -> None:
    for name in op.attr("arrays"):
        op.meta.set(name + TENSOR_ARRAY, (1,), VarType.UINT8)


def _infer_keep(op: OpView) -> None:
    if any(VERSION + "B" in level for level in op.lod("X")):
        raise Unsupported(f"variable {op.name('X')!r} has sequences that a turn makes")


def _infer_pop(op: OpView) -> None:
    op.set("Out", op.shape("Like"), op.dtype("Like"))
    op.carry("Out", op.lod("Like"))


def _one_size(kernel: str, slot: str) -> Callable[[OpView], Call]:
    """A kernel that moves an element of a size that the plan knows: the one at I, or the last."""

    def native(op: OpView) -> Call:
        index = [op.name("I")] if op.has("I") else []
        operands = [op.attr("array") + TENSOR_ARRAY, *index, op.name(slot)]
        return Call(kernel, operands, [numel(op, slot) * itemsize(op, slot)])

    return native


CLEAR = _operator(
    "clear_elements", "Forgets all elements of arrays.", _infer_arrays,
    lambda op: Call("array_clear", [array + TENSOR_ARRAY for array in op.attr("arrays")]), attrs={"arrays": ()},
)  # fmt: skip
STASH_PUSH = _operator(
    "keep_element", "Keeps what X is in the end of a turn, behind what it was before.", _infer_keep,
    _one_size("stash_push", "X"), "X",
)  # fmt: skip
STASH_POP = _operator(
    "pop_element", "What has been kept last, which is like Like, and kept no longer.", _infer_pop,
    _one_size("stash_pop", "Out"), "Like#", outputs=("Out",),
)  # fmt: skip


# Arrays that stand in the plan of a program: of each what shape and type its elements have is found out on the way.


def _noted(op: OpView, slot: str) -> None:
    """Note what the elements of an array are like; Unsupported if others are not."""
    _check(op, slot)
    meta: Any = op.meta
    kinds, kind = meta.element_types, (op.shape(slot), op.dtype(slot))
    if meta.declared(op.attr("array")) != kind[1]:
        raise Unsupported("elements of an array have another type than the program says")
    if op.lod(slot) or kinds.setdefault(op.attr("array"), kind) != kind:
        raise Unsupported("elements of an array have sequences, or several shapes or types")


def _like(op: OpView) -> tuple[Any, VarType]:
    kinds: dict[str, Any] = op.meta.element_types  # type: ignore[attr-defined]
    if op.attr("array") not in kinds:
        raise Unsupported("an array is read before it is written")
    return kinds[op.attr("array")]  # type: ignore[no-any-return]


def _infer_get(op: OpView) -> None:
    op.set("Out", *_like(op))
    _check(op, "Out")


def _infer_take(op: OpView) -> None:
    op.set("Out", op.shape("Like"), op.dtype("Like"))
    op.carry("Out", op.lod("Like"))
    _check(op, "Out")


def _added(op: OpView) -> Call:
    operands = [op.attr("array") + TENSOR_ARRAY, op.name("I"), op.name("X")]
    return Call(f"array_add.{_float(op, 'X')}", operands, [numel(op, "X")])


def _float(op: OpView, slot: str) -> str:
    kind = element(op, slot)
    if kind not in REAL:
        raise Unsupported("gradients of arrays are no floats")
    return kind


def _blocks(op: OpView) -> tuple[list[Any], int, int, int]:
    """Shape of an element, the axis along which these are joined, how many blocks each has, and of how many numbers."""
    shape, _ = _like(op)
    axis = op.attr("axis")
    axis += len(shape) + bool(op.attr("use_stack")) if axis < 0 else 0
    times = math.prod(shape[:axis])
    return [*shape], axis, times, math.prod(shape[axis:])


def _infer_join(op: OpView) -> None:
    found = op.data_dependent_sizes("OutIndex", [2], axes=[0])
    if found is None:
        raise DataDependentShape("how many elements an array has is found by the step")
    (shape, dtype), ((count,), axis) = _like(op), (found, _blocks(op)[1])
    if count == 0:
        raise Unsupported("an array has no element")
    made = [*shape]
    made[axis : axis if op.attr("use_stack") else axis + 1] = [
        count if op.attr("use_stack") else count * shape[axis]
    ]
    op.set("Out", made, dtype)
    op.set("OutIndex", (count,), VarType.INT32)


def _native_join(op: OpView) -> list[Call]:
    shape, axis, times, size = _blocks(op)
    (count,), array = op.shape("OutIndex"), op.attr("array") + TENSOR_ARRAY
    found = op.scratch("OutIndex", "FOUND", (1,), VarType.INT64)
    along = shape[axis] if axis < len(shape) else 1
    return [
        Call("array_length", [array, found]),
        Call(RESOLVE_SIZES, [found], [0, count]),
        Call("array_concat", [array, op.name("Out")], [count, times, size * itemsize(op, "Out")]),
        Call("fill.i32", [op.name("OutIndex")], [count, along]),
    ]


def _infer_part(op: OpView) -> None:
    kinds: dict[str, Any] = op.meta.element_types  # type: ignore[attr-defined]
    kinds.setdefault(op.attr("to"), _like(op))


def _native_part(op: OpView) -> Call:
    shape, axis, times, size = _blocks(op)
    count = op.shape("X")[axis] if op.attr("use_stack") else op.shape("X")[axis] // shape[axis]
    return Call(
        f"array_split_add.{_float(op, 'X')}",
        [op.attr("to") + TENSOR_ARRAY, op.name("X")],
        [count, times, size],
    )


PUT = _operator(
    "put_element",
    "Puts X at index I of an array.",
    lambda op: _noted(op, "X"),
    _one_size("array_write", "X"),
    "X",
    "I",
)
ADD = _operator(
    "add_element", "Adds X to the element at index I.", lambda op: _noted(op, "X"), _added, "X", "I"
)
GET = _operator(
    "get_element",
    "The element at index I.",
    _infer_get,
    _one_size("array_read", "Out"),
    "I",
    outputs=("Out",),
)
TAKE = _operator(
    "take_element", "The element at index I, which is not there any more; zeros like Like if there is none.",
    _infer_take, _one_size("array_take", "Out"), "I", "Like#", outputs=("Out",),
)  # fmt: skip
LENGTH = _operator(
    "array_length", "How many elements an array has.", lambda op: op.set("Out", (1,), VarType.INT64),
    lambda op: Call("array_length", [op.attr("array") + TENSOR_ARRAY, op.name("Out")]), outputs=("Out",),
)  # fmt: skip
JOIN = _operator(
    "join_elements", "All elements along an axis.", _infer_join, _native_join, outputs=("Out", "OutIndex"),
    attrs={"array": "", "axis": 0, "use_stack": False},
)  # fmt: skip
PART = _operator(
    "part_elements", "Adds the parts of X to the elements of array `to`, which is like `array`.", _infer_part,
    _native_part, "X", attrs={"array": "", "to": "", "axis": 0, "use_stack": False},
)  # fmt: skip

MAY_MISS = (PUT, GET, ADD, TAKE, JOIN, PART, STASH_PUSH, STASH_POP)
"""Those that want an index that there is, the first two, or elements of one size, which may not be so where sizes are
found by turns."""

ON_ELEMENTS = (*MAY_MISS, CLEAR, LENGTH)


def of_the_engine(op: Operator, array: str, to: str = "") -> Operator:
    """What stands for an operator on an array in memory of the engine's; `to`: the array of its gradients."""
    attrs: dict[str, Any] = {"array": array}
    if op.type == "write_to_array":
        kind = ADD if op.attr("accumulate") else PUT
        return in_place_of(op, kind, {"X": op.inputs["X"], "I": op.inputs["I"]}, {}, attrs)
    if op.type == "read_from_array" and op.inputs.get("X_W"):
        return in_place_of(op, TAKE, {"I": op.inputs["I"], "Like": op.inputs["X_W"]}, op.outputs, attrs)
    if op.type == "read_from_array":
        return in_place_of(op, GET, {"I": op.inputs["I"]}, op.outputs, attrs)
    if op.type == "lod_array_length":
        return in_place_of(op, LENGTH, {}, op.outputs, attrs)
    attrs |= {"axis": op.attr("axis"), "use_stack": op.attr("use_stack")}
    if op.type == "tensor_array_to_tensor":
        return in_place_of(op, JOIN, {}, op.outputs, attrs)
    return in_place_of(op, PART, {"X": op.inputs[grad_name("Out")]}, {}, {**attrs, "to": to})


__all__ = [
    "CLEAR", "TENSOR_ARRAY", "GET", "STASH_PUSH", "MAY_MISS", "ON_ELEMENTS", "STASH_POP", "of_the_engine",
]  # fmt: skip
