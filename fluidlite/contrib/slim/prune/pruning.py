"""Strategies that prune filters of convolutions while a model is trained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....executor import Scope
from ..core.strategy import Strategy
from ..graph import GraphWrapper, VarWrapper
from .channels import Channels

__all__ = ["PruneStrategy", "UniformPruneStrategy"]


class PruneStrategy(Strategy):
    """Base of strategies that prune (`fluid.contrib.slim.prune.PruneStrategy`).

    Args:
        pruner: a `StructurePruner`, which selects the entries to prune.
        start_epoch, end_epoch: the epochs between which it works; pruning is done before `start_epoch`.
        target_ratio: the fraction of the operations (`GraphWrapper.flops`) to save.
        metric_name: the result of evaluations that strategies compare.
        pruned_params: a regular expression for the names of the parameters to prune.
    """

    def __init__(
        self,
        pruner: Any = None,
        start_epoch: int = 0,
        end_epoch: int = 0,
        target_ratio: float = 0.5,
        metric_name: str | None = None,
        pruned_params: str = "conv.*_weights",
    ) -> None:
        super().__init__(start_epoch, end_epoch)
        self.pruner = pruner
        self.target_ratio = target_ratio
        self.metric_name = metric_name
        self.pruned_params = pruned_params

    def _prune_parameters(
        self,
        graph: GraphWrapper,
        scope: Scope,
        params: Sequence[str],
        ratios: Sequence[float],
        place: Any,
        lazy: bool = False,
        only_graph: bool = False,
        param_backup: dict[str, np.ndarray] | None = None,
        param_shape_backup: dict[str, tuple[int, ...]] | None = None,
    ) -> None:
        """Prune a fraction of the entries of each parameter, all that depend on them, and their accumulators.

        With `lazy` entries are set to 0 instead; with `only_graph` only shapes in the graph change. The dictionaries
        get the old values and shapes. A parameter that was pruned as dependent of an earlier one is skipped. Raises
        ValueError if an operator does not allow it; then nothing is changed.
        """
        channels = Channels(graph)
        for name, ratio in zip(params, ratios, strict=True):
            axis = self.pruner.pruning_axis[name if name in self.pruner.pruning_axis else "*"]
            if channels.out[name, axis]:
                continue
            value = np.array(_tensor(scope, name))
            for at in range(value.ndim):
                value = np.delete(value, sorted(channels.out[name, at]), at)
            channels.take_out(name, axis, self.pruner.cal_pruned_idx(name, value, ratio).tolist())
        for (name, axis), entries in list(channels.out.items()):
            var = graph.var(name)
            if not entries or not graph.is_persistable(var):
                continue
            for held in (var, *graph.accumulators(var)):
                self._take_out(
                    held,
                    scope,
                    axis,
                    sorted(entries),
                    place,
                    lazy,
                    only_graph,
                    param_backup,
                    param_shape_backup,
                )
        if not lazy:
            _update(graph)

    def _take_out(
        self,
        var: VarWrapper,
        scope: Scope,
        axis: int,
        entries: list[int],
        place: Any,
        lazy: bool,
        only_graph: bool,
        param_backup: dict[str, np.ndarray] | None,
        param_shape_backup: dict[str, tuple[int, ...]] | None,
    ) -> None:
        tensor = _tensor(scope, var.name())
        value = np.array(tensor)
        if param_backup is not None:
            param_backup.setdefault(var.name(), value.copy())
        if param_shape_backup is not None:
            param_shape_backup.setdefault(var.name(), var.shape())
        if not only_graph:
            tensor.set(self.pruner.prune_tensor(value, entries, axis, lazy), place)
        if not lazy:
            shape = list(var.shape())
            shape[axis] -= len(entries)
            var.set_shape(shape)

    def _prune_graph(self, graph: GraphWrapper, target_graph: GraphWrapper) -> None:
        """Set the shapes of the parameters of `graph` to those of `target_graph`."""
        for param in target_graph.all_parameters():
            if param.name() in graph.program.global_block().vars:
                graph.var(param.name()).set_shape(param.shape())
        _update(graph)

    def _params(self, graph: GraphWrapper) -> list[str]:
        """The names of the parameters to prune; ValueError if there are none."""
        names = [
            param.name() for param in graph.all_parameters() if re.match(self.pruned_params, param.name())
        ]
        if not names:
            raise ValueError(f"no parameter's name matches pruned_params {self.pruned_params!r}")
        return names

    def _prune(
        self,
        context: Any,
        params: Sequence[str],
        ratios: Sequence[float],
        backup: dict[str, np.ndarray] | None = None,
        shapes: dict[str, tuple[int, ...]] | None = None,
    ) -> None:
        """Prune values in the scope and all graphs of the context; the dictionaries get the old values and shapes."""
        graph, *others = self._graphs(context)
        self._prune_parameters(
            graph,
            context.scope,
            params,
            ratios,
            context.place,
            param_backup=backup,
            param_shape_backup=shapes,
        )
        for other in others:
            self._prune_graph(other, graph)
        if graph.compiled_graph is not None:
            graph.compile(mem_opt=True)

    def _graphs(self, context: Any) -> list[GraphWrapper]:
        """The graphs of the context, first the one that is trained."""
        graphs: list[GraphWrapper] = []
        for graph in (context.optimize_graph, context.train_graph, context.eval_graph):
            if graph is not None and graph not in graphs:
                graphs.append(graph)
        return graphs

    def _saved(self, context: Any, params: Sequence[str], ratios: Sequence[float]) -> float:
        """The fraction of the evaluation's operations that pruning would save."""
        graph = context.eval_graph
        pruned = graph.clone()
        self._prune_parameters(pruned, context.scope, params, ratios, context.place, only_graph=True)
        return float(1 - pruned.flops() / graph.flops())

    def _uniform_ratio(self, context: Any, params: Sequence[str], target: float) -> float:
        """The ratio to prune of each parameter to save the fraction `target` of the operations, by bisection."""
        low, high = 0.0, 1.0
        tried = []
        for _ in range(20):
            ratio = (low + high) / 2
            saved = self._saved(context, params, [ratio] * len(params))
            tried.append((abs(saved - target), ratio))
            low, high = (ratio, high) if saved < target else (low, ratio)
        return min(tried)[1]

    def restore_from_checkpoint(self, context: Any) -> None:
        """Set the shapes of the graphs to those of the loaded values."""
        if context.epoch_id > self.start_epoch:
            for graph in self._graphs(context):
                graph.update_param_shape(context.scope)
                _update(graph)


