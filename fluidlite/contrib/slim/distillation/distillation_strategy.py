"""`DistillationStrategy`: for some epochs the model learns from its teachers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base import missing
from ....framework import Program, program_guard
from ..core.strategy import Strategy

__all__ = ["DistillationStrategy"]


class DistillationStrategy(Strategy):
    """From `start_epoch` to `end_epoch` the losses of `distillers` are minimized (`fluid.contrib.slim.distillation`).

    The teachers' programs are merged into the model's; their parameters are not trained.
    """

    def __init__(
        self, distillers: Sequence[Any] | None = None, start_epoch: int = 0, end_epoch: int = 0
    ) -> None:
        super().__init__(start_epoch, end_epoch)
        self.distillers = distillers

    def restore_from_checkpoint(self, context: Any) -> None:
        if self.start_epoch < context.epoch_id < self.end_epoch:
            self._create_distillation_graph(context)

    def on_epoch_begin(self, context: Any) -> None:
        if self.start_epoch == context.epoch_id:
            self._create_distillation_graph(context)

    def _create_distillation_graph(self, context: Any) -> None:
        """Replace `context.optimize_graph` by one with teachers and their losses; the old one is kept."""
        teachers = context.get("teachers") or context.teacher_graphs or []
        graph = context.train_graph.clone()
        for teacher in teachers:
            for var in teacher.program.list_vars():
                var.stop_gradient = True
            graph.merge(teacher)
        cost = graph.out_nodes.get("cost")
        if cost is not None:
            graph.out_nodes["loss"] = cost
        for distiller in self.distillers or ():
            graph = distiller.distiller_loss(graph)
        context.put("distillation_backup_optimize_graph", context.optimize_graph)
        optimizer = context.distiller_optimizer or context.train_optimizer
        if optimizer is None:
            raise ValueError("distillation needs a distiller_optimizer")
        names = [name for teacher in teachers for name in teacher.persistables]
        with program_guard(graph.program, Program()):
            context.optimize_graph = graph.get_optimize_graph(
                optimizer, context.place, context.scope, no_grad_var_names=names
            )

    def on_epoch_end(self, context: Any) -> None:
        if context.epoch_id == self.end_epoch - 1:
            context.optimize_graph = context.get("distillation_backup_optimize_graph")
            context.put("distillation_backup_optimize_graph", None)


__getattr__ = missing.reporter(__name__)
