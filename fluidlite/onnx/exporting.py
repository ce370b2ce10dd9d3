"""Programs as ONNX models, and the command `fluidlite export`."""

from __future__ import annotations

import math
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ..base import long_work
from ..base.dtypes import VarType
from ..base.errors import NotSupportedError
from ..base.place import CPUPlace
from ..base.storage.files import write_file
from ..executor import Executor, Scope, global_scope, scope_guard
from ..fluid.io import load_inference_model
from ..framework import Program, Variable
from ..ops.program.host import ENDS
from .graph import EXPORTERS, LENGTHS, OPSET, Exported, Graph, element_type

_SMALL = 256
"""Constants of at most this many elements are folded when sizes are computed."""


def missing_operators(program: Program) -> list[str]:
    """The types of the operators of a program that have no counterpart in ONNX, sorted."""
    return sorted({op.type for block in program.blocks for op in block.ops} - EXPORTERS.keys() - ENDS)


def export(
    program: Program,
    feeds: Sequence[str | Variable],
    fetches: Sequence[str | Variable],
    path: str | os.PathLike[str],
    scope: Scope | None = None,
) -> onnx.ModelProto:
    """Write what computes `fetches` from `feeds` as an ONNX model of opset 17, and return it.

    The program is cloned for tests (`clone(for_test=True)`) and pruned; parameters come from `scope` (by default the
    global one). Dimensions that are -1 stay open. A feed with sequences is two inputs: the rows, and `NAME.lengths`,
    int64 [number of sequences]; so are fetches. Loops and branches become Loop, Scan and If, LSTM and GRU those of
    ONNX.

    Raises NotSupportedError naming the operators that have no counterpart, or what of one has none; ValueError for a
    feed or fetch that the program does not have, and for a parameter without a value.
    """
    inputs = [feed if isinstance(feed, str) else feed.name for feed in feeds]
    wanted = [fetch if isinstance(fetch, str) else fetch.name for fetch in fetches]
    known = program.global_block()
    for name in [*inputs, *wanted]:
        if not known.has_var(name):
            raise ValueError(f"the program has no variable {name!r}, which is to be fed or fetched")
    copy = program.clone(for_test=True)
    block = copy.global_block()
    block.ops = [op for op in block.ops if op.type not in ENDS]
    copy = copy._prune([copy.global_block().var(name) for name in wanted], inputs)
    missing = missing_operators(copy)
    if missing:
        raise NotSupportedError(f"these operators have no counterpart in ONNX: {', '.join(missing)}")
    model = _model(copy, inputs, wanted, scope or global_scope())
    onnx.checker.check_model(model)
    write_file(path, model.SerializeToString())
    return model


def _model(program: Program, inputs: list[str], wanted: list[str], scope: Scope) -> onnx.ModelProto:
    block = program.global_block()
    graph = Graph(block)
    graph.wanted.update(wanted)
    graph._used.update(part for name in [*inputs, *wanted] for part in (name, name + LENGTHS))
    given = []
    for name in inputs:
        var = block.var(name)
        given += _input(var)
        graph.fed.add(name + LENGTHS)
        graph.set(name, name, name + LENGTHS if var.lod_level else None)
    _parameters(graph, program, set(inputs), scope)
    graph.write(long_work.over(block.ops, "nodes of ONNX"))
    outputs = []
    for name in wanted:
        value, lengths = graph.value(name), graph.lengths.get(name)
        if value is None:
            raise ValueError(f"nothing in the program makes {name!r}")
        outputs += [_output(graph, block.var(name), value, lengths)]
        if lengths is not None:
            outputs += [_named_output(graph, lengths, name + LENGTHS, VarType.INT64, [f"{name}.sequences"])]
    held = _used_constants(graph, [info.name for info in outputs])
    _name_sizes(graph, given, outputs, held)
    return _of_opset(helper.make_graph(graph.nodes, "fluid", given, outputs, held))


