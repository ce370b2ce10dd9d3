"""Tensor arrays as sequences of ONNX, and the steps of sequences sorted by length (DynamicRNN)."""

from __future__ import annotations

from onnx import helper

from ...base.dtypes import VarType
from ..graph import Exported, Graph, element_type, exports
from ..padding import sequences
from .tensors import size_of


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
def _read(o: Exported) -> None:
    o.out("Out", o.node("SequenceAt", o.input("X"), _index(o)))


@exports("lod_array_length")
def _length(o: Exported) -> None:
    o.out("Out", o.node("Reshape", o.node("SequenceLength", o.input("X")), o.ints(1)))


@exports("lod_rank_table")
def _rank_table(o: Exported) -> None:
    """A rank table is exported as the lengths of the sequences."""
    if o.attr("level"):
        raise o.fail("ranks sequences of sequences")
    o.out("Out", o.lengths("X"))


def _order(o: Exported, table: str) -> str:
    """The indices of the sequences, longest first, in a stable order."""
    known = o.graph.known
    if ("order", table) not in known:
        known["order", table] = o.node("TopK", table, size_of(o, table, 0), count=2, axis=0)[1]
    return known["order", table]


def _counts(o: Exported, table: str) -> str:
    """How many sequences have each step, [T]."""
    parts = sequences(o, table)
    return str(o.node("ReduceSum", o.cast(parts.inside, VarType.INT64), o.ints(1), keepdims=0))


@exports("max_sequence_len")
def _longest(o: Exported) -> None:
    o.out("Out", o.node("ReduceMax", o.input("RankTable"), keepdims=1))


@exports("lod_tensor_to_array")
def _to_array(o: Exported) -> None:
    table = o.input("RankTable")
    parts, order = sequences(o, table), _order(o, table)
    rows = o.node("Reshape", o.node("Gather", parts.rows, order, axis=1), o.ints(-1))
    inside = o.node("Reshape", o.node("Gather", parts.inside, order, axis=1), o.ints(-1))
    steps = o.node("Gather", o.input("X"), o.node("Compress", rows, inside, axis=0))
    o.out("Out", o.node("SplitToSequence", steps, _counts(o, table), axis=0))


@exports("array_to_lod_tensor")
def _from_array(o: Exported) -> None:
    table = o.input("RankTable")
    parts, order = sequences(o, table), _order(o, table)
    before = o.node("CumSum", _counts(o, table), o.constant(0), exclusive=1)
    rank = o.node("TopK", order, size_of(o, order, 0), count=2, axis=0, largest=0)[1]
    place = o.node("Add", o.node("Gather", before, parts.place), o.node("Gather", rank, parts.owner))
    steps = o.node("ConcatFromSequence", o.input("X"), axis=0)
    o.out("Out", o.node("Gather", steps, place), table)


@exports("shrink_rnn_memory")
def _shrink(o: Exported) -> None:
    """The rows of the sequences that have this step."""
    going = o.node("Less", _index(o), o.input("RankTable"))
    count = o.node("ReduceSum", o.cast(going, VarType.INT64), o.ints(0), keepdims=1)
    o.out("Out", o.node("Slice", o.input("X"), o.ints(0), count))


@exports("reorder_lod_tensor_by_rank")
def _reorder(o: Exported) -> None:
    if o.graph.lengths_of(o.names("X")[0]):
        raise o.fail("sorts sequences")
    o.out("Out", o.node("Gather", o.input("X"), _order(o, o.input("RankTable"))))


@exports("tensor_array_to_tensor")
def _joined(o: Exported) -> None:
    if o.wants("OutIndex") and o.op.outputs["OutIndex"][0] in o.read_later():
        raise o.fail("returns the sizes of the elements (OutIndex)")
    o.out(
        "Out",
        o.node("ConcatFromSequence", o.input("X"), axis=o.attr("axis"), new_axis=int(o.attr("use_stack"))),
    )
