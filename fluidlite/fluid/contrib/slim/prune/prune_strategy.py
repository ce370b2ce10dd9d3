"""Strategies that prune filters while a model is trained (`fluid.contrib.slim.prune.prune_strategy`)."""

from __future__ import annotations

import logging
import os
import pickle
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .....base.storage.files import write_file
from .....executor import Scope
from ....io.pickles import read_pickle
from ....small_modules import get_logger
from ..core import Strategy
from ..graph import GraphWrapper, VarWrapper
from .pruner import Channels

__all__ = ["PruneStrategy", "SensitivePruneStrategy", "UniformPruneStrategy"]


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


_logger = get_logger(__name__, logging.INFO, fmt="%(asctime)s-%(levelname)s: %(message)s")


class SensitivePruneStrategy(PruneStrategy):
    """Prunes more of parameters that the metric is less sensitive to
    (`fluid.contrib.slim.prune.SensitivePruneStrategy`; Li et al. 2017).

    Each parameter is pruned separately, at increasing ratios, and the metric evaluated. Curves fitted to the results
    give the ratios for an equal drop of the metric, and the drop that saves `target_ratio` of the operations.

    Args:
        delta_rate: the first ratio that is tried, and the distance to the next one.
        sensitivities: earlier results, by parameter: `pruned_percent`, `loss` and `size`.
        sensitivities_file: a file to store them in; None for none.
        num_steps: the number of steps to reach `target_ratio`. The first is before `start_epoch`, each other one before
            an epoch in which the metric has converged.
        eval_rate: the fraction of the batches that evaluations use; None for all.

    Other arguments are as for `PruneStrategy`.
    """

    def __init__(
        self,
        pruner: Any = None,
        start_epoch: int = 0,
        end_epoch: int = 0,
        delta_rate: float = 0.20,
        target_ratio: float = 0.5,
        metric_name: str = "top1_acc",
        pruned_params: str = "conv.*_weights",
        sensitivities_file: str | None = "./sensitivities.data",
        sensitivities: dict[str, Any] | None = None,
        num_steps: int = 1,
        eval_rate: float | None = None,
    ) -> None:
        super().__init__(pruner, start_epoch, end_epoch, target_ratio, metric_name, pruned_params)
        self.delta_rate = delta_rate
        self.sensitivities = {} if sensitivities is None else sensitivities
        self.sensitivities_file = sensitivities_file
        self.num_steps = num_steps
        self.eval_rate = eval_rate
        self.pruning_step = 1 - (1 - target_ratio) ** (1 / num_steps)

    def _save_sensitivities(self, sensitivities: dict[str, Any], sensitivities_file: str | None) -> None:
        if sensitivities_file:
            write_file(sensitivities_file, pickle.dumps(sensitivities), folders=False)

    def _load_sensitivities(self, sensitivities_file: str | None) -> dict[str, Any]:
        """Read a file of `_save_sensitivities`; {} if it does not exist."""
        if not sensitivities_file or not os.path.exists(sensitivities_file):
            return {}
        return read_pickle(sensitivities_file)

    def _format_sensitivities(self, sensitivities: dict[str, Any]) -> None:
        for name, known in sensitivities.items():
            pairs = ", ".join(
                f"{percent:.3f}: {loss:.4f}"
                for percent, loss in zip(known["pruned_percent"], known["loss"], strict=True)
            )
            _logger.info("fall of %s where parts of %s are taken out: %s", self.metric_name, name, pairs)

    def _compute_sensitivities(self, context: Any) -> dict[str, Any]:
        """By parameter, the ratios tried and the relative drops of the metric.

        Earlier results for a parameter of the same size are reused.
        """
        graph = context.eval_graph
        results = {**self.sensitivities, **self._load_sensitivities(self.sensitivities_file)}
        whole = None
        for name in self._params(graph):
            size = graph.var(name).shape()[0]
            known = results.get(name)
            if known is None or known.get("size", size) != size:
                known = results[name] = {"pruned_percent": [], "loss": [], "size": size}
            for percent in np.arange(self.delta_rate, 1, self.delta_rate).tolist():
                if any(abs(percent - tried) < 1e-6 for tried in known["pruned_percent"]):
                    continue
                if whole is None:
                    whole = self._metric(context)
                backup: dict[str, np.ndarray] = {}
                self._prune_parameters(
                    graph, context.scope, [name], [percent], context.place, lazy=True, param_backup=backup
                )
                try:
                    left = self._metric(context)
                finally:
                    for pruned, value in backup.items():
                        _tensor(context.scope, pruned).set(value, context.place)
                known["pruned_percent"].append(percent)
                known["loss"].append((whole - left) / whole)
                self._save_sensitivities(results, self.sensitivities_file)
        return results

    def _metric(self, context: Any) -> float:
        values, names = context.run_eval_graph(self.eval_rate)
        if self.metric_name not in names:
            raise ValueError(f"evaluations give {list(names)}, not metric_name {self.metric_name!r}")
        return float(values[list(names).index(self.metric_name)])

    def _get_best_ratios(
        self, context: Any, sensitivities: dict[str, Any], target_ratio: float
    ) -> tuple[list[str], list[float]]:
        """The parameters to prune, and the ratio of each that saves `target_ratio` of the operations."""
        graph = context.eval_graph
        names = [name for name in sensitivities if name in graph.program.global_block().vars]
        curves = [_curve(sensitivities[name]) for name in names]
        low, high = 0.0, max((max(sensitivities[name]["loss"]) for name in names), default=0.0)
        tried = []
        for _ in range(20):
            fall = (low + high) / 2
            ratios = [_part(curve, fall) for curve in curves]
            saved = self._saved(context, names, ratios)
            tried.append((abs(saved - target_ratio), ratios))
            if abs(saved - target_ratio) < _NEAR:
                break
            low, high = (fall, high) if saved < target_ratio else (low, fall)
        return names, min(tried)[1]

    def _current_pruning_target(self, context: Any) -> float | None:
        """The fraction of the operations to save before this epoch; None if no step is due."""
        due = context.epoch_id == self.start_epoch or context.eval_converged(self.metric_name, 0.005)
        if self.num_steps <= 0 or not due:
            return None
        self.num_steps -= 1
        return self.pruning_step

    def on_epoch_begin(self, context: Any) -> None:
        target = self._current_pruning_target(context)
        if target is not None:
            sensitivities = self._compute_sensitivities(context)
            self._format_sensitivities(sensitivities)
            self._prune(context, *self._get_best_ratios(context, sensitivities, target))


_NEAR = 0.02
"""The tolerance of the fraction of operations saved."""


def _curve(known: dict[str, Any]) -> np.ndarray:
    """The least-squares cubic through the origin of the metric's drops, highest power first."""
    parts = np.array(known["pruned_percent"], "float64")
    powers = np.stack([parts**3, parts**2, parts], axis=1)
    return np.append(np.linalg.lstsq(powers, np.array(known["loss"], "float64"), rcond=None)[0], 0.0)


def _part(curve: np.ndarray, fall: float) -> float:
    """The smallest ratio at which the curve reaches a drop of `fall`; 0.95 if it never does."""
    roots = np.roots(curve - [0, 0, 0, fall])
    real = roots.real[(abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < 1)]
    return float(real.min()) if real.size else 0.95
