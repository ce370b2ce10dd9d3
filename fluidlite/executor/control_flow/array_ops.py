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
from ..failures import DataDependentShape, Unsupported
from ..ir.inference import in_place_of
from ..ir.jumps import no_reference

TENSOR_ARRAY = "@ELEMENTS"
"""Suffix of the operand that is a tensor array's storage in the engine."""


def _check_index(op: OpView, slot: str) -> None:
    if op.dtype("I") != VarType.INT64 or not is_fixed(op.shape("I")) or numel(op, "I") != 1:
        raise Unsupported(f"the index {op.name('I')!r} of an array is not an int64 of one element")


def _operator(name: str, doc: str, infer: Any, native: Any, *inputs: str, **how: Any) -> OpDef:
    """An operator that only plans have; `how` overrides the usual fields of `OpDef`."""
    how = {"outputs": (), "attrs": {"array": ""}, "effects": Effects(host=True), **how}
    return OpDef(
        name,
        inputs=inputs,
        infer=infer,
        kernel=no_reference,
        native=native,
        sequences=Sequences(source=None),
        doc=doc,
        **how,
    )


def _infer_arrays(op: OpView) -> None:
    for name in op.attr("arrays"):
        op.meta.set(name + TENSOR_ARRAY, (1,), VarType.UINT8)


def _infer_push(op: OpView) -> None:
    if any(VERSION + "B" in level for level in op.lod("X")):
        raise Unsupported(f"variable {op.name('X')!r} has sequences that an iteration computes")


def _infer_pop(op: OpView) -> None:
    op.set("Out", op.shape("Like"), op.dtype("Like"))
    op.carry("Out", op.lod("Like"))


def _one_size(kernel: str, slot: str) -> Callable[[OpView], Call]:
    """A kernel that copies one element, of the size that the plan has for it: the one at I, or the last."""

    def native(op: OpView) -> Call:
        index = [op.name("I")] if op.has("I") else []
        operands = [op.attr("array") + TENSOR_ARRAY, *index, op.name(slot)]
        return Call(kernel, operands, [numel(op, slot) * itemsize(op, slot)])

    return native


CLEAR = _operator(
    "clear_elements", "Empties arrays.", _infer_arrays,
    lambda op: Call("array_clear", [array + TENSOR_ARRAY for array in op.attr("arrays")]), attrs={"arrays": ()},
)  # fmt: skip
STASH_PUSH = _operator(
    "stash_push", "Pushes X onto a stash, at the end of an iteration.", _infer_push,
    _one_size("stash_push", "X"), "X",
)  # fmt: skip
STASH_POP = _operator(
    "stash_pop", "Pops the last value of a stash, which has the shape of Like.", _infer_pop,
    _one_size("stash_pop", "Out"), "Like#", outputs=("Out",),
)  # fmt: skip


# Tensor arrays of the program. The shape and type of their elements come from the operators that write them.


def _note_element(op: OpView, slot: str) -> None:
    """Note the shape and type of an array's elements; Unsupported if they vary."""
    _check_index(op, slot)
    meta: Any = op.meta
    kinds, kind = meta.element_types, (op.shape(slot), op.dtype(slot))
    if meta.declared(op.attr("array")) != kind[1]:
        raise Unsupported("elements of an array have another type than the program declares")
    if op.lod(slot) or kinds.setdefault(op.attr("array"), kind) != kind:
        raise Unsupported("elements of an array have sequences, or several shapes or types")


def _element_type(op: OpView) -> tuple[Any, VarType]:
    kinds: dict[str, Any] = op.meta.element_types  # type: ignore[attr-defined]
    if op.attr("array") not in kinds:
        raise Unsupported("an array is read before it is written")
    return kinds[op.attr("array")]  # type: ignore[no-any-return]


def _infer_get(op: OpView) -> None:
    op.set("Out", *_element_type(op))
    _check_index(op, "Out")


