"""A model learns from the features of another one (`fluid.contrib.slim.distillation`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....framework import Program, Variable, program_guard
from ... import layers
from .core import Strategy
from .graph import GraphWrapper

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["DistillationStrategy", "FSPDistiller", "L2Distiller", "SoftLabelDistiller"]


def _add(graph: GraphWrapper, name: str, loss: Variable) -> None:
    """Name a loss, and add it to the student's distillation loss."""
    before = graph.out_nodes.get("loss")
    total = loss if before is None else loss + graph.var(before)._var
    graph.out_nodes["loss"] = (total * 1.0 if before is None else total).name
    graph.out_nodes[name] = loss.name


class L2DistillerPass:
    """Adds the mean square of the difference of two features (`fluid.contrib.slim.distillation.distiller`)."""

    def __init__(
        self, student_feature_map: str, teacher_feature_map: str, distillation_loss_weight: float = 1
    ) -> None:
        self.student_feature_map = student_feature_map
        self.teacher_feature_map = teacher_feature_map
        self.distillation_loss_weight = distillation_loss_weight

    def apply(self, graph: GraphWrapper) -> GraphWrapper:
        """`graph` with the loss, `l2loss_STUDENT_TEACHER` among its out_nodes."""
        with program_guard(graph.program):
            student, teacher = (
                graph.var(name)._var for name in (self.student_feature_map, self.teacher_feature_map)
            )
            loss = layers.reduce_mean(layers.square(student - teacher)) * self.distillation_loss_weight
            _add(graph, f"l2loss_{self.student_feature_map}_{self.teacher_feature_map}", loss)
        return graph


class L2Distiller(L2DistillerPass):
    """The mean square of the difference of two features, times a weight (`fluid.contrib.slim.distillation`).

    `student_feature_map`, `teacher_feature_map`: names of variables of one shape.
    """

    def distiller_loss(self, graph: GraphWrapper) -> GraphWrapper:
        """`graph` with the loss, which is added to `out_nodes["loss"]`."""
        return self.apply(graph)


Pairs = Sequence[Sequence[str]]


class FSPDistillerPass:
    """Adds the mean squares of the differences of matrices of features, `fluid.layers.fsp_matrix`."""

    def __init__(self, s_pairs: Pairs, t_pairs: Pairs, distillation_loss_weight: float = 1) -> None:
        self.s_pairs = s_pairs
        self.t_pairs = t_pairs
        self.distillation_loss_weight = distillation_loss_weight

    def apply(self, graph: GraphWrapper) -> GraphWrapper:
        """`graph` with the loss, `fsp_distillation_loss` among its out_nodes."""
        with program_guard(graph.program):
            losses = []
            for student, teacher in zip(self.s_pairs, self.t_pairs, strict=True):
                ours, theirs = (
                    layers.fsp_matrix(*(graph.var(name)._var for name in pair)) for pair in (student, teacher)
                )
                losses.append(layers.reduce_mean(layers.square(ours - theirs)))
            loss = layers.sum(losses) * self.distillation_loss_weight
            _add(graph, "fsp_distillation_loss", loss)
        return graph


class FSPDistiller:
    """The flow between pairs of layers in student and teacher, by `fluid.layers.fsp_matrix`.

    `student_pairs`, `teacher_pairs`: pairs of names of variables, as many of both, whose matrices have one shape.
    Follows `fluid.contrib.slim.distillation.FSPDistiller`.
    """

    def __init__(
        self, student_pairs: Pairs, teacher_pairs: Pairs, distillation_loss_weight: float = 1
    ) -> None:
        self.student_pairs = student_pairs
        self.teacher_pairs = teacher_pairs
        self.distillation_loss_weight = distillation_loss_weight

    def distiller_loss(self, graph: GraphWrapper) -> GraphWrapper:
        """`graph` with the loss, which is added to `out_nodes["loss"]`."""
        return FSPDistillerPass(self.student_pairs, self.teacher_pairs, self.distillation_loss_weight).apply(
            graph
        )


class SoftLabelDistillerPass:
    """Adds the cross entropy of softened scores (`fluid.contrib.slim.distillation.distiller`)."""

    def __init__(
        self,
        student_feature_map: Any,
        teacher_feature_map: Any,
        student_temperature: float,
        teacher_temperature: float,
        distillation_loss_weight: float = 1,
    ) -> None:
        self.student_feature_map = student_feature_map
        self.teacher_feature_map = teacher_feature_map
        self.student_temperature = student_temperature
        self.teacher_temperature = teacher_temperature
        self.distillation_loss_weight = distillation_loss_weight

    def apply(self, graph: GraphWrapper) -> GraphWrapper:
        """`graph` with the loss, `soft_label_loss_STUDENT_TEACHER` among its out_nodes."""
        with program_guard(graph.program):
            student = layers.softmax(graph.var(self.student_feature_map)._var / self.student_temperature)
            teacher = layers.softmax(graph.var(self.teacher_feature_map)._var / self.teacher_temperature)
            teacher.stop_gradient = True
            loss = layers.reduce_mean(layers.cross_entropy(student, teacher, soft_label=True))
            loss = loss * self.distillation_loss_weight
            _add(graph, f"soft_label_loss_{self.student_feature_map}_{self.teacher_feature_map}", loss)
        return graph


class SoftLabelDistiller(SoftLabelDistillerPass):
    """The cross entropy of the student's scores with the teacher's, both divided by a temperature.

    `student_feature_map`, `teacher_feature_map`: names of scores before softmax.
    Follows `fluid.contrib.slim.distillation.SoftLabelDistiller`.
    """

    def __init__(
        self,
        student_feature_map: str | None = None,
        teacher_feature_map: str | None = None,
        student_temperature: float = 1.0,
        teacher_temperature: float = 1.0,
        distillation_loss_weight: float = 1,
    ) -> None:
        super().__init__(
            student_feature_map,
            teacher_feature_map,
            student_temperature,
            teacher_temperature,
            distillation_loss_weight,
        )

    def distiller_loss(self, graph: GraphWrapper) -> GraphWrapper:
        """`graph` with the loss, which is added to `out_nodes["loss"]`; ValueError if the features are not named."""
        if self.student_feature_map is None or self.teacher_feature_map is None:
            raise ValueError("student_feature_map and teacher_feature_map must name variables")
        return self.apply(graph)


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
