"""`QuantizationTransformPass`: quantization-aware training of convolutions and products in graphs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from .....base import unique_name
from .....base.dtypes import VarType, to_numpy
from .....base.errors import NotSupportedError
from .....executor import Scope
from .....framework import OpRole
from .....framework.serialization.ir_graph import IrGraph, IrOpNode, IrVarNode

_ONE = """
    argmax batch_norm bilinear_interp concat dropout gather leaky_relu mean nearest_interp pool2d prelu relu relu6
    reshape reshape2 scale sigmoid softmax squeeze swish tanh transpose transpose2 trilinear_interp
"""
_TWO = """
    elementwise_add elementwise_mul elementwise_sub equal greater_equal greater_than less_equal less_than matmul mul
    not_equal
"""
_CONVOLUTIONS = "conv2d depthwise_conv2d"

INPUTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ONE.split(), ("X",)),
    **dict.fromkeys(_TWO.split(), ("X", "Y")),
    **dict.fromkeys(_CONVOLUTIONS.split(), ("Input", "Filter")),
    "slice": ("Input",),
}
"""The slots of quantized inputs, by operator type."""

OUTPUTS: dict[str, str] = {
    **dict.fromkeys(INPUTS, "Out"),
    **dict.fromkeys(_CONVOLUTIONS.split(), "Output"),
    "batch_norm": "Y",
}
"""The slot of the output, by operator type."""

FORWARD = int(OpRole.Forward)
QUANTIZING = """
    fake_quantize_abs_max fake_quantize_range_abs_max fake_quantize_moving_average_abs_max
    fake_channel_wise_quantize_abs_max
