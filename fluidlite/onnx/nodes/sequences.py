"""Operators on sequences, which are rows and the lengths of their sequences, and tensor arrays as sequences of ONNX."""

from __future__ import annotations

import numpy as np
from onnx import helper

from ...base.dtypes import VarType, to_numpy
from ..exporting import filled, padded, sequences, unpadded
from ..graph import Exported, Graph, element_type, exports
from .tensors import size_of


@exports("sequence_pool")
def _sequence_pool(o: Exported) -> str:
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
    return o.node("Where", empty, o.constant(o.attr("pad_value"), dtype), result)


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
def _mask(o: Exported) -> str:
    lengths = o.cast(o.input("X"), VarType.INT64)
    if o.has("MaxLenTensor"):
        width = o.cast(o.node("Reshape", o.input("MaxLenTensor"), o.ints()), VarType.INT64)
    elif o.attr("maxlen") >= 0:
        width = o.constant(o.attr("maxlen"))
    else:
        width = o.node("ReduceMax", lengths, keepdims=0)
    places = o.node("Range", o.constant(0), width, o.constant(1))
    inside = o.node("Less", places, o.node("Unsqueeze", lengths, o.ints(-1)))
    return o.cast(inside, VarType(o.attr("out_dtype")))


def _index(o: Exported) -> str:
    return o.cast(o.node("Reshape", o.input("I"), o.ints()), VarType.INT64)


@exports("write_to_array")
def _write(o: Exported) -> None:
    """Replace the element at the index, or append one at the end."""
    name, index, kind = o.op.outputs["Out"][0], _index(o), element_type(o.dtype("X"))
    array = o.graph.value(name)
    if array is None:
        array = o.node("SequenceEmpty", dtype=kind)
    info = lambda value: helper.make_tensor_sequence_value_info(value, kind, None)  # noqa: E731
    branches = []
    for step in ("SequenceErase", "Identity"):
        inner = Graph(o.graph.block, o.graph)
        value = inner.node(step, [array, index] if step == "SequenceErase" else [array])
        branches.append(helper.make_graph(inner.nodes, inner.root.fresh(step.lower()), [], [info(value)]))
    there = o.node("Less", index, o.node("SequenceLength", array))
    rest = o.node("If", there, then_branch=branches[0], else_branch=branches[1])
    o.graph.set(name, o.node("SequenceInsert", rest, o.input("X"), index))


@exports("read_from_array")
def _read(o: Exported) -> str:
    return o.node("SequenceAt", o.input("X"), _index(o))


@exports("lod_array_length")
def _length(o: Exported) -> str:
    return o.node("Reshape", o.node("SequenceLength", o.input("X")), o.ints(1))


@exports("lod_rank_table")
def _rank_table(o: Exported) -> str:
    """A rank table is exported as the lengths of the sequences."""
    if o.attr("level"):
        raise o.fail("ranks sequences of sequences")
    return o.lengths("X")


def _order(o: Exported, table: str) -> str:
    """The indices of the sequences, longest first, in a stable order."""
    known = o.graph.known
    if ("order", table) not in known:
        known["order", table] = o.nodes("TopK", table, size_of(o, table, 0), count=2, axis=0)[1]
    return known["order", table]


def _counts(o: Exported, table: str) -> str:
    """How many sequences have each step, [T]."""
    parts = sequences(o, table)
    return o.node("ReduceSum", o.cast(parts.inside, VarType.INT64), o.ints(1), keepdims=0)


@exports("max_sequence_len")
def _longest(o: Exported) -> str:
    return o.node("ReduceMax", o.input("RankTable"), keepdims=1)


@exports("lod_tensor_to_array")
def _to_array(o: Exported) -> str:
    table = o.input("RankTable")
    parts, order = sequences(o, table), _order(o, table)
    rows = o.node("Reshape", o.node("Gather", parts.rows, order, axis=1), o.ints(-1))
    inside = o.node("Reshape", o.node("Gather", parts.inside, order, axis=1), o.ints(-1))
    steps = o.node("Gather", o.input("X"), o.node("Compress", rows, inside, axis=0))
    return o.node("SplitToSequence", steps, _counts(o, table), axis=0)


@exports("array_to_lod_tensor")
def _from_array(o: Exported) -> None:
    table = o.input("RankTable")
    parts, order = sequences(o, table), _order(o, table)
    before = o.node("CumSum", _counts(o, table), o.constant(0), exclusive=1)
    rank = o.nodes("TopK", order, size_of(o, order, 0), count=2, axis=0, largest=0)[1]
    place = o.node("Add", o.node("Gather", before, parts.place), o.node("Gather", rank, parts.owner))
    steps = o.node("ConcatFromSequence", o.input("X"), axis=0)
    o.out("Out", o.node("Gather", steps, place), table)


@exports("shrink_rnn_memory")
def _shrink(o: Exported) -> str:
    """The rows of the sequences that have this step."""
    going = o.node("Less", _index(o), o.input("RankTable"))
    count = o.node("ReduceSum", o.cast(going, VarType.INT64), o.ints(0), keepdims=1)
    return o.node("Slice", o.input("X"), o.ints(0), count)


@exports("reorder_lod_tensor_by_rank")
def _reorder(o: Exported) -> str:
    if o.graph.lengths_of(o.names("X")[0]):
        raise o.fail("sorts sequences")
    return o.node("Gather", o.input("X"), _order(o, o.input("RankTable")))


@exports("tensor_array_to_tensor")
def _joined(o: Exported) -> str:
    if o.wants("OutIndex") and o.op.outputs["OutIndex"][0] in o.read_later():
        raise o.fail("returns the sizes of the elements (OutIndex)")
    return o.node("ConcatFromSequence", o.input("X"), axis=o.attr("axis"), new_axis=int(o.attr("use_stack")))