def _of_opset(graph: onnx.GraphProto) -> onnx.ModelProto:
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="fluidlite"
    )
    model.ir_version = 8  # the IR version of the release that introduced the opset
    return model


def _name_sizes(
    graph: Graph,
    given: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    held: list[onnx.TensorProto],
) -> None:
    """Give the open sizes of outputs that are sizes of inputs the names they have there, as far as ONNX can tell."""
    bare = [
        helper.make_tensor_value_info(info.name, info.type.tensor_type.elem_type, None) for info in outputs
    ]
    small = [tensor for tensor in held if math.prod(tensor.dims) <= _SMALL]
    large = [
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in held
        if math.prod(tensor.dims) > _SMALL
    ]
    model = _of_opset(helper.make_graph(graph.nodes, "fluid", [*given, *large], bare, small))
    found = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output
    known = {dim.dim_param for info in given for dim in info.type.tensor_type.shape.dim} - {""}
    for info, inferred in zip(outputs, found, strict=True):
        dims = inferred.type.tensor_type.shape.dim
        for dim, same in zip(info.type.tensor_type.shape.dim, dims, strict=False):
            if (
                dim.dim_param
                and len(dims) == len(info.type.tensor_type.shape.dim)
                and same.dim_param in known
            ):
                dim.dim_param = same.dim_param


def _input(var: Variable) -> list[Any]:
    """The graph inputs of a feed: its tensor and, if it has sequences, their lengths."""
    if var.lod_level > 1:
        raise NotSupportedError(
            f"feed {var.name!r} has sequences of sequences, which ONNX has no counterpart for"
        )
    rows = f"{var.name}.rows" if var.lod_level else "batch"
    shape = [
        n if n >= 0 else (rows if axis == 0 else f"{var.name}.{axis}") for axis, n in enumerate(var.shape)
    ]
    found = [helper.make_tensor_value_info(var.name, element_type(var.dtype), shape)]
    if var.lod_level:
        found.append(
            helper.make_tensor_value_info(
                var.name + LENGTHS, element_type("int64"), [f"{var.name}.sequences"]
            )
        )
    return found


def _output(graph: Graph, var: Variable, value: str, lengths: str | None) -> Any:
    shape = [n if n >= 0 else f"{var.name}.{axis}" for axis, n in enumerate(var.shape)]
    if lengths is not None and lengths in graph.root.fed:
        shape[0] = lengths.removesuffix(LENGTHS) + ".rows"  # as many as the lengths add up to
    return _named_output(graph, value, var.name, var.dtype, shape)


def _named_output(graph: Graph, value: str, name: str, dtype: VarType, shape: list[Any]) -> Any:
    """Return the graph output `name`, copied from `value` by an Identity node."""
    if value != name:
        graph.nodes.append(helper.make_node("Identity", [value], [name]))
    return helper.make_tensor_value_info(name, element_type(dtype), shape)


def _parameters(graph: Graph, program: Program, fed: set[str], scope: Scope) -> None:
    read = {name for block in program.blocks for op in block.ops for name in op.input_arg_names}
    for var in program.list_vars():
        if not var.persistable or var.name not in read or var.name in fed:
            continue
        found = scope.find_var(var.name)
        if found is None or not found.get_tensor()._is_initialized():
            raise ValueError(
                f"{var.name!r} has no value in the scope: run the startup program, or load the model"
            )
        name = graph.fresh(var.name)
        graph.initializers.append(onnx.numpy_helper.from_array(np.array(found.get_tensor()), name))
        graph.set(var.name, name)


def _used_constants(graph: Graph, outputs: list[str]) -> list[onnx.TensorProto]:
    """The constants that a node of the graph or of an inner graph reads."""
    read = set(outputs)

    def look(nodes: Any) -> None:
        for node in nodes:
            read.update(node.input)
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    look(attribute.g.node)
                    read.update(info.name for info in attribute.g.output)

    look(graph.nodes)
    return [tensor for tensor in graph.initializers if tensor.name in read]


