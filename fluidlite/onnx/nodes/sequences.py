"""Operators on sequences: rows and the lengths of their sequences."""

from __future__ import annotations

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ..graph import Exported, exports
from ..padding import filled, padded, sequences, unpadded
from .tensors import size_of


@exports("sequence_pool")
def _sequence_pool(o: Exported) -> None:
    """One row of each sequence; that of an empty one is `pad_value`."""
    parts, kind, rank = sequences(o, o.lengths("X")), o.attr("pooltype"), o.rank("X")
    dtype = to_numpy(o.dtype("X"))
    below = [1] * (rank - 1)
    count = o.node("Reshape", parts.lengths, o.ints(-1, *below))
    if kind in ("FIRST", "LAST"):
        rows = (
            parts.starts
            if kind == "FIRST"
            else o.node("Max", o.node("Sub", parts.ends, o.constant(1)), parts.starts)
        )
        last = o.node("Max", o.node("Sub", size_of(o, o.input("X"), 0), o.ints(1)), o.ints(0))
        result = o.node("Gather", o.input("X"), o.node("Min", rows, last))
    elif kind == "MAX":
        least = o.constant(np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min, dtype)
        result = o.node("ReduceMax", filled(o, o.input("X"), rank, parts, least), axes=[0], keepdims=0)
    else:
        zero = o.constant(0, dtype)
        result = o.node("ReduceSum", filled(o, o.input("X"), rank, parts, zero), o.ints(0), keepdims=0)
        if kind in ("AVERAGE", "SQRT"):
            by = o.cast(o.node("Max", count, o.constant(1)), o.dtype("X"))
            result = o.node("Div", result, by if kind == "AVERAGE" else o.node("Sqrt", by))
    empty = o.node("Equal", count, o.constant(0))
    o.out("Out", o.node("Where", empty, o.constant(o.attr("pad_value"), dtype), result))


@exports("sequence_softmax")
def _sequence_softmax(o: Exported) -> None:
    lengths = o.lengths("X")
    parts, dtype = sequences(o, lengths), to_numpy(o.dtype("X"))
    columns = filled(o, o.input("X"), o.rank("X"), parts, o.constant(np.finfo(dtype).min, dtype))
    o.out("Out", unpadded(o, o.node("Softmax", columns, axis=0), parts), lengths)


@exports("sequence_expand", "sequence_expand_as")
def _sequence_expand(o: Exported) -> None:
    """Each row as often as the sequence of Y is long."""
    if o.graph.lengths_of(o.names("X")[0]):
        raise o.fail("repeats whole sequences")
    lengths = o.lengths("Y")
    kept = lengths if o.op.type == "sequence_expand_as" else None
    o.out("Out", o.node("Gather", o.input("X"), sequences(o, lengths).owner), kept)


@exports("sequence_reverse")
def _sequence_reverse(o: Exported) -> None:
    lengths = o.lengths("X")
    parts = sequences(o, lengths)
    last = o.node("Sub", o.node("Gather", parts.ends, parts.owner), o.constant(1))
    o.out("Y", o.node("Gather", o.input("X"), o.node("Sub", last, parts.place)), lengths)


@exports("sequence_conv")
def _sequence_conv(o: Exported) -> None:
    """A matrix product with each row's context window, zero beyond the ends of its sequence."""
    if o.has("PaddingData"):
        raise o.fail("has trained padding")
    lengths = o.lengths("X")
    parts = sequences(o, lengths)
    length = o.node("Gather", parts.lengths, parts.owner)
    start = o.node("Gather", parts.starts, parts.owner)
    context = []
    for offset in range(o.attr("contextStart"), o.attr("contextStart") + o.attr("contextLength")):
        place = o.node("Add", parts.place, o.constant(offset))
        inside = o.node("And", o.node("GreaterOrEqual", place, o.constant(0)), o.node("Less", place, length))
        row = o.node("Add", start, o.node("Where", inside, place, o.constant(0)))
        inside = o.node("Unsqueeze", inside, o.ints(1))
        zero = o.constant(0, to_numpy(o.dtype("X")))
        context.append(o.node("Where", inside, o.node("Gather", o.input("X"), row), zero))
    o.out("Out", o.node("MatMul", o.node("Concat", *context, axis=1), o.input("Filter")), lengths)


@exports("sequence_pad")
def _sequence_pad(o: Exported) -> None:
    if o.attr("padded_length") != -1:
        raise o.fail("pads to a given length")
    parts = sequences(o, o.lengths("X"))
    columns = filled(o, o.input("X"), o.rank("X"), parts, o.input("PadValue"))
    o.out("Out", o.node("Transpose", columns, perm=[1, 0, *range(2, o.rank("X") + 1)]))
    o.out("Length", o.node("Identity", parts.lengths))


@exports("sequence_unpad")
def _sequence_unpad(o: Exported) -> None:
    lengths = o.cast(o.node("Reshape", o.input("Length"), o.ints(-1)), VarType.INT64)
    parts = sequences(o, lengths)
    columns = o.node("Transpose", o.input("X"), perm=[1, 0, *range(2, o.rank("X"))])
    o.out("Out", unpadded(o, columns, parts), lengths)


@exports("ctc_align")
def _ctc_align(o: Exported) -> None:
    """Remove blanks and, with `merge_repeated`, repeated tokens from each sequence."""
    if o.has("InputLength"):
        raise o.fail("takes padded sequences")
    parts = sequences(o, o.lengths("Input"))
    row = o.node("Reshape", o.input("Input"), o.ints(-1))
    kept = o.node("Not", o.node("Equal", row, o.constant(o.attr("blank"), to_numpy(o.dtype("Input")))))
    if o.attr("merge_repeated"):
        before = o.node("Slice", row, o.ints(0), o.ints(-1), o.ints(0))
        before = o.node("Concat", o.constant([-1], to_numpy(o.dtype("Input"))), before, axis=0)
        new = o.node(
            "Or", o.node("Not", o.node("Equal", row, before)), o.node("Equal", parts.place, o.constant(0))
        )
        kept = o.node("And", kept, new)
    counted = o.node("And", padded(o, kept, parts), parts.inside)
    lengths = o.node("ReduceSum", o.cast(counted, VarType.INT64), o.ints(0), keepdims=0)
    o.out("Output", o.node("Compress", o.input("Input"), kept, axis=0), lengths)


@exports("sequence_mask")
def _mask(o: Exported) -> None:
    lengths = o.cast(o.input("X"), VarType.INT64)
    if o.has("MaxLenTensor"):
        width = o.cast(o.node("Reshape", o.input("MaxLenTensor"), o.ints()), VarType.INT64)
    elif o.attr("maxlen") >= 0:
        width = o.constant(o.attr("maxlen"))
    else:
        width = o.node("ReduceMax", lengths, keepdims=0)
    places = o.node("Range", o.constant(0), width, o.constant(1))
    inside = o.node("Less", places, o.node("Unsqueeze", lengths, o.ints(-1)))
    o.out("Y", o.cast(inside, VarType(o.attr("out_dtype"))))