def _infer_take(op: OpView) -> None:
    _infer_pop(op)
    _check_index(op, "Out")


def _native_add(op: OpView) -> Call:
    operands = [op.attr("array") + TENSOR_ARRAY, op.name("I"), op.name("X")]
    return Call(f"array_add.{_float(op, 'X')}", operands, [numel(op, "X")])


def _float(op: OpView, slot: str) -> str:
    kind = element(op, slot)
    if kind not in REAL:
        raise Unsupported("the gradients of an array are not floats")
    return kind


def _blocks(op: OpView) -> tuple[list[Any], int, int, int]:
    """The shape of an element, the axis to concatenate along, and the number and size of an element's blocks."""
    shape, _ = _element_type(op)
    axis = op.attr("axis")
    axis += len(shape) + bool(op.attr("use_stack")) if axis < 0 else 0
    times = math.prod(shape[:axis])
    return [*shape], axis, times, math.prod(shape[axis:])


def _infer_join(op: OpView) -> None:
    found = op.data_dependent_sizes("OutIndex", [2], axes=[0])
    if found is None:
        raise DataDependentShape("the number of elements of an array is data-dependent")
    (shape, dtype), ((count,), axis) = _element_type(op), (found, _blocks(op)[1])
    if count == 0:
        raise Unsupported("an array is empty")
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


def _infer_split(op: OpView) -> None:
    kinds: dict[str, Any] = op.meta.element_types  # type: ignore[attr-defined]
    kinds.setdefault(op.attr("to"), _element_type(op))


def _native_split(op: OpView) -> Call:
    shape, axis, times, size = _blocks(op)
    count = op.shape("X")[axis] if op.attr("use_stack") else op.shape("X")[axis] // shape[axis]
    return Call(
        f"array_split_add.{_float(op, 'X')}",
        [op.attr("to") + TENSOR_ARRAY, op.name("X")],
        [count, times, size],
    )


PUT = _operator(
    "put_element",
    "Writes X at index I of an array.",
    lambda op: _note_element(op, "X"),
    _one_size("array_write", "X"),
    "X",
    "I",
)
ADD = _operator(
    "add_element",
    "Adds X to the element at index I.",
    lambda op: _note_element(op, "X"),
    _native_add,
    "X",
    "I",
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
    "take_element", "Removes and returns the element at index I; zeros like Like if there is none.",
    _infer_take, _one_size("array_take", "Out"), "I", "Like#", outputs=("Out",),
)  # fmt: skip
LENGTH = _operator(
    "array_length", "The number of elements of an array.", lambda op: op.set("Out", (1,), VarType.INT64),
    lambda op: Call("array_length", [op.attr("array") + TENSOR_ARRAY, op.name("Out")]), outputs=("Out",),
)  # fmt: skip
JOIN = _operator(
    "join_elements", "All elements, concatenated or stacked along an axis.", _infer_join, _native_join,
    outputs=("Out", "OutIndex"), attrs={"array": "", "axis": 0, "use_stack": False},
)  # fmt: skip
SPLIT = _operator(
    "split_elements", "Adds the slices of X to the elements of array `to`, the gradient of `array`.", _infer_split,
    _native_split, "X", attrs={"array": "", "to": "", "axis": 0, "use_stack": False},
)  # fmt: skip

MAY_MISS = (PUT, GET, ADD, TAKE, JOIN, SPLIT, STASH_PUSH, STASH_POP)
"""Operators that fail at run time: the first two if the index is out of range, all if elements differ in size, as with
data-dependent sizes in loops."""

ON_ELEMENTS = (*MAY_MISS, CLEAR, LENGTH)


def lowered_array_op(op: Operator, array: str, to: str = "") -> Operator:
    """Lower an operator on a tensor array to one on the engine's storage; `to`: the array of the gradients."""
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
    return in_place_of(op, SPLIT, {"X": op.inputs[grad_name("Out")]}, {}, {**attrs, "to": to})
