"""Parts of an array and facts about its shape: slice, strided_slice, crop, shape, size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backend.functions import constant
from ...base.dtypes import VarType, to_numpy
from ...base.sizes import is_fixed
from .. import planning_rules
from ..grad_pairs import linear_double_grad, register_pair
from ..infer import declared_numbers, given_numbers, product
from ..native import itemsize
from ..op_view import RESOLVE_SIZES
from ..registry import Call, Effects, OpView, Planning, Sequences, Shape, grad_name, register
from .manipulation import RANK_LIMIT

DOUT = grad_name("Out")
DINPUT = grad_name("Input")
_INDICES = ("StartsTensorList", "StartsTensor", "EndsTensorList", "EndsTensor")
INDEX_SLOTS = ("StartsTensor?", "EndsTensor?", "StartsTensorList*?", "EndsTensorList*?")
ATTRS: dict[str, Any] = {"axes": [], "starts": [], "ends": [], "infer_flags": [], "decrease_axis": []}
Fail = Any


def _known(op: OpView, what: str) -> list[int] | None:
    """Starts, ends or strides from tensors if given (None: not constant), else from the attribute."""
    return declared_numbers(op, what.lower(), f"{what}TensorList", f"{what}Tensor")


def _range(fail: Fail, size: int, start: int, end: int, dropped: bool) -> tuple[int, int]:
    """Start and end within [0, size] as Fluid understands them; raises if nothing is left.

    Where the dimension is `dropped`, what is from -1 to 0 is the last one.
    """
    if dropped and (start, end) == (-1, 0):
        end = size
    first = max(start + size if start < 0 else start, 0)
    last = min(max(end + size if end < 0 else end, 0), size)
    if first >= last:
        raise fail(f"start must be before end in a dimension of {size}, got start {start} and end {end}")
    return first, last


def _without(shape: Sequence[int], axes: Sequence[int]) -> Shape:
    return tuple(n for axis, n in enumerate(shape) if axis not in axes) or (1,)


def _infer_slice(op: OpView) -> None:
    x, axes = op.shape("Input"), op.attr("axes")
    starts, ends = _known(op, "Starts"), _known(op, "Ends")
    dims = list(x)
    for k, axis in enumerate(axes):
        if not 0 <= axis < len(x):
            raise op.fail(f"axes must be in [0, {len(x)}), got {axis}")
        if starts is None or ends is None:
            dims[axis] = _partly_known(op, k, x[axis])
        elif x[axis] >= 0:
            first, last = _range(op.fail, x[axis], starts[k], ends[k], axis in op.attr("decrease_axis"))
            dims[axis] = last - first
    gone = op.attr("decrease_axis")
    unknown = [axis for axis, n in enumerate(dims) if n < 0 and axis in axes]
    if op.allows_data_dependent_sizes and unknown and _index_type(op) is not None:
        places = [-1 - axis if axis in gone else axis - sum(k < axis for k in gone) for axis in unknown]
        for axis, size in zip(
            unknown, op.data_dependent_sizes("Out", [1] * len(unknown), axes=places) or (), strict=True
        ):
            if size == 0:
                raise op.fail("start must be before end: nothing is left")
            dims[axis] = size
    for axis in gone:
        if dims[axis] not in (1, -1):
            raise op.fail(f"dimension {axis} of the slice is {dims[axis]} and cannot be dropped")
    op.set("Out", _without([1 if k in gone else n for k, n in enumerate(dims)], gone), op.dtype("Input"))


def _index_type(op: OpView) -> str | None:
    """The type of the numbers of a slice by tensors; None if no native kernel takes them."""
    kinds = {op.dtype(slot, k) for slot in _INDICES for k in range(op.count(slot))}
    known = {VarType.INT32: "i32", VarType.INT64: "i64"}
    counts = [_count(op, what) for what in ("Starts", "Ends")]
    if counts != [len(op.attr("axes"))] * 2 or len(kinds) != 1:
        return None
    return known.get(kinds.pop())


def _count(op: OpView, what: str) -> int:
    """The number of elements in index tensors; -1 if data-dependent."""
    slot = f"{what}TensorList" if op.has(f"{what}TensorList") else f"{what}Tensor"
    shapes = [op.shape(slot, k) for k in range(op.count(slot))]
    return sum(map(product, shapes)) if all(map(is_fixed, shapes)) else -1


def _is_known(op: OpView, k: int, size: int, *names: str) -> bool:
    """Whether the attributes hold all numbers for the axis at `k`, so that tensors only hold those of other axes."""
    flags = op.attr("infer_flags")
    return bool(flags) and flags[k] != -1 and size >= 0 and all(len(op.attr(name)) > k for name in names)


def _partly_known(op: OpView, k: int, size: int) -> int:
    """The size of one sliced dimension when only the others depend on tensors; -1 if it does."""
    if not _is_known(op, k, size, "starts", "ends"):
        return -1
    first, last = _range(op.fail, size, op.attr("starts")[k], op.attr("ends")[k], False)
    return last - first


def _slices(
    x: Sequence[int], axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], dropped: Sequence[int]
) -> tuple[slice, ...]:
    found = [slice(0, n) for n in x]
    for axis, start, end in zip(axes, starts, ends, strict=True):
        found[axis] = slice(*_range(ValueError, x[axis], start, end, axis in dropped))
    return tuple(found)


def _slice(
    xp: Any, Input: Any, StartsTensor: Any, EndsTensor: Any, StartsTensorList: Any, EndsTensorList: Any,
    axes: Any, starts: Any, ends: Any, decrease_axis: Any,
) -> Any:  # fmt: skip
    starts = given_numbers(starts, StartsTensorList, StartsTensor)
    ends = given_numbers(ends, EndsTensorList, EndsTensor)
    part = xp.ascontiguousarray(Input[_slices(Input.shape, axes, starts, ends, decrease_axis)])
    return part.reshape(_without(part.shape, decrease_axis)) if decrease_axis else part


def _slice_grad(
    xp: Any, Input: Any, StartsTensor: Any, EndsTensor: Any, StartsTensorList: Any, EndsTensorList: Any,
    Out_grad: Any, axes: Any, starts: Any, ends: Any, decrease_axis: Any,
) -> Any:  # fmt: skip
    starts = given_numbers(starts, StartsTensorList, StartsTensor)
    ends = given_numbers(ends, EndsTensorList, EndsTensor)
    where = _slices(Input.shape, axes, starts, ends, decrease_axis)
    whole = xp.zeros_like(Input)
    whole[where] = Out_grad.reshape(tuple(s.stop - s.start for s in where))
    return whole


def _slice_call(op: OpView, kernel: str, source: str, target: str) -> list[Call] | Call | None:
    x, starts, ends = op.shape("Input"), _known(op, "Starts"), _known(op, "Ends")
    if len(x) > RANK_LIMIT or not op.has(target):
        return None
    if starts is None or ends is None:
        return _found_call(op, source, target)
    where = _slices(x, op.attr("axes"), starts, ends, op.attr("decrease_axis"))
    bounds = [*(s.start for s in where), *(s.stop for s in where)]
    return Call(kernel, [op.name(source), op.name(target)], [itemsize(op, "Input"), len(x), *x, *bounds])


def _found_call(op: OpView, source: str, target: str) -> list[Call] | None:
    """The calls of a slice with data-dependent bounds, or of its gradient."""
    x, kind, axes, gone = op.shape("Input"), _index_type(op), list(op.attr("axes")), op.attr("decrease_axis")
    back = target == DINPUT
    if kind is None or not (back or op.allows_data_dependent_sizes):
        return None
    names = [
        (name, op.shape(slot, k), op.dtype(slot, k))
        for slot in _INDICES
        for k, name in enumerate(op.names(slot))
    ]
    dtype = names[0][2]
    numbers = op.scratch(target, "NUMBERS", (2 * len(axes),), dtype)
    places = op.scratch(target, "PLACES", (2 * len(x),), VarType.INT64)
    part = iter(op.shape(DOUT if back else "Out"))
    lengths = [1 if axis in gone else next(part) for axis in range(len(x))]
    which = [2 * (axes.index(axis) + 1) + (axis in gone) if axis in axes else 0 for axis in range(len(x))]
    width = to_numpy(dtype).itemsize
    calls = [
        Call(
            "concat",
            [*(name for name, _, _ in names), numbers],
            [1, *(width * product(n) for _, n, _ in names)],
        ),
        Call(f"slice_find.{kind}", [numbers, places], [len(x), *x, *which]),
    ]
    if not back:
        unknown = [
            axis
            for axis in range(len(x))
            if axis in axes and _partly_known(op, axes.index(axis), x[axis]) < 0
        ]
        calls.append(Call(RESOLVE_SIZES, [places], [n for axis in unknown for n in (axis, lengths[axis])]))
    kernel = "slice_at_grad" if back else "slice_at"
    calls.append(
        Call(
            kernel, [op.name(source), places, op.name(target)], [itemsize(op, "Input"), len(x), *x, *lengths]
        )
    )
    return calls


def _names(slots: Sequence[str]) -> tuple[str, ...]:
    return tuple(slot.rstrip("*?") for slot in slots)


register_pair(
    "slice",
    ("Input", *INDEX_SLOTS),
    _slice,
    _slice_grad,
    _infer_slice,
    "Input from starts to ends along `axes`; dimensions in `decrease_axis` are dropped.",
    attrs=ATTRS,
    keep=("Input#", *_names(INDEX_SLOTS)),
    no_grad=_names(INDEX_SLOTS),
    sequences=Sequences(source=lambda op: None if [*op.attr("axes")][:1] == [0] else "Input"),
    planning=Planning(batchable=planning_rules.sliced),
    planning_back=Planning(batchable=planning_rules.sliced),
    grad_grad=linear_double_grad("slice", "Input"),
    native=(
        lambda op: _slice_call(op, "slice", "Input", "Out"),
        lambda op: _slice_call(op, "slice_grad", DOUT, DINPUT),
    ),
)


def _stepped(
    fail: Fail, x: Shape, axes: Any, starts: Any, ends: Any, strides: Any, dropped: Sequence[int]
) -> tuple[slice, ...]:
    """Python slices of the same elements. From -1 to 0 means the last element where the dimension is `dropped`."""
    found = [slice(0, n, 1) for n in x]
    for axis, start, end, step in zip(axes, starts, ends, strides, strict=True):
        size = x[axis]
        if axis in dropped and (start, end) == (-1, 0):
            end = size
        if step == 0:
            raise fail("strides must not be 0")
        # A negative start or end counts from the end; an end that is still negative reaches beyond the first
        # element.
        last = end + size if end < 0 else end
        first, stop = _clamped(size, start, max(last, -1 if step < 0 else 0), step < 0)
        if (stop <= first) if step > 0 else (first <= stop):
            raise fail(f"nothing is left of a dimension of {size} from {start} to {end} in steps of {step}")
        found[axis] = slice(first, stop if stop >= 0 else None, step)
    return tuple(found)


def _clamped(size: int, start: int, last: int, backwards: bool) -> tuple[int, int]:
    """Begin and end clamped to a dimension; a negative `start` counts from its end, `last` does not."""
    first = start + size if start < 0 else start
    if backwards:
        return max(min(first, size - 1), -1), min(last, size - 1)
    return min(max(first, 0), size), min(last, size)


def _length(part: slice) -> int:
    """The number of elements of a slice of `_stepped`."""
    stop = -1 if part.stop is None else part.stop
    if part.step < 0:
        return (part.start - stop - 1) // -part.step + 1
    return (stop - part.start - 1) // part.step + 1


STRIDED_SLOTS = (*INDEX_SLOTS, "StridesTensor?", "StridesTensorList*?")
STRIDED_ATTRS: dict[str, Any] = {**ATTRS, "strides": []}


def _infer_strided(op: OpView) -> None:
    x, axes = op.shape("Input"), op.attr("axes")
    starts, ends, strides = (_known(op, what) for what in ("Starts", "Ends", "Strides"))
    dims, gone, names = list(x), op.attr("decrease_axis"), ("starts", "ends", "strides")
    for k, axis in enumerate(axes):
        if not 0 <= axis < len(x):
            raise op.fail(f"axes must be in [0, {len(x)}), got {axis}")
        if starts is None or ends is None or strides is None:
            known = _is_known(op, k, x[axis], *names)
            bounds = [op.attr(name)[k] for name in names] if known else None
        else:
            bounds = [starts[k], ends[k], strides[k]]
        if bounds is None:
            dims[axis] = -1
        elif x[axis] >= 0:
            start, end, step = bounds
            dims[axis] = _length(_stepped(op.fail, x, [axis], [start], [end], [step], gone)[axis])
    op.set("Out", _without([1 if k in gone else n for k, n in enumerate(dims)], gone), op.dtype("Input"))


def _strided(
    xp: Any, Input: Any, StartsTensor: Any, EndsTensor: Any, StridesTensor: Any, StartsTensorList: Any,
    EndsTensorList: Any, StridesTensorList: Any, axes: Any, starts: Any, ends: Any, strides: Any,
    decrease_axis: Any,
) -> Any:  # fmt: skip
    starts = given_numbers(starts, StartsTensorList, StartsTensor)
    ends = given_numbers(ends, EndsTensorList, EndsTensor)
    strides = given_numbers(strides, StridesTensorList, StridesTensor)
    part = xp.ascontiguousarray(
        Input[_stepped(ValueError, Input.shape, axes, starts, ends, strides, decrease_axis)]
    )
    return part.reshape(_without(part.shape, decrease_axis)) if decrease_axis else part


def _strided_grad(
    xp: Any, Input: Any, StartsTensor: Any, EndsTensor: Any, StridesTensor: Any, StartsTensorList: Any,
    EndsTensorList: Any, StridesTensorList: Any, Out_grad: Any, axes: Any, starts: Any, ends: Any,
    strides: Any, decrease_axis: Any,
) -> Any:  # fmt: skip
    starts = given_numbers(starts, StartsTensorList, StartsTensor)
    ends = given_numbers(ends, EndsTensorList, EndsTensor)
    strides = given_numbers(strides, StridesTensorList, StridesTensor)
    whole = xp.zeros_like(Input)
    part = whole[_stepped(ValueError, Input.shape, axes, starts, ends, strides, decrease_axis)]
    part[...] = Out_grad.reshape(part.shape)
    return whole


register_pair(
    "strided_slice",
    ("Input", *STRIDED_SLOTS),
    _strided,
    _strided_grad,
    _infer_strided,
    "Input from starts to ends in steps of strides along `axes`.",
    attrs=STRIDED_ATTRS,
    keep=("Input#", *_names(STRIDED_SLOTS)),
    no_grad=_names(STRIDED_SLOTS),
    grad_grad=linear_double_grad("strided_slice", "Input"),
)


def _shape(xp: Any, Input: Any) -> Any:
    made = constant(xp, np.array, tuple(Input.shape), "int32")
    return made if xp is np else made.copy()


def _infer_shape(op: OpView) -> None:
    op.set("Out", (len(op.shape("Input")),), VarType.INT32)


register(
    "shape",
    inputs=("Input#",),
    infer=_infer_shape,
    kernel=_shape,
    no_grad=("Out",),
    sequences=Sequences(source=None),
    effects=Effects(numbered=False),
    planning=Planning(size_values=lambda op: op.shape("Input")),
    doc="The shape of Input, int32.",
)
register(
    "size",
    inputs=("Input#",),
    infer=lambda op: op.set("Out", (1,), VarType.INT64),
    kernel=lambda xp, Input: xp.full((1,), Input.size, dtype="int64"),
    no_grad=("Out",),
    sequences=Sequences(source=None),
    planning=Planning(size_values=lambda op: (product(op.shape("Input")),)),
    doc="The number of elements of Input, int64.",
)
