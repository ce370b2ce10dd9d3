"""Reading an ONNX model: its inputs, constants and nodes, one after the other."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper

from ...base.dtypes import to_vartype
from ...base.errors import EnforceNotMet, FormatError, NotSupportedError
from ...executor import Scope, global_scope
from ...framework import Program, Variable
from .values import IMPORTERS, Maker, Node, Value

_GROWING = frozenset("Tile Range Pad Resize OneHot EyeLike RandomNormal RandomUniform".split())
"""Nodes whose results may be far larger than their operands: a program computes them, not its loading."""

_DAMAGED = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError)
"""What numbers, names and attributes that no sound model has may raise."""

_OPSETS = range(13, 23)
_LARGEST = 1 << 20
"""Elements of constants that are computed while a model is loaded."""


def load(
    path: str | os.PathLike[str], scope: Scope | None = None
) -> tuple[Program, list[str], list[Variable]]:
    """A program for an ONNX model, the names of its feeds, and its fetches, as `load_inference_model` has them.

    Convolutional, recurrent and dense networks and transformers: what a model of opset 13 to 22 computes, without
    inner graphs.
    Its floating point constants are parameters, whose values go into `scope` (by default the global one). Open
    dimensions are -1. Results without dimensions have one, of size 1.

    Raises FormatError for a file that is no such model, NotSupportedError naming the nodes that have no counterpart, or
    what of one has none; OSError as `open` does.
    """
    try:
        model = onnx.ModelProto.FromString(Path(path).read_bytes())
        _take_in_weights(model, Path(path).parent)
        onnx.checker.check_model(model)
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    except (DecodeError, onnx.checker.ValidationError, *_DAMAGED) as error:
        raise FormatError(f"{os.fspath(path)} is not an ONNX model, or a damaged one: {error}") from None
    opset = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)
    if opset not in _OPSETS:
        raise NotSupportedError(f"{os.fspath(path)} is of opset {opset}: those from 13 to 22 can be loaded")
    missing = sorted({node.op_type for node in model.graph.node} - IMPORTERS.keys() - {"Constant"})
    if missing:
        raise NotSupportedError(f"{os.fspath(path)} has nodes that have no counterpart: {', '.join(missing)}")
    program = Program()
    maker = Maker(program, scope or global_scope(), opset)
    feeds = [_feed(maker, info) for info in model.graph.input if info.name not in constants]
    for name, array in constants.items():
        maker.values[name] = Value(array=array, scalar=array.ndim == 0)
    for node in model.graph.node:
        try:
            if not _computed(maker, node, model):
                IMPORTERS[node.op_type](Node(maker, node))
        except (EnforceNotMet, NotSupportedError):
            raise
        except _DAMAGED as error:
            raise FormatError(
                f"{os.fspath(path)}: node {node.op_type} that makes {list(node.output)} has inputs or attributes that "
                f"do not fit ({type(error).__name__}: {error})"
            ) from error
    return program, feeds, [_fetch(maker, info.name) for info in model.graph.output]


def _take_in_weights(model: onnx.ModelProto, folder: Path) -> None:
    """Read what a model keeps in other files, all of them in its folder. Raises FormatError for one elsewhere."""
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
        raise FormatError(f"input {info.name!r} has elements of type {kind.elem_type}, which there is not")
    if not info.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise NotSupportedError(f"input {info.name!r} is no tensor of a known number of dimensions")
    shape = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
    dtype = to_vartype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    var = maker.block.create_var(
        name=info.name, shape=shape or [1], dtype=dtype, is_data=True, need_check_feed=True
    )
    var.stop_gradient = True
    maker.values[info.name] = Value(var=var, scalar=not shape)
    return info.name


def _fetch(maker: Maker, name: str) -> Variable:
    """The variable of an output, under its own name if the model does not use that otherwise."""
    if name not in maker.values:
        raise FormatError(f"the model does not make its output {name!r}")
    reader = Node(maker, helper.make_node("Identity", [name], [name]))
    var = reader.var()
    if var.name == name or maker.block.has_var(name):
        return var
    out = maker.block.create_var(name=name)
    maker.block.append_op(type="assign", inputs={"X": var}, outputs={"Out": out})
    return out


def _computed(maker: Maker, node: onnx.NodeProto, model: onnx.ModelProto) -> bool:
    """Whether the results follow from constants alone; they are then known."""
    given = [maker.values.get(name) for name in node.input if name]
    if node.op_type == "Constant":
        pass
    elif not given or node.op_type in ("Shape", "Dropout") or node.op_type in _GROWING:
        return False
    elif any(value is None or not _array_of(value) for value in given):
        return False
    from onnx.reference import ReferenceEvaluator

    arrays = {name: maker.values[name].array for name in node.input if name}
    if sum(array.size for array in arrays.values() if array is not None) > _LARGEST:
        return False
    if node.op_type in ("ConstantOfShape", "Expand"):
        goal = arrays[node.input[-1]]
        if goal is not None and np.prod(goal.astype(float)) > _LARGEST:
            return False
    inputs = [helper.make_tensor_value_info(name, 1, None) for name in arrays]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in node.output if name]
    graph = helper.make_graph([node], "constants", inputs, outputs)
    alone = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    results = ReferenceEvaluator(alone).run(None, arrays)
    for name, result in zip((name for name in node.output if name), results, strict=True):
        array = np.asarray(result)
        maker.values[name] = Value(array=array, scalar=array.ndim == 0)
    return True


def _array_of(value: Value) -> bool:
    """Whether the numbers are known; a list of known sizes becomes an array."""
    if value.array is None and value.sizes is not None and all(isinstance(size, int) for size in value.sizes):
        array = np.array(value.sizes, "int64")
        value.array = array.reshape(()) if value.scalar else array
    return value.array is not None
