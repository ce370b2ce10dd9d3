"""Reading an ONNX model: its inputs, its graph node by node, its outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper
from onnx.inliner import inline_local_functions, inline_selected_functions

from ...base.dtypes import VarType, to_vartype
from ...base.errors import EnforceNotMet, FormatError, NotSupportedError
from ...executor import Scope, global_scope
from ...framework import Program, Variable, program_guard
from .values import IMPORTERS, LARGEST, Maker, Node, Value, all_nodes, inner_graphs, kind_of

_LATER = frozenset(
    "Tile Range Pad Resize OneHot EyeLike RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli "
    "Shape Dropout SequenceEmpty SequenceConstruct "
    "SequenceInsert SequenceErase SequenceAt SequenceLength SplitToSequence ConcatFromSequence QuantizeLinear "
    "DequantizeLinear DynamicQuantizeLinear HannWindow HammingWindow BlackmanWindow Col2Im MaxUnpool DFT STFT".split()
)
"""Nodes that are not constant-folded: sequences, quantization, and results far larger than the operands."""

_SIZES: dict[str, Callable[[list[np.ndarray]], float]] = {
    "ConstantOfShape": lambda given: np.prod(given[0].astype(float)),
    "Expand": lambda given: np.prod(given[1].astype(float)),
    "MelWeightMatrix": lambda given: float(given[0]) * float(given[1]),
}
"""The number of elements of results that may be larger than the operands."""

DAMAGED = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError)
"""Exceptions that malformed constants, names and attributes may raise."""


def follow(maker: Maker, graph: onnx.GraphProto) -> None:
    """Append the operators of a graph's nodes to the current block.

    Raises FormatError for damaged constants, and for a node whose inputs or attributes do not fit; NotSupportedError
    for what of one has no counterpart.
    """
    for tensor in graph.initializer:
        try:
            array = numpy_helper.to_array(tensor)
        except DAMAGED as error:
            raise FormatError(f"the numbers of constant {tensor.name!r} cannot be read: {error}") from None
        maker.values[tensor.name] = Value(array=array, scalar=array.ndim == 0)
    for node in graph.node:
        try:
            if not _fold_constants(maker, node):
                IMPORTERS[kind_of(node)](Node(maker, node))
        except (EnforceNotMet, NotSupportedError, FormatError):
            raise
        except DAMAGED as error:
            raise FormatError(
                f"node {node.op_type} that makes {list(node.output)} has inputs or attributes that do not fit "
                f"({type(error).__name__}: {error})"
            ) from error


def _fold_constants(maker: Maker, node: onnx.NodeProto) -> bool:
    """Constant-fold the node if all its inputs are constants; True if it was."""
    given = [maker.values.get(name) for name in node.input if name]
    if node.op_type == "Constant":
        pass
    elif not given or node.op_type in _LATER or inner_graphs(node):
        return False
    elif maker.opset < 13 and node.op_type in ("Softmax", "LogSoftmax", "Hardmax"):
        return False
    elif any(value is None or not _is_constant(value) for value in given):
        return False
    from onnx.reference import ReferenceEvaluator

    arrays = {name: maker.values[name].array for name in node.input if name}
    if sum(array.size for array in arrays.values() if array is not None) > LARGEST:
        return False
    if node.op_type in _SIZES:
        known = [array for name in node.input if (array := arrays[name]) is not None]
        if _SIZES[node.op_type](known) > LARGEST:
            return False
    inputs = [helper.make_tensor_value_info(name, 1, None) for name in arrays]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in node.output if name]
    graph = helper.make_graph([node], "constants", inputs, outputs)
    alone = helper.make_model(
        graph, opset_imports=maker.model.opset_import, ir_version=maker.model.ir_version
    )
    try:
        results = ReferenceEvaluator(alone).run(None, arrays)
    except RuntimeError:  # the evaluator lacks the node in this opset
        return False
    for name, result in zip((name for name in node.output if name), results, strict=True):
        array = np.asarray(result)
        maker.values[name] = Value(array=array, scalar=array.ndim == 0)
    return True


def _is_constant(value: Value) -> bool:
    """Whether the value is constant; a list of constant sizes becomes an array."""
    if value.array is None and value.sizes is not None and all(isinstance(size, int) for size in value.sizes):
        array = np.array(value.sizes, "int64")
        value.array = array.reshape(()) if value.scalar else array
    return value.array is not None


_OPSETS = range(7, 27)
_MOST_NODES = 1 << 20


def load(
    path: str | os.PathLike[str], scope: Scope | None = None
) -> tuple[Program, list[str], list[Variable]]:
    """A program for an ONNX model, the names of its feeds, and its fetches, as `load_inference_model` has them.

    Convolutional, recurrent and dense networks and transformers, branches, loops and sequences of a model of opset 7
    to 26, functions of its own among them.
    Its floating point constants are parameters, whose values go into `scope` (by default the global one). Open
    dimensions are -1. Results without dimensions have one, of size 1.

    Raises FormatError for a file that is no such model, NotSupportedError naming the nodes that have no counterpart, or
    what of one has none; OSError as `open` does.
    """
    try:
        model = onnx.ModelProto.FromString(Path(path).read_bytes())
        _load_external_data(model, Path(path).parent)
        _check_functions(model)
        for info in model.graph.output:
            info.type.tensor_type.shape.SetInParent()  # required by the checker only
        onnx.checker.check_model(model)
        model = inline_local_functions(model) if model.functions else model
    except (DecodeError, onnx.checker.ValidationError, *DAMAGED) as error:
        raise FormatError(f"{os.fspath(path)} is not an ONNX model, or a damaged one: {error}") from None
    opset = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)
    if opset not in _OPSETS:
        raise NotSupportedError(f"{os.fspath(path)} is of opset {opset}: those from 7 to 26 can be loaded")
    missing = sorted(_missing(model := _expanded(model)))
    if missing:
        raise NotSupportedError(f"{os.fspath(path)} has nodes that have no counterpart: {', '.join(missing)}")
    program = Program()
    maker = Maker(program, scope or global_scope(), model, opset)
    constants = {tensor.name for tensor in model.graph.initializer}
    feeds = [_feed(maker, info) for info in model.graph.input if info.name not in constants]
    with program_guard(program):
        try:
            follow(maker, model.graph)
        except FormatError as error:
            raise FormatError(f"{os.fspath(path)}: {error}") from error
        return program, feeds, [_fetch(maker, info.name) for info in model.graph.output]


def _missing(model: onnx.ModelProto) -> set[str]:
    return {kind_of(node) for node in all_nodes(model.graph)} - IMPORTERS.keys() - {"Constant"}


def _expanded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with nodes that have no counterpart expanded to ONNX's function bodies where these exist."""
    while found := {kind for kind in _missing(model) if _has_function_body(kind)}:
        kinds = [("", kind) for kind in sorted(found)]
        model = onnx.shape_inference.infer_shapes(model)
        for tensor in model.graph.initializer:  # the expansion needs their types too
            info = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            model.graph.value_info.append(info)
        for node in all_nodes(model.graph):
            if kind_of(node) in found:
                _with_defaults(node)
        try:
            model = inline_selected_functions(model, kinds, inline_schema_functions=True)
        except (
            RuntimeError,
            TypeError,
        ):  # a type that cannot be inferred, or onnx before 1.19
            break
    return model


