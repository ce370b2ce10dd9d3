"""Shapes, slices and indices of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ..graph import Exported, exports

_FAR = np.iinfo(np.int64).max


def sizes(o: Exported, tensor: str, several: str, attr: str) -> str:
    """A list of integers that Fluid takes as a tensor, as several of one element each, or as an attribute."""
    if tensor and o.has(tensor):
        return o.cast(o.node("Reshape", o.input(tensor), o.ints(-1)), VarType.INT64)
    if several and o.has(several):
        each = [o.cast(o.node("Reshape", value, o.ints(-1)), VarType.INT64) for value in o.inputs(several)]
        return o.node("Concat", *each, axis=0)
    return o.ints(*np.atleast_1d(o.attr(attr)).tolist())


def size_of(o: Exported, value: str, axis: int) -> str:
    """The size along an axis, as a tensor of one element."""
    return o.node("Gather", o.node("Shape", value), o.ints(axis))


def like(o: Exported, value: str, other: str) -> str:
    """`value` in the shape of `other`."""
    return o.node("Reshape", value, o.node("Shape", other))


@exports("reshape", "reshape2")
def _reshape(o: Exported) -> str:
    return o.node("Reshape", o.input("X"), sizes(o, "Shape", "ShapeTensor", "shape"))


@exports("transpose", "transpose2")
def _transpose(o: Exported) -> str:
    return o.node("Transpose", o.input("X"), perm=list(o.attr("axis")))


@exports("flatten", "flatten2")
def _flatten(o: Exported) -> str:
    return o.node("Flatten", o.input("X"), axis=o.attr("axis"))


@exports("squeeze", "squeeze2")
def _squeeze(o: Exported) -> str:
    rank, shape = o.rank("X"), o.shape("X")
    axes = [axis % rank for axis in o.attr("axes")] or [axis for axis in range(rank) if shape[axis] == 1]
    axes = [axis for axis in axes if shape[axis] == 1]
    return o.node("Squeeze", o.input("X"), o.ints(*axes)) if axes else o.node("Identity", o.input("X"))


@exports("unsqueeze", "unsqueeze2")
def _unsqueeze(o: Exported) -> str:
    value, rank = o.input("X"), o.rank("X")
    for axis in o.attr("axes"):
        value = o.node("Unsqueeze", value, o.ints(axis if axis >= 0 else axis + rank + 1))
        rank += 1
    return value


@exports("concat")
def _concat(o: Exported) -> str:
    if o.has("AxisTensor"):
        raise o.fail("takes its axis from a tensor")
    values, axis = o.inputs("X"), o.attr("axis")
    if axis % o.rank("X") == 0 and any(map(o.graph.lengths_of, o.names("X"))):
        raise o.fail("concatenates sequences")
    return o.node("Concat", *values, axis=axis)


@exports("stack")
def _stack(o: Exported) -> str:
    rank = o.rank("X") + 1
    axis = o.ints(o.attr("axis") % rank)
    return o.node(
        "Concat", *[o.node("Unsqueeze", x, axis) for x in o.inputs("X")], axis=o.attr("axis") % rank
    )


def _sections(o: Exported, axis: int, lengths: list[int]) -> list[str]:
    found, start = [], 0
    for length in lengths:
        ends = o.ints(start), o.ints(start + length)
        found.append(o.node("Slice", o.input("X"), *ends, o.ints(axis)))
        start += length
    return found


@exports("unstack")
def _unstack(o: Exported) -> None:
    axis = o.attr("axis") % o.rank("X")
    for index, section in enumerate(_sections(o, axis, [1] * len(o.op.outputs["Y"]))):
        o.out("Y", o.node("Squeeze", section, o.ints(axis)), index=index)


@exports("split")
def _split(o: Exported) -> None:
    if o.has("AxisTensor") or o.has("SectionsTensorList"):
        raise o.fail("takes its axis or sections from tensors")
    axis, count = o.attr("axis") % o.rank("X"), len(o.op.outputs["Out"])
    sections = list(o.attr("sections"))
    if not sections:
        sections = [o.static("X", axis)[0] // count] * count
    elif -1 in sections:
        sections[sections.index(-1)] = o.static("X", axis)[0] - sum(n for n in sections if n != -1)
    for index, section in enumerate(_sections(o, axis, sections)):
        o.out("Out", section, index=index)


@exports("slice", "strided_slice")
def _slice(o: Exported) -> str:
    slot, axes = "Input", list(o.attr("axes"))
    ends = _ends(o, "Starts"), _ends(o, "Ends")
    steps = [_ends(o, "Strides")] if o.op.type == "strided_slice" else []
    value = o.node("Slice", o.input(slot), *ends, o.ints(*axes), *steps)
    gone = list(o.attr("decrease_axis") or []) if o.op.type == "slice" else []
    if gone:
        every = len(gone) == o.rank(slot)
        value = o.node("Reshape", value, o.ints(1)) if every else o.node("Squeeze", value, o.ints(*gone))
    return value


def _ends(o: Exported, part: str) -> str:
    return sizes(o, part + "Tensor", part + "TensorList", part.lower())


@exports("expand")
def _expand(o: Exported) -> str:
    return o.node("Tile", o.input("X"), sizes(o, "ExpandTimes", "expand_times_tensor", "expand_times"))


@exports("expand_as")
def _expand_as(o: Exported) -> str:
    x, target = o.input("X"), o.input("target_tensor")
    return o.node("Tile", x, o.node("Div", o.node("Shape", target), o.node("Shape", x)))


@exports("shape")
def _shape(o: Exported) -> str:
    return o.cast(o.node("Shape", o.input("Input")), VarType.INT32)


def filled(o: Exported, shape: str, value: Any, dtype: VarType) -> str:
    """A tensor of one number."""
    number = o.constant([value], to_numpy(dtype))
    return o.node("Expand", number, shape)


@exports("fill_constant")
def _fill_constant(o: Exported) -> None:
    dtype = VarType(o.attr("dtype"))
    text = o.attr("str_value")
    value = float(text) if text else o.attr("value")
    shape = sizes(o, "ShapeTensor", "ShapeTensorList", "shape")
    if o.has("ValueTensor"):
        o.out("Out", o.node("Expand", o.cast(o.input("ValueTensor"), dtype), shape))
    elif o.has("ShapeTensor") or o.has("ShapeTensorList"):
        o.out("Out", filled(o, shape, value, dtype))
    else:
        o.out("Out", o.node("Identity", o.constant(np.full(o.attr("shape"), value, to_numpy(dtype)))))


@exports("assign_value")
def _assign_value(o: Exported) -> str:
    dtype = to_numpy(VarType(o.attr("dtype")))
    name = next(n for n in ("fp32_values", "int32_values", "int64_values", "bool_values") if o.attr(n))
    return o.constant(np.array(o.attr(name), dtype).reshape(o.attr("shape")))


@exports("fill_constant_batch_size_like")
def _fill_like_batch(o: Exported) -> str:
    """Take the batch size from the number of sequences if the reference tensor has sequences."""
    source, shape = o.input("Input"), list(o.attr("shape"))
    lengths = o.graph.lengths_of(o.names("Input")[0])
    if lengths and o.attr("input_dim_idx") == 0:
        batch = size_of(o, lengths, 0)
    else:
        batch = size_of(o, source, o.attr("input_dim_idx"))
    at = o.attr("output_dim_idx")
    parts = [o.ints(*part) if part else "" for part in (shape[:at], shape[at + 1 :])]
    sizes_of = [part for part in (parts[0], batch, parts[1]) if part]
    text = o.attr("str_value")
    value = float(text) if text else o.attr("value")
    return filled(o, o.node("Concat", *sizes_of, axis=0), value, VarType(o.attr("dtype")))


@exports("fill_zeros_like", "fill_zeros_like2", "fill_any_like")
def _fill_like(o: Exported) -> str:
    dtype = o.attr("dtype")
    kind = o.dtype("X") if dtype is None or dtype == -1 else VarType(dtype)
    return filled(o, o.node("Shape", o.input("X")), o.attr("value") or 0, kind)


@exports("range")
def _range(o: Exported) -> str:
    return o.node("Range", *[o.node("Reshape", o.input(slot), o.ints()) for slot in ("Start", "End", "Step")])


@exports("gather")
def _gather(o: Exported) -> str:
    return o.node("Gather", o.input("X"), o.node("Reshape", o.input("Index"), o.ints(-1)))


@exports("gather_nd")
def _gather_nd(o: Exported) -> str:
    return o.node("GatherND", o.input("X"), o.cast(o.input("Index"), VarType.INT64))


@exports("scatter")
def _scatter(o: Exported) -> str:
    if not o.attr("overwrite"):
        raise o.fail("adds up the updates of a row (overwrite=False)")
    index = o.cast(o.node("Reshape", o.input("Ids"), o.ints(-1, 1)), VarType.INT64)
    return o.node("ScatterND", o.input("X"), index, o.input("Updates"))


@exports("where")
def _where(o: Exported) -> str:
    return o.node("Where", o.input("Condition"), o.input("X"), o.input("Y"))


@exports("where_index")
def _where_index(o: Exported) -> str:
    return o.node("Transpose", o.node("NonZero", o.input("Condition")), perm=[1, 0])


@exports("pad")
def _pad(o: Exported) -> str:
    before, after = o.attr("paddings")[::2], o.attr("paddings")[1::2]
    value = o.constant(o.attr("pad_value"), to_numpy(o.dtype("X")))
    return o.node("Pad", o.input("X"), o.ints(*before, *after), value)


@exports("pad2d")
def _pad2d(o: Exported) -> str:
    if o.has("Paddings"):
        raise o.fail("takes its paddings from a tensor")
    top, bottom, left, right = o.attr("paddings")
    first = o.attr("data_format") == "NCHW"
    pads = [0, 0, top, left, 0, 0, bottom, right] if first else [0, top, left, 0, 0, bottom, right, 0]
    value = o.constant(o.attr("pad_value"), to_numpy(o.dtype("X")))
    return o.node("Pad", o.input("X"), o.ints(*pads), value, mode=o.attr("mode"))


@exports("cumsum")
def _cumsum(o: Exported) -> str:
    value = o.node("Reshape", o.input("X"), o.ints(-1)) if o.attr("flatten") else o.input("X")
    axis = o.constant(0 if o.attr("flatten") else o.attr("axis"), "int64")
    ends = {"exclusive": int(o.attr("exclusive")), "reverse": int(o.attr("reverse"))}
    return o.node("CumSum", value, axis, **ends)


@exports("reverse")
def _reverse(o: Exported) -> str:
    axes = [axis % o.rank("X") for axis in o.attr("axis")]
    far = [[number] * len(axes) for number in (-1, -_FAR, -1)]
    return o.node("Slice", o.input("X"), o.ints(*far[0]), o.ints(*far[1]), o.ints(*axes), o.ints(*far[2]))


@exports("lookup_table", "lookup_table_v2")
def _lookup_table(o: Exported) -> str:
    ids, padding = o.input("Ids"), o.attr("padding_idx")
    if o.op.type == "lookup_table":
        ids = o.node("Squeeze", ids, o.ints(o.rank("Ids") - 1))
    rows = o.node("Gather", o.input("W"), ids)
    if padding is not None and padding != -1:
        empty = o.node(
            "Unsqueeze", o.node("Equal", ids, o.constant(padding, to_numpy(o.dtype("Ids")))), o.ints(-1)
        )
        rows = o.node("Where", empty, o.constant(0, to_numpy(o.dtype("W"))), rows)
    return rows


@exports("one_hot", "one_hot_v2")
def _one_hot(o: Exported) -> str:
    ids = o.input("X")
    if o.op.type == "one_hot":
        ids = o.node("Squeeze", ids, o.ints(o.rank("X") - 1))
    depth = (
        o.node("Reshape", o.input("depth_tensor"), o.ints())
        if o.has("depth_tensor")
        else o.constant(o.attr("depth"))
    )
    kind = to_numpy(VarType(o.attr("dtype")))
    return o.node("OneHot", ids, depth, o.constant([0, 1], kind))


@exports("eye")
def _eye(o: Exported) -> str:
    rows, columns = o.attr("num_rows"), o.attr("num_columns")
    return o.constant(
        np.eye(rows, rows if columns == -1 else columns, dtype=to_numpy(VarType(o.attr("dtype"))))
    )


@exports("diag")
def _diag(o: Exported) -> str:
    (size,) = o.static("Diagonal", 0)
    zeros = o.constant(np.zeros((size, size), to_numpy(o.dtype("Diagonal"))))
    places = o.constant(np.arange(size).repeat(2).reshape(size, 2))
    return o.node("ScatterND", zeros, places, o.input("Diagonal"))
