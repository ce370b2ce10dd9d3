"""Tensor arrays: writing and reading elements, their number, all of them as one tensor."""

from __future__ import annotations

from typing import Any

from ...backend import to_host
from ...base.dtypes import VarType
from ...base.tensor_array import TensorArray
from ..grad_pairs import gradient_by
from ..registry import Effects, Levels, LodArray, OpSpec, OpView, Planning, Sequences, grad_name, register

DOUT, DX = grad_name("Out"), grad_name("X")


def _index(place: Any) -> int:
    if place.size != 1:
        raise ValueError(f"the index must have one element, got shape {list(place.shape)}")
    index = int(to_host(place).item())
    if index < 0:
        raise ValueError(f"the index must not be negative, got {index}")
    return index


def _is_array(X: Any) -> TensorArray:
    if not isinstance(X, TensorArray):
        raise ValueError(
            f"X must be a tensor array (fluid.layers.create_array), got a tensor of shape {list(X.shape)}"
        )
    return X


# Writing and reading are each other's gradient: a write accumulates into the element, and a read clears it, as an
# element that was written had another value, and another gradient, before.


def _write_grad(op: OpView) -> list[OpSpec]:
    if op.attr("accumulate"):
        raise op.fail("has no gradient of its own, so that second derivatives cannot go through it")
    takes = {"X": [grad_name(op.name("Out"))], "I": [op.name("I")], "X_W": [op.name("X")]}
    return [OpSpec("read_from_array", takes, {"Out": [grad_name(op.name("X"))]})]


def _write(xp: Any, X: Any, I: Any, Out: Any, accumulate: bool, lod: dict[str, Any]) -> TensorArray:  # noqa: E741
    array = TensorArray() if Out is None else Out
    index = _index(I)
    if X is None:  # it was read beyond the end of another array
        if index >= len(array):
            array.write(index, None)
        return array
    value = xp.array(X)  # the array's elements are kept
    if accumulate and index < len(array) and array.arrays[index] is not None:
        value = array.arrays[index] + value
    array.write(index, value, lod["X"][0])
    return array


def _read_infer(op: OpView) -> None:
    like = "X_W" if op.has("X_W") else "X"
    op.set("Out", op.shape(like), op.dtype(like))


def _read_grad(op: OpView) -> list[OpSpec]:
    if op.has("X_W"):
        raise op.fail("has no gradient of its own, so that second derivatives cannot go through it")
    takes = {"X": [grad_name(op.name("Out"))], "I": [op.name("I")]}
    return [OpSpec("write_to_array", takes, {"Out": [grad_name(op.name("X"))]}, {"accumulate": True})]


def _read(xp: Any, X: Any, I: Any, X_W: Any, lod: dict[str, Any]) -> Any:  # noqa: E741
    array, index = _is_array(X), _index(I)
    value = array.arrays[index] if index < len(array) else None
    if X_W is not None:
        if value is None:
            return LodArray(xp.zeros_like(X_W), lod["X_W"][0])
        levels = array.lods[index]
        array.write(index, None)
        return LodArray(value, levels)
    if value is None:
        if index < len(array):
            raise ValueError(f"element {index} of {len(array)} of the tensor array has not been written")
        # No error, as in Fluid: the first operator that computes with it raises. Empty sequences have no elements.
        return LodArray(None if len(array) else xp.zeros(0, "float32"), ())
    return LodArray(value, array.lods[index])


register(
    "write_to_array",
    inputs=("X", "I"),
    attrs={"accumulate": False},
    infer=lambda op: op.set("Out", op.shape("X"), op.dtype("X")),
    kernel=_write,
    grad=_write_grad,
    no_grad=("I",),
    sequences=Sequences(takes_lod=True, levels=Levels("X")),
    effects=Effects(updates=("Out",), uninitialized=("X",)),
    planning=Planning(pattern="write"),
    doc="Puts X at index I of the tensor array Out, which grows if need be. With `accumulate`, as gradients are "
    "written, it is added to what is there.",
)
register(
    "read_from_array",
    inputs=("X", "I", "X_W?"),
    infer=_read_infer,
    kernel=_read,
    grad=_read_grad,
    no_grad=("I", "X_W"),
    sequences=Sequences(takes_lod=True, levels=Levels("X")),
    effects=Effects(consumes="X_W"),
    planning=Planning(pattern="read"),
    doc="The element of the tensor array X at index I, nothing beyond the end. With X_W, as gradients are read, "
    "it is taken out of the array; zeros in the shape of X_W if there is none.",
)