class UniformPruneStrategy(PruneStrategy):
    """Prunes the same ratio of all parameters, so that `target_ratio` of the operations are saved
    (`fluid.contrib.slim.prune.UniformPruneStrategy`).

    Before `start_epoch` the graphs of the context and the values in its scope are pruned; the part is found by
    halving. Arguments as for `PruneStrategy`.
    """

    def _get_best_ratios(self, context: Any) -> tuple[list[str], list[float]]:
        """The parameters to prune, and the ratio of each."""
        params = self._params(context.eval_graph)
        return params, [self._uniform_ratio(context, params, self.target_ratio)] * len(params)

    def on_epoch_begin(self, context: Any) -> None:
        if context.epoch_id == self.start_epoch:
            self._prune(context, *self._get_best_ratios(context))


def _tensor(scope: Scope, name: str) -> Any:
    holder = scope.find_var(name)
    if holder is None:
        raise ValueError(
            f"parameter {name!r} has no value in the scope: run the startup program before pruning"
        )
    return holder.get_tensor()


def _update(graph: GraphWrapper) -> None:
    """Update the shapes of results and the groups of convolutions after those of parameters."""
    for op in graph.ops():
        if op.type() in ("conv2d", "conv2d_grad") and op.attr("groups") > 1:
            weight = op.inputs("Filter")[0].shape()
            if weight[1] == 1:
                op.set_attr("groups", weight[0])
    graph.update_groups_of_conv()
    graph.infer_shape()
