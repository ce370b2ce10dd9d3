"""Passes after quantization-aware training: parameters as integers, scales of results, operators without parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....base import unique_name
from .....base.dtypes import FLOATS, VarType
from .....executor import Scope
from .....framework.serialization.ir_graph import IrGraph, IrOpNode, IrVarNode
from . import transform

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
            if op.name() not in transform.QUANTIZING:
                continue
            (source,) = op.input("X")
            if source in persistable:
                weights[source] = self._freeze_weight(op, source)
                _bypass(graph, op, source, "Out")
            else:
                (scale,) = op.output("OutScale")
                scales[op.output("Out")[0]] = graph._find_node_by_name(op.outputs, scale)
        for op in graph.all_op_nodes():
            if op.name() in transform.DEQUANTIZING:
                _bypass(graph, op, op.input("X")[0], "Out")
        for op in graph.all_op_nodes():
            if op.name() in _WITH_WEIGHTS and op._operator.attr("quantization_type") == "qat_with_weight":
                self._scale_result(graph, op, weights, scales)
        _remove_unused(graph)
        return graph

    def _freeze_weight(self, op: IrOpNode, name: str) -> np.ndarray:
        """Convert a parameter in the scope to integers; returns its scale, or those of its filters."""
        weight = transform.read(self._scope, name)
        if self._weight_quantize_type == "abs_max" or op.name() == "fake_quantize_abs_max":
            scale = np.abs(weight).max()
        elif op.name() == "fake_channel_wise_quantize_abs_max":
            scale = np.abs(weight).max(axis=tuple(range(1, weight.ndim)))
        else:
            scale = transform.read(self._scope, op.output("OutScale")[0]).reshape(-1)[0]
        steps = float(2 ** (self._weight_bits - 1) - 1)
        shaped = np.reshape(scale, (-1,) + (1,) * (weight.ndim - 1)) if np.ndim(scale) else scale
        frozen = np.round(weight / shaped * steps).astype(weight.dtype)
        self._scope.var(name).get_tensor().set(frozen, self._place)
        return np.asarray(scale)

    def _scale_result(
        self, graph: IrGraph, op: IrOpNode, weights: dict[str, np.ndarray], scales: dict[str, IrVarNode]
    ) -> None:
        """Append the dequantization of the result of `op`."""
        names = transform.input_names(op)
        weight = next((weights[name] for name in names if name in weights), None)
        activation = next((scales[name] for name in names if name in scales), None)
        if weight is None or activation is None:
            raise KeyError(f"operator {op.name()} on {names} has no quantized parameter and input")
        (name,) = transform.output_names(op)
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
            op_type = "fake_channel_wise_dequantize_max_abs"
        else:
            steps = (2 ** (self._weight_bits - 1) - 1) * (2 ** (self._activation_bits - 1) - 1)
            inputs, attrs = {"X": result, "Scale": activation}, {"max_range": float(steps / weight)}
            op_type = "fake_dequantize_max_abs"
        transform.append_op(graph, op_type, attrs, inputs, {"Out": scaled})
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
                if name not in persistable or name not in transform.input_names(op):
                    continue
                if name not in converted:
                    node = graph.create_persistable_node(
                        f"{name}.int8", var.type(), var.shape(), VarType.INT8
                    )
                    value = transform.read(self._scope, name).astype(np.int8)
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
            if op.name() in transform.QUANTIZING:
                op.set_type("quantize")
            elif op.name() in transform.DEQUANTIZING:
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


class AddQuantDequantPass:
    """Quantizes and dequantizes the inputs of operators without parameters, by moving averages of their magnitudes
    (`fluid.contrib.slim.quantization.AddQuantDequantPass`).

    Args:
        scope, place, moving_rate, skip_pattern: see `QuantizationTransformPass`.
        quant_bits: the bits of the integers.
        quantizable_op_type: the types of operators.
        is_full_quantized: True for all supported types.

    Raises AssertionError for operators of another type.
    """

    _activation_type = ("relu", "relu6", "leaky_relu", "tanh", "swish")
    _supported_quantizable_op_type = (
        "pool2d elementwise_add concat softmax argmax transpose equal gather greater_equal greater_than less_equal "
        "less_than mean not_equal reshape reshape2 bilinear_interp nearest_interp trilinear_interp slice squeeze "
        "elementwise_sub mul matmul relu relu6 leaky_relu tanh swish"
    ).split()

    def __init__(
        self,
        scope: Scope | None = None,
        place: Any = None,
        moving_rate: float = 0.9,
        quant_bits: int = 8,
        skip_pattern: str | Sequence[str] = ("skip_quant",),
        quantizable_op_type: Sequence[str] = ("elementwise_add", "pool2d"),
        is_full_quantized: bool = False,
    ) -> None:
        self._scope, self._place = scope, place
        self._moving_rate, self._quant_bits = moving_rate, quant_bits
        self._skip_pattern = skip_pattern
        chosen = self._supported_quantizable_op_type if is_full_quantized else quantizable_op_type
        transform.check_types(chosen, self._supported_quantizable_op_type)
        self._quantizable_op_type = list(chosen)

    def apply(self, graph: IrGraph) -> IrGraph:
        """Transform `graph`; returns it."""
        transform.check_graph(graph)
        persistable = {node.name() for node in graph.all_persistable_nodes()}
        rounded: dict[str, IrVarNode] = {}
        ops = graph.all_op_nodes()
        for op in ops:
            if op.name() not in self._quantizable_op_type or transform.skipped(op, self._skip_pattern):
                continue
            if op._operator.attr("quantization_type") or not transform.all_computed(op, persistable):
                continue
            op.set_attr("quantization_type", "qat_without_weight")
            op.set_attr("activation_bits", self._quant_bits)
            for name in dict.fromkeys(transform.input_names(op)):
                var = graph._find_node_by_name(op.inputs, name)
                if name.endswith(".quant_dequant"):
                    continue
                if name not in rounded:
                    rounded[name] = self._round(graph, var)
                graph.update_input_link(var, rounded[name], op)
        transform.relink_gradients(graph, ops, self._quantizable_op_type, rounded)
        return graph

    def _round(self, graph: IrGraph, var: IrVarNode) -> IrVarNode:
        state = transform.State(graph, self._scope, self._place)
        rounded = graph.create_var_node(f"{var.name()}.quant_dequant", var.type(), var.shape(), var.dtype())
        scale = state.create(f"{var.name()}.quant_dequant.scale", 0.001, dtype=var.dtype())
        inputs, outputs = {"X": var, "InScale": scale}, {"Out": rounded, "OutScale": state.next_value(scale)}
        if not graph.is_test():
            state.moving_average("quant_dequant.{}", var.dtype(), inputs, outputs)
        attrs = {"bit_length": self._quant_bits, "moving_rate": self._moving_rate, "is_test": graph.is_test()}
        op_type = "fake_quantize_dequantize_moving_average_abs_max"
        transform.append_op(graph, op_type, attrs, inputs, outputs)
        return rounded


WATCHED = """
    conv2d depthwise_conv2d mul matmul relu leaky_relu relu6 sigmoid tanh prelu swish softmax batch_norm
    elementwise_add pool2d reshape2 transpose2 concat elementwise_mul scale