""".split()
DEQUANTIZING = "fake_dequantize_max_abs fake_channel_wise_dequantize_max_abs".split()


def input_names(op: IrOpNode) -> list[str]:
    """The quantized inputs of an operator."""
    return [name for slot in INPUTS[op.name()] for name in op.input(slot)]


def output_names(op: IrOpNode) -> list[str]:
    """The outputs of an operator."""
    return op.output(OUTPUTS[op.name()])


def skipped(op: IrOpNode, patterns: Any) -> bool:
    """True if an operator is excluded: by its name scope, or its attribute `skip_quant`."""
    listed = [patterns] if isinstance(patterns, str) else list(patterns or ())
    scope = op._operator.attr("op_namescope") or ""
    return bool(op._operator.attr("skip_quant")) or any(pattern in scope for pattern in listed)


def all_computed(op: IrOpNode, persistable: Collection[str]) -> bool:
    """True if no quantized input of an operator is persistable."""
    return free_of(input_names(op), persistable)


def free_of(names: Sequence[str], persistable: Collection[str]) -> bool:
    return not any(name in persistable for name in names)


def check_graph(graph: Any) -> None:
    """Raise AssertionError unless a pass is given an IrGraph."""
    if not isinstance(graph, IrGraph):
        raise AssertionError(f"graph must be an IrGraph, got {type(graph).__name__}")


def check_types(op_types: Sequence[str], supported: Collection[str]) -> None:
    """Raise AssertionError for operators that are not supported."""
    for op_type in op_types:
        if op_type not in supported:
            raise AssertionError(f"{op_type} is not supported for quantization.")


def append_op(
    graph: IrGraph, op_type: str, attrs: dict[str, Any], inputs: dict[str, Any], outputs: dict[str, IrVarNode]
) -> None:
    """Append an operator of the forward pass with its links; an output that is an input, too, has none."""
    op = graph.create_op_node(op_type, {**attrs, "op_role": FORWARD}, inputs, outputs)
    read = [node for slot in inputs.values() for node in (slot if isinstance(slot, list) else [slot])]
    for node in read:
        graph.link_to(node, op)
    for node in outputs.values():
        if all(node is not other for other in read):
            graph.link_to(op, node)


def relink_gradients(
    graph: IrGraph, ops: Sequence[IrOpNode], op_types: Sequence[str], rounded: dict[str, IrVarNode]
) -> None:
    """Let the gradients of operators of these types read rounded variables, as the operators do."""
    gradients = {f"{op_type}_grad" for op_type in op_types}
    for op in ops:
        if op.name() in gradients:
            for var in op.inputs:
                if var.name() in rounded and var.name() in op.input_arg_names():
                    graph.update_input_link(var, rounded[var.name()], op)


class State:
    """Creates persistable variables, with their initial values in a scope."""

    def __init__(self, graph: IrGraph, scope: Scope | None, place: Any) -> None:
        if scope is None or place is None:
            raise AssertionError("the scope and the place must be given, for the initial values of variables")
        self.graph, self._scope, self._place = graph, scope, place

    def create(
        self, name: str, value: float, shape: Sequence[int] = (1,), dtype: VarType = VarType.FP32
    ) -> IrVarNode:
        node = self.graph.create_persistable_node(name, VarType.LOD_TENSOR, shape, dtype)
        self.fill(node, np.full(tuple(shape), value, to_numpy(dtype)))
        return node

    def fill(self, node: IrVarNode, value: np.ndarray) -> None:
        self._scope.var(node.name()).get_tensor().set(value, self._place)

    def moving_average(
        self, name: str, dtype: VarType, inputs: dict[str, IrVarNode], outputs: dict[str, IrVarNode]
    ) -> None:
        """Add the variables of a moving average to an operator; `name`: theirs, with `{}` for the kind."""
        for slot in ("State", "Accum"):
            held = self.create(unique_name.generate(name.format(slot.lower())), 1.0, dtype=dtype)
            inputs[f"In{slot}"], outputs[f"Out{slot}"] = held, self.next_value(held)

    def next_value(self, node: IrVarNode) -> IrVarNode:
        """A node for the next value of a variable (SSA)."""
        shown = node.var()
        assert shown is not None
        return self.graph.create_var_node_from_desc(shown)


def read(scope: Scope, name: str) -> np.ndarray:
    """The value of a variable of the scope. Raises ValueError if it is missing."""
    holder = scope.find_var(name)
    if holder is None:
        raise ValueError(
            f"variable {name!r} is not in the scope: run the startup program, train, then freeze"
        )
    return np.array(holder.get_tensor())


_KINDS = ("abs_max", "channel_wise_abs_max", "range_abs_max", "moving_average_abs_max")
_STEP = "@STEP_COUNTER@"


class QuantizationTransformPass:
    """Quantizes and dequantizes the inputs of convolutions and products
    (`fluid.contrib.slim.quantization.QuantizationTransformPass`; Jacob et al. 2018).

    Inputs are rounded to integers times a scale; the gradient of rounding is the identity.

    Args:
        scope: the scope of parameters, in which scales are initialised.
        place: the place of the scales.
        weight_bits, activation_bits: the bits of parameters, and of other inputs.
        activation_quantize_type: the scale: 'abs_max' is the largest magnitude, 'range_abs_max' the largest of the last
            `window_size` steps, 'moving_average_abs_max' a moving average with `moving_rate`.
        weight_quantize_type: one of these, or 'channel_wise_abs_max' for one scale of each filter.
        skip_pattern: operators whose name scope contains this text, or one of these, are excluded.
        quantizable_op_type: any of conv2d, depthwise_conv2d, mul and matmul. Products without parameters are left to
            `AddQuantDequantPass`.
        weight_quantize_func, act_quantize_func, weight_preprocess_func, act_preprocess_func: user functions, which are
            not supported; `optimizer_func` and `executor` belong to them.

    Raises ValueError for an unknown kind of scale, AssertionError for other types of operators.
    """

    _supported_quantizable_op_type = ("conv2d", "depthwise_conv2d", "mul", "matmul")

    def __init__(
        self,
        scope: Scope | None = None,
        place: Any = None,
        weight_bits: int = 8,
        activation_bits: int = 8,
        activation_quantize_type: str = "abs_max",
        weight_quantize_type: str = "abs_max",
        window_size: int = 10000,
        moving_rate: float = 0.9,
        skip_pattern: str | Sequence[str] = ("skip_quant",),
        quantizable_op_type: Sequence[str] = ("conv2d", "depthwise_conv2d", "mul"),
        weight_quantize_func: Any = None,
        act_quantize_func: Any = None,
        weight_preprocess_func: Any = None,
        act_preprocess_func: Any = None,
        optimizer_func: Any = None,
        executor: Any = None,
    ) -> None:
        if activation_quantize_type == "channel_wise_abs_max":
            raise AssertionError("The activation quantization type does not support 'channel_wise_abs_max'.")
        for what, kind in (("activation", activation_quantize_type), ("weight", weight_quantize_type)):
            if kind not in _KINDS:
                raise ValueError(
                    f"Unknown {what}_quantize_type : '{kind}'. It can only be one of {', '.join(_KINDS)}"
                )
        check_types(quantizable_op_type, self._supported_quantizable_op_type)
        if any((weight_quantize_func, act_quantize_func, weight_preprocess_func, act_preprocess_func)):
            raise NotSupportedError(
                "QuantizationTransformPass supports no functions that quantize or preprocess variables: leave them out"
            )
        self._scope, self._place = scope, place
        self._weight_bits, self._activation_bits = weight_bits, activation_bits
        self._activation_quantize_type = activation_quantize_type
        self._weight_quantize_type = weight_quantize_type
        self._window_size, self._moving_rate = window_size, moving_rate
        self._skip_pattern = skip_pattern
        self._quantizable_ops = list(quantizable_op_type)

    def apply(self, graph: IrGraph) -> IrGraph:
        """Transform `graph`; returns it."""
        check_graph(graph)
        self._graph, self._is_test = graph, graph.is_test()
        self._step: IrVarNode | None = None
        self._rounded: dict[str, IrVarNode] = {}
        self._persistables = {node.name() for node in graph.all_persistable_nodes()}
        ops = graph.all_op_nodes()
        for op in ops:
            if op.name() in self._quantizable_ops and not self._excluded(op):
                self._forward(op)
        relink_gradients(graph, ops, self._quantizable_ops, self._rounded)
        return graph

    def _excluded(self, op: IrOpNode) -> bool:
        if skipped(op, self._skip_pattern):
            op.set_attr("skip_quant", True)
            return True
        return op.name() in ("mul", "matmul") and all_computed(op, self._persistables)

    def _forward(self, op: IrOpNode) -> None:
        op.set_attr("quantization_type", "qat_with_weight")
        for var in op.inputs:
            if var.name() not in op.input_arg_names():
                continue
            if var.name() not in self._rounded:
                self._rounded[var.name()] = self._round(var, op)
            self._graph.update_input_link(var, self._rounded[var.name()], op)

    def _round(self, var: IrVarNode, op: IrOpNode) -> IrVarNode:
        """The node of `var` after quantization and dequantization."""
        weight = var.name() in self._persistables
        bits = self._weight_bits if weight else self._activation_bits
        kind = self._weight_quantize_type if weight else self._activation_quantize_type
        if kind == "channel_wise_abs_max" and op.name() not in ("conv2d", "depthwise_conv2d"):
            kind = "abs_max"
        quantized = self._like(var, f"{var.name()}.quantized")
        of_step = kind in ("abs_max", "channel_wise_abs_max")
        scale = (self._by_maximum if of_step else self._by_state)(kind, var, quantized, bits)
        rounded = self._like(var, f"{quantized.name()}.dequantized")
        attrs: dict[str, Any] = {"max_range": float(2 ** (bits - 1) - 1)}
        op_type, slot = "fake_dequantize_max_abs", "Scale"
        if kind == "channel_wise_abs_max":
            attrs, op_type, slot = {"quant_bits": [bits]}, "fake_channel_wise_dequantize_max_abs", "Scales"
        append_op(self._graph, op_type, attrs, {"X": quantized, slot: scale}, {"Out": rounded})
        return rounded

    def _like(self, var: IrVarNode, name: str) -> IrVarNode:
        return self._graph.create_var_node(name, var.type(), var.shape(), var.dtype())

    def _by_maximum(self, kind: str, var: IrVarNode, quantized: IrVarNode, bits: int) -> IrVarNode:
        """Quantize by the largest magnitude, of all elements or of each filter; returns the scale."""
        shape = [1] if kind == "abs_max" else var.shape()[:1]
        scale = self._graph.create_var_node(f"{var.name()}.scale", var.type(), shape, var.dtype())
        op_type = f"fake_{kind.removesuffix('abs_max')}quantize_abs_max"
        outputs = {"Out": quantized, "OutScale": scale}
        append_op(self._graph, op_type, {"bit_length": bits}, {"X": var}, outputs)
        return scale

    def _by_state(self, kind: str, var: IrVarNode, quantized: IrVarNode, bits: int) -> IrVarNode:
        """Quantize by the largest magnitude of several steps, or a moving average; returns the scale."""
        state = State(self._graph, self._scope, self._place)
        scale = state.create(f"{var.name()}.scale", 0.001, dtype=var.dtype())
        inputs = {"X": var, "InScale": scale}
        outputs = {"Out": quantized, "OutScale": state.next_value(scale)}
        attrs: dict[str, Any]
        if kind == "range_abs_max":
            attrs = {"window_size": self._window_size, "bit_length": bits}
            if not self._is_test:
                window = unique_name.generate("scales")
                outputs["OutScales"] = state.create(window, 0.0, [self._window_size], var.dtype())
                inputs["Iter"] = self._steps(state)
        else:
            attrs = {"bit_length": bits, "moving_rate": self._moving_rate}
            if not self._is_test:
                state.moving_average("{}", var.dtype(), inputs, outputs)
        append_op(self._graph, f"fake_quantize_{kind}", {**attrs, "is_test": self._is_test}, inputs, outputs)
        return outputs["OutScale"]

    def _steps(self, state: State) -> IrVarNode:
        """The number of steps, including the current one."""
        if self._step is None:
            counter = state.create(_STEP, 0, dtype=VarType.INT64)
            self._step = state.next_value(counter)
            append_op(self._graph, "increment", {"step": 1.0}, {"X": counter}, {"Out": self._step})
        return self._step
