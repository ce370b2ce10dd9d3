"""Scales of operators' results: observed in training, stored as attributes for inference."""

from __future__ import annotations

from typing import Any

from ....base import unique_name
from ....base.dtypes import FLOATS
from ....executor import Scope
from ....framework.serialization.ir_graph import IrGraph
from . import nodes

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
        if not isinstance(graph, IrGraph):
            raise AssertionError(f"graph must be an IrGraph, got {type(graph).__name__}")
        self._is_test = graph.is_test()
        for op in graph.all_op_nodes():
            if op.name() not in WATCHED:
                continue
            for name in nodes.output_names(op):
                var = graph._find_node_by_name(op.outputs, name)
                if var.dtype() not in FLOATS:
                    continue
                state = nodes.State(graph, self._scope, self._place)
                inputs = {"X": var}
                outputs = {"Out": var, "OutScale": state.create(_scale_name(name), 1.0, dtype=var.dtype())}
                if not self._is_test:
                    for slot in ("State", "Accum"):
                        held = unique_name.generate(f"scale_{slot.lower()}@")
                        inputs[f"In{slot}"] = state.create(held, 1.0, dtype=var.dtype())
                        outputs[f"Out{slot}"] = state.next_value(inputs[f"In{slot}"])
                attrs = {"moving_rate": self._moving_rate, "is_test": self._is_test, "op_role": nodes.FORWARD}
                watching = graph.create_op_node("moving_average_abs_max_scale", attrs, inputs, outputs)
                for node in inputs.values():
                    graph.link_to(node, watching)
                for slot, node in outputs.items():
                    if slot != "Out":
                        graph.link_to(watching, node)
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
                for name in nodes.output_names(op):
                    if graph._find_node_by_name(op.outputs, name).dtype() in FLOATS:
                        scale = nodes.read(self._scope, _scale_name(name))
                        op.set_attr("out_threshold", float(scale.reshape(-1)[0]))
        return graph