def export_model(given: Namespace) -> int:
    """Run `fluidlite export`; returns the exit status."""
    try:
        from . import export

        with scope_guard(Scope()):
            executor = Executor(CPUPlace())
            program, feeds, fetches = load_inference_model(given.folder, executor, given.model, given.params)
            made = export(program, feeds, fetches, given.path)
    except (NotSupportedError, OSError, ValueError) as error:
        print(f"fluidlite export: {error}", file=sys.stderr)
        if isinstance(error, FileNotFoundError) and str(error.filename).startswith(given.folder):
            print(
                "MODEL_DIR is a folder that save_inference_model wrote; --model names the file of the program if that "
                "is not __model__, --params that of the parameters if they are in one",
                file=sys.stderr,
            )
        return 1 if isinstance(error, NotSupportedError) else 2
    ends = [", ".join(info.name for info in infos) for infos in (made.graph.input, made.graph.output)]
    print(f"{given.path}: opset {made.opset_import[0].version}, from {ends[0]} to {ends[1]}")
    return 0


@dataclass(frozen=True)
class Sequences:
    """ONNX values that describe B sequences of N rows in all, the longest of T steps."""

    lengths: str
    """[B]"""
    starts: str
    """[B], the first row of each."""
    ends: str
    """[B], one past the last row of each."""
    rows: str
    """[T, B], the row of each step; an arbitrary valid row beyond the end of a sequence."""
    inside: str
    """[T, B], whether the step is within its sequence."""
    owner: str
    """[N], the sequence of each row."""
    place: str
    """[N], the step of each row in its sequence."""


def sequences(o: Exported, lengths: str) -> Sequences:
    """Return the values derived from `lengths`, computed once a graph."""
    graph = o.graph
    known = graph.known.get(("sequences", lengths))
    if isinstance(known, Sequences):
        return known
    zero, one = o.constant(0), o.constant(1)
    ends = o.node("CumSum", lengths, zero)
    starts = o.node("Sub", ends, lengths)
    longest = o.node("ReduceMax", lengths, keepdims=0)
    times = o.node("Unsqueeze", o.node("Range", zero, longest, one), o.ints(1))
    inside = o.node("Less", times, lengths)
    last = o.node("Max", o.node("Sub", lengths, one), zero)
    rows = o.node("Add", o.node("Min", times, last), starts)
    total = o.node("ReduceSum", lengths, keepdims=0)
    # Empty sequences at the end start past the last row: clamp to it.
    rows = o.node("Min", rows, o.node("Max", o.node("Sub", total, one), zero))
    row = o.node("Range", zero, total, one)
    past_ends = o.node("GreaterOrEqual", o.node("Unsqueeze", row, o.ints(1)), ends)
    owner = o.node("ReduceSum", o.cast(past_ends, VarType.INT64), o.ints(1), keepdims=0)
    place = o.node("Sub", row, o.node("Gather", starts, owner))
    found = Sequences(lengths, starts, ends, rows, inside, owner, place)
    graph.known["sequences", lengths] = found  # type: ignore[assignment]
    return found


def padded(o: Exported, value: str, parts: Sequences) -> str:
    """[N, ...] as [T, B, ...]; steps beyond the end of a sequence hold arbitrary rows."""
    return o.node("Gather", value, parts.rows)


def filled(o: Exported, value: str, rank: int, parts: Sequences, filling: str) -> str:
    """[N, ...] of this rank as [T, B, ...], with `filling` beyond the end of each sequence."""
    inside = parts.inside
    if rank > 1:
        inside = o.node("Unsqueeze", inside, o.ints(*range(2, rank + 1)))
    return o.node("Where", inside, padded(o, value, parts), filling)


def unpadded(o: Exported, value: str, parts: Sequences) -> str:
    """[T, B, ...] as [N, ...]."""
    columns = [o.node("Unsqueeze", part, o.ints(1)) for part in (parts.place, parts.owner)]
    return o.node("GatherND", value, o.node("Concat", *columns, axis=1))
