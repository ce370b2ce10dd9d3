"""Conditional blocks (If), while loops (Loop), StaticRNN (Scan); operators on sequences and tensor arrays.

Sequences are rows and the lengths of their sequences; tensor arrays are sequences of ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ValueInfoProto, helper

from ...base.dtypes import VarType, to_numpy
from ...framework import Block
from ..exporting import filled, padded, sequences, unpadded
from ..graph import Exported, Graph, element_type, exports
from .tensors import size_of


def _changed(block: Block) -> list[str]:
    """The variables of outer blocks that a block writes, in the order of their first writing."""
    found: dict[str, None] = {}
    for op in block.ops:
        for name in op.output_arg_names:
            var = block._find_var_recursive(name)
            if var is not None and name not in block.vars:
                found[name] = None
    return list(found)


def _info(o: Exported, name: str, value: str) -> ValueInfoProto:
    """A value of an inner graph with the element type of a variable; its shape may change."""
    var = o.graph.block._var_recursive(name)
    if var.type == VarType.LOD_TENSOR_ARRAY:
        return helper.make_tensor_sequence_value_info(value, element_type(var.dtype), None)
    return helper.make_tensor_value_info(value, element_type(var.dtype), None)


def _finished(graph: Graph, hint: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> GraphProto:
    return helper.make_graph(graph.nodes, graph.root.fresh(hint), inputs, outputs)


def _truth(o: Exported, value: str) -> str:
    return o.node("Reshape", value, o.ints())


def _passed(graph: Graph, value: str) -> str:
    """A copy of the value made in `graph`: results of inner graphs have to be."""
    return graph.node("Identity", [value])


@exports("conditional_block")
def _conditional_block(o: Exported) -> None:
    """Outputs of a block that does not run keep their value, or are zeros if they had none."""
    if not o.attr("is_scalar_condition"):
        raise o.fail("runs its block if there are any rows")
    block = o.op._block_attr("sub_block")
    made = [name for name in _changed(block) if o.graph.block._find_var_recursive(name) is not None]
    then, other = Graph(block, o.graph), Graph(block, o.graph)
    then.write(block.ops)
    results = []
    for name in made:
        before = o.graph.value(name)
        if before is None:
            shape = [max(n, 0) for n in o.graph.block._var_recursive(name).shape]
            before = o.constant(np.zeros(shape, to_numpy(o.graph.block._var_recursive(name).dtype)))
        results.append((name, _passed(then, str(then.value(name))), _passed(other, before)))
    branches = {
        "then_branch": _finished(then, "then", [], [_info(o, name, value) for name, value, _ in results]),
        "else_branch": _finished(
            other, "otherwise", [], [_info(o, name, value) for name, _, value in results]
        ),
    }
    condition = _truth(o, o.inputs("Cond")[0])
    values = o.nodes("If", condition, count=len(made), **branches)
    for name, value in zip(made, values, strict=True):
        o.graph.set(name, value)


@exports("select_input")
def _select_input(o: Exported) -> str:
    """The result of the branch that has run."""
    branches = []
    for index, value in enumerate(o.inputs("X")):
        graph = Graph(o.graph.block, o.graph)
        branches.append(
            _finished(graph, "chosen", [], [_info(o, o.names("X")[index], _passed(graph, value))])
        )
    chosen = o.node("Cast", _truth(o, o.input("Mask")), to=9)
    return o.node("If", chosen, then_branch=branches[1], else_branch=branches[0])


@exports("while")
def _while(o: Exported) -> None:
    """Variables that the body writes are loop-carried; it reads the others from the outer graph."""
    block, condition = o.op._block_attr("sub_block"), o.names("Condition")[0]
    for name in _changed(block):
        var = o.graph.block._var_recursive(name)
        if var.type == VarType.LOD_TENSOR_ARRAY and o.graph.value(name) is None:
            o.graph.set(name, o.node("SequenceEmpty", dtype=element_type(var.dtype)))
    carried = [name for name in _changed(block) if name != condition and o.graph.value(name) is not None]
    unset = set(_changed(block)) - {condition, *carried}
    if unset:
        raise o.fail(f"makes {', '.join(sorted(unset))}, which has no value before the loop")
    for name in carried:
        if o.graph.lengths_of(name):
            raise o.fail(f"changes {name!r}, which has sequences")
    body = Graph(block, o.graph)
    count, before = body.fresh("iteration"), body.fresh("goes_on")
    inputs: list[ValueInfoProto] = [
        helper.make_tensor_value_info(count, 7, []),
        helper.make_tensor_value_info(before, 9, []),
    ]
    for name in carried:
        body.values[name] = body.fresh(name)
        inputs.append(_info(o, name, body.values[name]))
    body.write(block.ops)
    if condition not in body.values:
        raise o.fail(f"does not change its condition {condition!r}")
    on = body.node("Reshape", [body.values[condition], o.ints()])
    outputs: list[ValueInfoProto] = [helper.make_tensor_value_info(on, 9, [])]
    outputs += [_info(o, name, _passed(body, body.values[name])) for name in carried]
    start = [str(o.graph.value(name)) for name in carried]
    made = o.nodes(
        "Loop", "", _truth(o, o.input("Condition")), *start,
        count=len(carried), body=_finished(body, "loop", inputs, outputs),
    )  # fmt: skip
    for name, value in zip(carried, made, strict=True):
        o.graph.set(name, value)
    o.graph.set(condition, o.constant([False]))


@exports("rnn_memory_helper")
def _memory(o: Exported) -> str:
    return o.node("Identity", o.input("X"))


@exports("recurrent")
def _recurrent(o: Exported) -> None:
    """The steps of a StaticRNN."""
    block = o.op._block_attr("sub_block")
    befores, afters = list(o.attr("ex_states") or []), list(o.attr("states") or [])
    body, inputs = Graph(block, o.graph), []
    for name in [*befores, *o.names("inputs")]:
        body.values[name] = body.fresh(name)
        inputs.append(
            helper.make_tensor_value_info(
                body.values[name], element_type(block._var_recursive(name).dtype), None
            )
        )
    body.write(block.ops)
    outputs = []
    steps = o.op.outputs.get("outputs", [])
    for name in [*afters, *steps]:
        kind = element_type(block._var_recursive(name).dtype)
        outputs.append(helper.make_tensor_value_info(_passed(body, str(body.value(name))), kind, None))
    backward = int(bool(o.attr("reverse")))
    scanned = o.names("inputs")
    made = o.nodes(
        "Scan", *o.inputs("initial_states"), *o.inputs("inputs"), count=len(afters) + len(steps),
        body=_finished(body, "step", inputs, outputs), num_scan_inputs=len(scanned),
        scan_input_directions=[backward] * len(scanned), scan_output_directions=[backward] * len(steps),
    )  # fmt: skip
    for index, value in enumerate(made[len(afters) :]):
        o.out("outputs", value, index=index)


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