""".split()
"""Types of operators whose results are observed."""


def _scale_name(name: str) -> str:
    return f"{name}@scale"


class OutScaleForTrainingPass:
    """Adds moving averages of the largest magnitudes of results, variables `NAME@scale`
    (`fluid.contrib.slim.quantization.OutScaleForTrainingPass`).

    Args:
        scope, place, moving_rate: see `QuantizationTransformPass`.
    """

    def __init__(self, scope: Scope | None = None, place: Any = None, moving_rate: float = 0.9) -> None:
        self._scope, self._place, self._moving_rate = scope, place, moving_rate
        self._is_test: bool | None = None

    def apply(self, graph: IrGraph) -> IrGraph:
        """Transform `graph`; returns it."""
        transform.check_graph(graph)
        self._is_test = graph.is_test()
        for op in graph.all_op_nodes():
            if op.name() not in WATCHED:
                continue
            for name in transform.output_names(op):
                var = graph._find_node_by_name(op.outputs, name)
                if var.dtype() not in FLOATS:
                    continue
                state = transform.State(graph, self._scope, self._place)
                inputs = {"X": var}
                outputs = {"Out": var, "OutScale": state.create(_scale_name(name), 1.0, dtype=var.dtype())}
                if not self._is_test:
                    state.moving_average("scale_{}@", var.dtype(), inputs, outputs)
                attrs = {"moving_rate": self._moving_rate, "is_test": self._is_test}
                transform.append_op(graph, "moving_average_abs_max_scale", attrs, inputs, outputs)
        return graph


class OutScaleForInferencePass:
    """Stores the scales of `OutScaleForTrainingPass` in attributes `out_threshold`
    (`fluid.contrib.slim.quantization.OutScaleForInferencePass`).

    Args:
        scope: where the variables `NAME@scale` are.
    """

    def __init__(self, scope: Scope | None = None) -> None:
        self._scope = scope

    def apply(self, graph: IrGraph) -> IrGraph:
        """Set the attributes; returns `graph`. Raises ValueError for a result without a scale."""
        if not isinstance(graph, IrGraph) or self._scope is None:
            raise AssertionError("OutScaleForInferencePass needs an IrGraph and a scope")
        for op in graph.all_op_nodes():
            if op.name() in WATCHED:
                for name in transform.output_names(op):
                    if graph._find_node_by_name(op.outputs, name).dtype() in FLOATS:
                        scale = transform.read(self._scope, _scale_name(name))
                        op.set_attr("out_threshold", float(scale.reshape(-1)[0]))
        return graph
