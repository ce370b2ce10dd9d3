"""Controllers of searches, which propose trials (`fluid.contrib.slim.searcher`)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...small_modules import get_logger

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["EvolutionaryController", "SAController"]

_logger = get_logger(__name__, 20, fmt="%(asctime)s-%(levelname)s: %(message)s")


class EvolutionaryController:
    """Base of controllers (`fluid.contrib.slim.searcher.EvolutionaryController`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def update(self, tokens: Sequence[int], reward: float) -> None:
        """Note the reward of `tokens`."""
        raise NotImplementedError("Abstract method.")

    def reset(self, range_table: Sequence[int], constrain_func: Callable[..., bool] | None = None) -> None:
        """Restart the search, with tokens below `range_table`."""
        raise NotImplementedError("Abstract method.")

    def next_tokens(self) -> list[int]:
        """The tokens of the next trial."""
        raise NotImplementedError("Abstract method.")


class SAController(EvolutionaryController):
    """Simulated annealing (`fluid.contrib.slim.searcher.SAController`).

    Tokens with a smaller reward than the previous ones are accepted with probability exp(difference / temperature), by
    NumPy's global generator.

    Args:
        range_table: the exclusive upper limit of each token.
        reduce_rate: the factor of the temperature at each update.
        init_temperature: the initial temperature.
        max_iter_number: the number of draws for tokens that satisfy the constraint.
    """

    def __init__(
        self,
        range_table: Sequence[int] | None = None,
        reduce_rate: float = 0.85,
        init_temperature: float = 1024,
        max_iter_number: int = 300,
    ) -> None:
        super().__init__()
        self._range_table = range_table
        self._reduce_rate = reduce_rate
        self._init_temperature = init_temperature
        self._max_iter_number = max_iter_number
        self._reward: float = -1
        self._tokens: list[int] | None = None
        self._max_reward: float = -1
        self._best_tokens: list[int] | None = None
        self._iter = 0
        self._constrain_func: Callable[[list[int]], bool] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: everything except the constraint, which may not be picklable."""
        return {name: value for name, value in self.__dict__.items() if name != "_constrain_func"}

    def reset(  # type: ignore[override]
        self,
        range_table: Sequence[int],
        init_tokens: Sequence[int],
        constrain_func: Callable[[list[int]], bool] | None = None,
    ) -> None:
        """Restart at `init_tokens`; tokens for which `constrain_func` returns False are not tried."""
        self._range_table = range_table
        self._constrain_func = constrain_func
        self._tokens = list(init_tokens)
        self._iter = 0

    def update(self, tokens: Sequence[int], reward: float) -> None:
        """Accept `tokens` as the new start if they are better, else with a probability."""
        self._iter += 1
        temperature = self._init_temperature * self._reduce_rate**self._iter
        if reward > self._reward or np.random.random() <= math.exp((reward - self._reward) / temperature):
            self._reward, self._tokens = reward, list(tokens)
        if reward > self._max_reward:
            self._max_reward, self._best_tokens = reward, list(tokens)
        _logger.info(
            "iter: %s; max_reward: %s; best_tokens: %s", self._iter, self._max_reward, self._best_tokens
        )
        _logger.info("current_reward: %s; current tokens: %s", reward, tokens)

    def next_tokens(self, control_token: Sequence[int] | None = None) -> list[int]:
        """The accepted tokens, or `control_token`, with one of them changed."""
        assert self._range_table is not None
        start = list(self._tokens or ()) if control_token is None else list(control_token)
        tokens = self._changed(start)
        if self._constrain_func is not None:
            for _ in range(self._max_iter_number):
                if self._constrain_func(tokens):
                    break
                tokens = self._changed(start)
        return tokens

    def _changed(self, start: list[int]) -> list[int]:
        table = self._range_table
        assert table is not None
        tokens = copy.copy(start)
        index = int(len(table) * np.random.random())
        tokens[index] = (tokens[index] + np.random.randint(table[index] - 1) + 1) % table[index]
        _logger.info("change index[%s] from %s to %s", index, start[index], tokens[index])
        return tokens
