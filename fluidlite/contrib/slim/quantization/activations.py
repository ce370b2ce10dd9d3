"""`AddQuantDequantPass`: quantization-aware training of operators without parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base import unique_name
from ....executor import Scope
from ....framework.serialization.ir_graph import IrGraph, IrVarNode
from . import nodes


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
        for op_type in chosen:
            if op_type not in self._supported_quantizable_op_type:
                raise AssertionError(f"{op_type} is not supported for quantization.")
        self._quantizable_op_type = list(chosen)

    def apply(self, graph: IrGraph) -> IrGraph:
        """Transform `graph`; returns it."""
        if not isinstance(graph, IrGraph):
            raise AssertionError(f"graph must be an IrGraph, got {type(graph).__name__}")
        persistable = {node.name() for node in graph.all_persistable_nodes()}
        rounded: dict[str, IrVarNode] = {}
        ops = graph.all_op_nodes()
        for op in ops:
            if op.name() not in self._quantizable_op_type or nodes.skipped(op, self._skip_pattern):
                continue
            if op._operator.attr("quantization_type") or not nodes.all_computed(op, persistable):
                continue
            op.set_attr("quantization_type", "qat_without_weight")
            op.set_attr("activation_bits", self._quant_bits)
            for name in dict.fromkeys(nodes.input_names(op)):
                var = graph._find_node_by_name(op.inputs, name)
                if name.endswith(".quant_dequant"):
                    continue
                if name not in rounded:
                    rounded[name] = self._round(graph, var)
                graph.update_input_link(var, rounded[name], op)
        gradients = {f"{op_type}_grad" for op_type in self._quantizable_op_type}
        for op in ops:
            if op.name() in gradients:
                for var in op.inputs:
                    if var.name() in rounded and var.name() in op.input_arg_names():
                        graph.update_input_link(var, rounded[var.name()], op)
        return graph

    def _round(self, graph: IrGraph, var: IrVarNode) -> IrVarNode:
        state = nodes.State(graph, self._scope, self._place)
        rounded = graph.create_var_node(f"{var.name()}.quant_dequant", var.type(), var.shape(), var.dtype())
        scale = state.create(f"{var.name()}.quant_dequant.scale", 0.001, dtype=var.dtype())
        inputs, outputs = {"X": var, "InScale": scale}, {"Out": rounded, "OutScale": state.next_value(scale)}
        if not graph.is_test():
            for slot in ("State", "Accum"):
                name = unique_name.generate(f"quant_dequant.{slot.lower()}")
                held = state.create(name, 1.0, dtype=var.dtype())
                inputs[f"In{slot}"], outputs[f"Out{slot}"] = held, state.next_value(held)
        attrs = {
            "bit_length": self._quant_bits,
            "moving_rate": self._moving_rate,
            "is_test": graph.is_test(),
            "op_role": nodes.FORWARD,
        }
        op = graph.create_op_node("fake_quantize_dequantize_moving_average_abs_max", attrs, inputs, outputs)
        for node in inputs.values():
            graph.link_to(node, op)
        for node in outputs.values():
            graph.link_to(op, node)
        return rounded
