"""`fluid.contrib.slim.quantization`: training and inference with integers of few bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .....executor import scope_guard
from .....framework import IrGraph
from .... import core, io
from ..core import Strategy
from . import post_training_quantization
from .freezing import (
    AddQuantDequantPass,
    ConvertToInt8Pass,
    OutScaleForInferencePass,
    OutScaleForTrainingPass,
    QuantizationFreezePass,
    TransformForMobilePass,
)
from .post_training_quantization import PostTrainingQuantization, WeightQuantization
from .transform import QuantizationTransformPass

__all__ = [
    "AddQuantDequantPass",
    "ConvertToInt8Pass",
    "OutScaleForInferencePass",
    "OutScaleForTrainingPass",
    "PostTrainingQuantization",
    "QuantizationFreezePass",
    "QuantizationStrategy",
    "QuantizationTransformPass",
    "TransformForMobilePass",
    "WeightQuantization",
    "post_training_quantization",
    "quantization_pass",
    "quantization_strategy",
]


_BACKUP = "quantization_test_ir_graph_backup"


class QuantizationStrategy(Strategy):
    """Quantization-aware training from `start_epoch` on (`fluid.contrib.slim.quantization.QuantizationStrategy`).

    After the epoch `end_epoch` the program of evaluations is frozen, and models are written to folders, as `model` and
    `weights`: with integers stored as floats, with int8 weights, and with these for Paddle-Mobile.

    Args:
        float_model_save_path, int8_model_save_path, mobile_model_save_path: the folders; None for none.
        activation_bits, weight_bits, activation_quantize_type, weight_quantize_type: as of
            `QuantizationTransformPass`.
        save_in_nodes, save_out_nodes: the names of inputs and outputs of the models; by default those of evaluations.
    """

    def __init__(
        self,
        start_epoch: int = 0,
        end_epoch: int = 0,
        float_model_save_path: str | None = None,
        mobile_model_save_path: str | None = None,
        int8_model_save_path: str | None = None,
        activation_bits: int = 8,
        weight_bits: int = 8,
        activation_quantize_type: str = "abs_max",
        weight_quantize_type: str = "abs_max",
        save_in_nodes: Sequence[str] | None = None,
        save_out_nodes: Sequence[str] | None = None,
    ) -> None:
        super().__init__(start_epoch, end_epoch)
        self.float_model_save_path = float_model_save_path
        self.mobile_model_save_path = mobile_model_save_path
        self.int8_model_save_path = int8_model_save_path
        self.activation_bits, self.weight_bits = activation_bits, weight_bits
        self.activation_quantize_type = activation_quantize_type
        self.weight_quantize_type = weight_quantize_type
        self.save_in_nodes, self.save_out_nodes = save_in_nodes, save_out_nodes

    def restore_from_checkpoint(self, context: Any) -> None:
        """Transform the graphs if the earlier run has."""
        if self.start_epoch < context.epoch_id:
            self._modify_graph_for_quantization(context)

    def on_epoch_begin(self, context: Any) -> None:
        if context.epoch_id == self.start_epoch:
            self._modify_graph_for_quantization(context)

    def _modify_graph_for_quantization(self, context: Any) -> None:
        """Transform the graphs of training and evaluations by `QuantizationTransformPass`."""
        rounding = QuantizationTransformPass(
            scope=context.scope,
            place=context.place,
            weight_bits=self.weight_bits,
            activation_bits=self.activation_bits,
            activation_quantize_type=self.activation_quantize_type,
            weight_quantize_type=self.weight_quantize_type,
        )
        with scope_guard(context.scope):
            training, test = (
                rounding.apply(IrGraph(core.Graph(graph.program.desc), for_test=for_test))
                for graph, for_test in ((context.optimize_graph, False), (context.eval_graph, True))
            )
        context.optimize_graph.program = training.to_program()
        context.optimize_graph.compiled_graph = None
        context.eval_graph.program = test.to_program()
        context.put(_BACKUP, test)

    def on_epoch_end(self, context: Any) -> None:
        if context.epoch_id != self.end_epoch or context.get(_BACKUP) is None:
            return
        scope, place, graph = context.scope, context.place, context.eval_graph
        frozen = context.get(_BACKUP).clone()
        steps: tuple[tuple[Any, str | None], ...] = (
            (
                QuantizationFreezePass(
                    scope, place, self.weight_bits, self.activation_bits, self.weight_quantize_type
                ),
                self.float_model_save_path,
            ),
            (ConvertToInt8Pass(scope, place), self.int8_model_save_path),
            (TransformForMobilePass(), self.mobile_model_save_path),
        )
        feeds = list(self.save_in_nodes or graph.in_nodes.values())
        fetches = list(self.save_out_nodes or graph.out_nodes.values())
        with scope_guard(scope):
            for number, (step, path) in enumerate(steps):
                frozen = step.apply(frozen)
                program = frozen.to_program()
                if number == 0:
                    graph.program = program
                if path:
                    io.save_inference_model(
                        path,
                        feeds,
                        [program.global_block().var(name) for name in fetches],
                        context.executor.exe,
                        main_program=program.clone(),
                        model_filename="model",
                        params_filename="weights",
                    )