def _with_defaults(node: onnx.NodeProto) -> None:
    """Write the default values of absent attributes into a node."""
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in onnx.defs.get_schema(node.op_type).attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _has_function_body(kind: str) -> bool:
    if "." in kind or not onnx.defs.has(kind):
        return False
    schema: Any = onnx.defs.get_schema(kind)
    return bool(schema.has_function or schema.has_context_dependent_function)


def _check_functions(model: onnx.ModelProto) -> None:
    """Raise FormatError for recursive functions and for those that expand to more than `_MOST_NODES` nodes."""
    functions = {(one.domain, one.name): one for one in model.functions}
    counts: dict[tuple[str, str], int] = {}

    def count(nodes: Iterable[onnx.NodeProto], callers: tuple[tuple[str, str], ...]) -> int:
        total = 0
        for node in nodes:
            called = node.domain, node.op_type
            if called in callers:
                raise FormatError(f"function {node.op_type!r} calls itself")
            if called in functions and called not in counts:
                counts[called] = count(all_nodes(functions[called]), (*callers, called))
            total += counts.get(called, 1)
        return total

    if count(all_nodes(model.graph), ()) > _MOST_NODES:
        raise FormatError(f"its functions expand to more than {_MOST_NODES} nodes")


def _load_external_data(model: onnx.ModelProto, folder: Path) -> None:
    """Read the tensors that a model keeps in external files. Raises FormatError for files outside its folder."""
    for tensor in model.graph.initializer:
        where = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        if PurePath(where).is_absolute() or ".." in PurePath(where).parts:
            raise FormatError(
                f"tensor {tensor.name!r} is in {where!r}, expected a file in the model's folder"
            )
    onnx.external_data_helper.load_external_data_for_model(model, os.fspath(folder))


def _feed(maker: Maker, info: onnx.ValueInfoProto) -> str:
    kind = info.type.tensor_type
    if kind.elem_type not in helper.get_all_tensor_dtypes():
        raise FormatError(f"input {info.name!r} has the unknown element type {kind.elem_type}")
    if not info.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise NotSupportedError(f"input {info.name!r} is no tensor of known rank")
    shape = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
    elements = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    try:
        dtype = to_vartype(elements)
    except ValueError:
        raise NotSupportedError(
            f"input {info.name!r} has elements of type {elements}, which Fluid has not"
        ) from None
    var = maker.block.create_var(
        name=info.name, shape=shape or [1], dtype=dtype, is_data=True, need_check_feed=True
    )
    var.stop_gradient = True
    maker.values[info.name] = Value(var=var, scalar=not shape)
    return info.name


def _fetch(maker: Maker, name: str) -> Variable:
    """The variable of an output, renamed to the output's name unless the name is taken."""
    if name not in maker.values:
        raise FormatError(f"the model does not compute its output {name!r}")
    var = maker.var(name, "the model")
    if var.type == VarType.LOD_TENSOR_ARRAY:
        raise NotSupportedError(f"output {name!r} is a sequence: fetches are tensors")
    if var.name == name or maker.block.has_var(name):
        return var
    out = maker.block.create_var(name=name)
    maker.block.append_op(type="assign", inputs={"X": var}, outputs={"Out": out})
    return out
