"""Helpers of the quantization passes: tables of slots, and initialised persistable variables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ....base.dtypes import VarType, to_numpy
from ....executor import Scope
from ....framework.operator import OpRole
from ....framework.serialization.ir_graph import IrGraph, IrOpNode, IrVarNode

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
