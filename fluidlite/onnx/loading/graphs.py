"""Following a graph: its constants, and its nodes one after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...base.errors import EnforceNotMet, FormatError, NotSupportedError
from .values import IMPORTERS, LARGEST, Maker, Node, Value, inner_graphs, kind_of

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
