"""`SensitivePruneStrategy`: pruning ratios by the sensitivity of a metric to each parameter."""

from __future__ import annotations

import logging
import os
import pickle
from typing import Any

import numpy as np

from ....base.storage.files import write_file
from ....io.pickles import read_pickle
from ....log_helper import get_logger
from .pruning import PruneStrategy, _tensor

__all__ = ["SensitivePruneStrategy"]

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
