"""Conversion of quantization-aware graphs after training: parameters as integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base import unique_name
from ....base.dtypes import VarType
from ....executor import Scope
from ....framework.serialization.ir_graph import IrGraph, IrOpNode, IrVarNode
from . import nodes

_WITH_WEIGHTS = ("conv2d", "depthwise_conv2d", "mul", "matmul")


class QuantizationFreezePass:
    """Converts an inference graph of `QuantizationTransformPass` to compute with integers
    (`fluid.contrib.slim.quantization.QuantizationFreezePass`).

    Parameters in the scope become integers, stored as floats; activations are still quantized by operators; results of
    convolutions and products are scaled.

    Args:
        scope, place, weight_bits, activation_bits, weight_quantize_type: as for `QuantizationTransformPass`.
        quantizable_op_type: accepted and without effect.

    Raises AssertionError without scope or place.
    """

    def __init__(
        self,
        scope: Scope,
        place: Any,
        weight_bits: int = 8,
        activation_bits: int = 8,
        weight_quantize_type: str = "abs_max",
        quantizable_op_type: Sequence[str] | None = None,
    ) -> None:
        if scope is None or place is None:
            raise AssertionError("The scope and the place cannot be set None.")
        self._scope, self._place = scope, place
        self._weight_bits, self._activation_bits = weight_bits, activation_bits
        self._weight_quantize_type = weight_quantize_type

    def apply(self, graph: IrGraph) -> IrGraph:
        """Convert `graph`; returns it. Raises KeyError for a graph that is frozen already."""
        persistable = {node.name() for node in graph.all_persistable_nodes()}
        weights: dict[str, np.ndarray] = {}
        scales: dict[str, IrVarNode] = {}
        for op in graph.all_op_nodes():
            if op.name() not in nodes.QUANTIZING:
                continue
            (source,) = op.input("X")
            if source in persistable:
                weights[source] = self._freeze_weight(op, source)
                _bypass(graph, op, source, "Out")
            else:
                (scale,) = op.output("OutScale")
                scales[op.output("Out")[0]] = graph._find_node_by_name(op.outputs, scale)
        for op in graph.all_op_nodes():
            if op.name() in nodes.DEQUANTIZING:
                _bypass(graph, op, op.input("X")[0], "Out")
        for op in graph.all_op_nodes():
            if op.name() in _WITH_WEIGHTS and op._operator.attr("quantization_type") == "qat_with_weight":
                self._scale_result(graph, op, weights, scales)
        _remove_unused(graph)
        return graph

    def _freeze_weight(self, op: IrOpNode, name: str) -> np.ndarray:
        """Convert a parameter in the scope to integers; returns its scale, or those of its filters."""
        weight = nodes.read(self._scope, name)
        if self._weight_quantize_type == "abs_max" or op.name() == "fake_quantize_abs_max":
            scale = np.abs(weight).max()
        elif op.name() == "fake_channel_wise_quantize_abs_max":
            scale = np.abs(weight).max(axis=tuple(range(1, weight.ndim)))
        else:
            scale = nodes.read(self._scope, op.output("OutScale")[0]).reshape(-1)[0]
        steps = float(2 ** (self._weight_bits - 1) - 1)
        shaped = np.reshape(scale, (-1,) + (1,) * (weight.ndim - 1)) if np.ndim(scale) else scale
        frozen = np.round(weight / shaped * steps).astype(weight.dtype)
        self._scope.var(name).get_tensor().set(frozen, self._place)
        return np.asarray(scale)

    def _scale_result(
        self, graph: IrGraph, op: IrOpNode, weights: dict[str, np.ndarray], scales: dict[str, IrVarNode]
    ) -> None:
        """Append the dequantization of the result of `op`."""
        names = nodes.input_names(op)
        weight = next((weights[name] for name in names if name in weights), None)
        activation = next((scales[name] for name in names if name in scales), None)
        if weight is None or activation is None:
            raise KeyError(f"operator {op.name()} on {names} has no quantized parameter and input")
        (name,) = nodes.output_names(op)
        result = graph._find_node_by_name(op.outputs, name)
        scaled = graph.create_var_node(f"{name}.dequantized", result.type(), result.shape(), result.dtype())
        readers = result.outputs
        if weight.ndim:
            held = graph.create_persistable_node(
                unique_name.generate("channel_scale"), VarType.LOD_TENSOR, weight.shape, VarType.FP32
            )
            self._scope.var(held.name()).get_tensor().set(weight.astype("float32"), self._place)
            inputs: dict[str, Any] = {"X": result, "Scales": [held, activation]}
            attrs: dict[str, Any] = {"quant_bits": [self._weight_bits, self._activation_bits]}
            scaling = graph.create_op_node(
                "fake_channel_wise_dequantize_max_abs",
                {**attrs, "op_role": nodes.FORWARD},
                inputs,
                {"Out": scaled},
            )
            graph.link_to(held, scaling)
        else:
            steps = (2 ** (self._weight_bits - 1) - 1) * (2 ** (self._activation_bits - 1) - 1)
            attrs = {"max_range": float(steps / weight), "op_role": nodes.FORWARD}
            inputs = {"X": result, "Scale": activation}
            scaling = graph.create_op_node("fake_dequantize_max_abs", attrs, inputs, {"Out": scaled})
        graph.link_to(result, scaling)
        graph.link_to(activation, scaling)
        graph.link_to(scaling, scaled)
        for reader in readers:
            graph.update_input_link(result, scaled, reader)


class ConvertToInt8Pass:
    """Stores the parameters of a frozen graph as int8, under the name `NAME.int8`
    (`fluid.contrib.slim.quantization.ConvertToInt8Pass`), for programs that run elsewhere.

    Args:
        scope: where the parameters are.
        place: the place of the new ones.
        quantizable_op_type: accepted and without effect.
    """

    def __init__(self, scope: Scope, place: Any, quantizable_op_type: Sequence[str] | None = None) -> None:
        if scope is None or place is None:
            raise AssertionError("The scope and the place cannot be set None.")
        self._scope, self._place = scope, place

    def apply(self, graph: IrGraph) -> IrGraph:
        """Convert the parameters of `graph`; returns it."""
        persistable = {node.name() for node in graph.all_persistable_nodes()}
        converted: dict[str, IrVarNode] = {}
        for op in graph.all_op_nodes():
            if op.name() not in _WITH_WEIGHTS or op._operator.attr("quantization_type") != "qat_with_weight":
                continue
            for var in op.inputs:
                name = var.name()
                if name not in persistable or name not in nodes.input_names(op):
                    continue
                if name not in converted:
                    node = graph.create_persistable_node(
                        f"{name}.int8", var.type(), var.shape(), VarType.INT8
                    )
                    value = nodes.read(self._scope, name).astype(np.int8)
                    self._scope.var(node.name()).get_tensor().set(value, self._place)
                    converted[name] = node
                graph.update_input_link(var, converted[name], op)
        _remove_unused(graph)
        return graph


class TransformForMobilePass:
    """Renames quantizing and dequantizing operators to `quantize` and `dequantize`, as Paddle-Mobile does
    (`fluid.contrib.slim.quantization.TransformForMobilePass`).
    """

    def apply(self, graph: IrGraph) -> IrGraph:
        """Rename the operators of `graph`; returns it."""
        for op in graph.all_op_nodes():
            if op.name() in nodes.QUANTIZING:
                op.set_type("quantize")
            elif op.name() in nodes.DEQUANTIZING:
                op.set_type("dequantize")
        _remove_unused(graph)
        return graph


def _bypass(graph: IrGraph, op: IrOpNode, source: str, slot: str) -> None:
    """Remove `op`; the consumers of its result read `source` instead."""
    before = graph._find_node_by_name(op.inputs, source)
    after = graph._find_node_by_name(op.outputs, op.output(slot)[0])
    for reader in after.outputs:
        graph.update_input_link(after, before, reader)
    graph.safe_remove_nodes(op)


def _remove_unused(graph: IrGraph) -> None:
    """Remove variables that no operator reads or writes."""
    graph.safe_remove_nodes([node for node in graph.all_var_nodes() if not node.inputs and not node.outputs])