register(
    "lod_array_length",
    inputs=("X",),
    infer=lambda op: op.set("Out", (1,), VarType.INT64),
    kernel=lambda xp, X: xp.array([len(_is_array(X))], "int64"),
    no_grad=("Out",),
    sequences=Sequences(source=None),
    doc="How many elements the tensor array X has: its highest index and one more.",
)


# All elements as one tensor.


def _join_infer(op: OpView) -> None:
    shape, axis = list(op.shape("X")), op.attr("axis")
    room = len(shape) + bool(op.attr("use_stack"))
    if shape and not -room <= axis < room:
        raise op.fail(f"axis must be in [{-room}, {room}), got {axis}")
    axis += room if axis < 0 else 0
    if op.attr("use_stack"):
        shape.insert(axis, -1)
    elif shape:
        shape[axis] = -1
    op.set("Out", shape, op.dtype("X"))
    op.set("OutIndex", (-1,) if op.exact else (), VarType.INT32)


def _elements(X: Any, axis: int, use_stack: bool) -> list[Any]:
    """The elements: of one type, and of one shape but along `axis`; stacked ones have one shape."""
    values = _is_array(X).arrays
    missing = [index for index, value in enumerate(values) if value is None]
    what = f"element {missing[0]} has not been written" if missing else "" if values else "it has no elements"
    if not what:
        rests = [[n for at, n in enumerate(v.shape) if use_stack or at != axis % v.ndim] for v in values]
        kinds = [(v.dtype, v.ndim, rest) for v, rest in zip(values, rests, strict=True)]
        other = next((index for index, kind in enumerate(kinds) if kind != kinds[0]), None)
        if other is not None:
            described = [
                f"{value.dtype} of shape {list(value.shape)}" for value in (values[0], values[other])
            ]
            what = f"element 0 is {described[0]} and element {other} is {described[1]}"
    if what:
        raise ValueError(f"the tensor array cannot become one tensor: {what}")
    return values


def _join(xp: Any, X: Any, axis: int, use_stack: bool) -> tuple[Any, Any]:
    values = _elements(X, axis, use_stack)
    if use_stack and axis < 0:
        axis += values[0].ndim + 1
    # OutIndex: each element's size along `axis`, also when stacking; 1 for a new last axis.
    sizes = xp.array([1 if axis == value.ndim else value.shape[axis] for value in values], "int32")
    return (xp.stack(values, axis) if use_stack else xp.concatenate(values, axis)), sizes


def _part(xp: Any, X: Any, Out_grad: Any, X_grad: Any, axis: int, use_stack: bool) -> TensorArray:
    array = TensorArray() if X_grad is None else X_grad
    begin = 0
    for index, (value, lod) in enumerate(X):
        size = 1 if use_stack else value.shape[axis]
        part = xp.take(Out_grad, xp.arange(begin, begin + size), axis).reshape(value.shape)
        begin += size
        if index < len(array) and array.arrays[index] is not None:
            part = array.arrays[index] + part
        array.write(index, part, lod)
    return array


register(
    "tensor_array_to_tensor",
    inputs=("X",),
    outputs=("Out", "OutIndex"),
    attrs={"axis": 0, "use_stack": False},
    infer=_join_infer,
    kernel=_join,
    grad=gradient_by(
        "tensor_array_to_tensor_grad",
        {"X": "X", DOUT: DOUT},
        {DX: DX},
        lambda op: {"axis": op.attr("axis"), "use_stack": op.attr("use_stack")},
    ),
    no_grad=("OutIndex",),
    sequences=Sequences(source=None),
    doc="The elements of the tensor array X in one tensor: concatenated along `axis`, or with `use_stack` along a "
    "new one. OutIndex: the size of each along it.",
)
register(
    "tensor_array_to_tensor_grad",
    inputs=("X", DOUT),
    outputs=(DX,),
    attrs={"axis": 0, "use_stack": False},
    infer=lambda op: op.set(DX, op.shape("X"), op.dtype("X")),
    kernel=_part,
    sequences=Sequences(source=None),
    effects=Effects(updates=(DX,)),
    doc="Gradient of tensor_array_to_tensor, added to that of the array.",
)
