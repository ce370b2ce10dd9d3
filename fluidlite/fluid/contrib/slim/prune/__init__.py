"""`fluid.contrib.slim.prune`: parameters with fewer rows or columns; `AutoPruneStrategy` searches for how many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import prune_strategy, pruner
from .prune_strategy import PruneStrategy, SensitivePruneStrategy, UniformPruneStrategy, _tensor, _update
from .pruner import Pruner, StructurePruner

__all__ = [
    "AutoPruneStrategy",
    "PruneStrategy",
    "Pruner",
    "SensitivePruneStrategy",
    "StructurePruner",
    "UniformPruneStrategy",
    "auto_prune_strategy",
    "prune_strategy",
    "pruner",
]


class AutoPruneStrategy(PruneStrategy):
    """Tries pruning ratios that a controller proposes (`fluid.contrib.slim.prune.AutoPruneStrategy`).

    From `start_epoch` to `end_epoch`, each trial prunes, trains, evaluates and restores the model; the controller logs
    the best ratios, in hundredths.

    Args:
        pruner: a `StructurePruner`, which selects the entries to prune.
        controller: an `EvolutionaryController`, such as `SAController`, which gets the metric as reward.
        min_ratio, max_ratio: limits of the fraction of operations saved.
        metric_name: the result of evaluations that is the reward.
        pruned_params: a regular expression for the names of the parameters to prune.
        retrain_epoch: the number of epochs that the model is trained in each trial; 0: it is only evaluated.
        uniform_range: limits in place of `min_ratio` and `max_ratio` for the first trial, which prunes the same ratio
            of all parameters.
        init_tokens: the first trial, in hundredths, also the upper limits of the controller.
    """

    def __init__(
        self,
        pruner: Any = None,
        controller: Any = None,
        start_epoch: int = 0,
        end_epoch: int = 10,
        min_ratio: float = 0.5,
        max_ratio: float = 0.7,
        metric_name: str = "top1_acc",
        pruned_params: str = "conv.*_weights",
        retrain_epoch: int = 0,
        uniform_range: Sequence[float] | None = None,
        init_tokens: Sequence[int] | None = None,
    ) -> None:
        super().__init__(pruner, start_epoch, end_epoch, 0.0, metric_name, pruned_params)
        self._controller = controller
        self._min_ratio, self._max_ratio = min_ratio, max_ratio
        self._retrain_epoch = retrain_epoch
        self._uniform_range = uniform_range
        self._init_tokens = init_tokens
        self._pruned_param_names: list[str] = []
        self._current_tokens: list[int] = []
        self._range_table: list[int] = []
        self._backup: dict[str, np.ndarray] | None = None
        self._shapes: dict[str, tuple[int, ...]] = {}

    def on_compression_begin(self, context: Any) -> None:
        self._pruned_param_names = self._params(context.eval_graph)
        self._current_tokens = list(self._get_init_tokens(context))
        self._range_table = list(self._current_tokens)

        def constrain_func(tokens: Sequence[int]) -> bool:
            return self._constrain_func(tokens, context)

        self._controller.reset(self._range_table, self._current_tokens, constrain_func)

    def _constrain_func(self, tokens: Sequence[int], context: Any = None) -> bool:
        """True if the fraction of operations saved is within the limits."""
        saved = self._saved(context, self._pruned_param_names, self._tokens_to_ratios(tokens))
        return self._min_ratio <= saved <= self._max_ratio

    def _get_init_tokens(self, context: Any) -> list[int]:
        if self._init_tokens is not None:
            return list(self._init_tokens)
        low, high = self._uniform_range or (self._min_ratio, self._max_ratio)
        names = self._pruned_param_names  # all with the ratio that saves the middle of the limits
        return self._ratios_to_tokens([self._uniform_ratio(context, names, (low + high) / 2)] * len(names))

    def _ratios_to_tokens(self, ratios: Sequence[float]) -> list[int]:
        return [int(ratio / 0.01) for ratio in ratios]

    def _tokens_to_ratios(self, tokens: Sequence[int]) -> list[float]:
        return [token * 0.01 for token in tokens]

    def _trial_epoch(self, context: Any) -> int | None:
        """The epoch within the current trial; None outside of the search."""
        if not self.start_epoch <= context.epoch_id < self.end_epoch:
            return None
        return (context.epoch_id - self.start_epoch) % max(self._retrain_epoch, 1)

    def on_epoch_begin(self, context: Any) -> None:
        if self._trial_epoch(context) == 0:
            if self._retrain_epoch == 0:
                context.skip_training = True
            self._backup, self._shapes = {}, {}
            ratios = self._tokens_to_ratios(self._current_tokens)
            self._prune(context, self._pruned_param_names, ratios, self._backup, self._shapes)

    def on_epoch_end(self, context: Any) -> None:
        if self._backup is None or self._trial_epoch(context) != max(self._retrain_epoch, 1) - 1:
            return
        reward = context.eval_results[self.metric_name][-1]
        self._controller.update(self._current_tokens, reward)
        self._current_tokens = list(self._controller.next_tokens())
        for name, value in self._backup.items():
            _tensor(context.scope, name).set(value, context.place)
        for graph in self._graphs(context):
            held = graph.program.global_block().vars
            for name, shape in self._shapes.items():
                if name in held:
                    graph.var(name).set_shape(shape)
            _update(graph)
        self._backup = None
