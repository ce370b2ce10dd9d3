"""Schedules that move on when the user says so: once an epoch, or after looking at a loss.

`StepDecay`, `MultiStepDecay` and `LambdaDecay` have `epoch()`, `ReduceLROnPlateau` has `step(loss)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, ArgumentTypeError
from ...eager import Tensor
from .schedules import LearningRateDecay

__all__ = ["LambdaDecay", "MultiStepDecay", "ReduceLROnPlateau", "StepDecay"]


class _EpochDecay(LearningRateDecay):
    """Base of the schedules with `epoch()`; `get_lr` of subclasses returns the rate of `epoch_num`."""

    learning_rate: Any

    def __init__(self, learning_rate: float, dtype: Any = None) -> None:
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (float, int)):
            raise ArgumentTypeError(
                f"The type of 'learning_rate' must be 'float, int', but received {type(learning_rate)}."
            )
        self.base_lr = learning_rate
        self.epoch_num = 0
        self.dtype = dtype if dtype is not None else "float32"
        self.learning_rate = self.get_lr()

    def __call__(self) -> Tensor:
        """The rate of this epoch, a tensor of shape [1]: the same one until the epoch changes."""
        if not isinstance(self.learning_rate, Tensor):
            self.learning_rate = self.create_lr_var(self.learning_rate)
        return self.learning_rate

    def epoch(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to number `epoch`."""
        self.epoch_num = self.epoch_num + 1 if epoch is None else epoch
        self.learning_rate = self.get_lr()

    def get_lr(self) -> float:
        """The rate of epoch `epoch_num`."""
        raise NotImplementedError(f"{type(self).__name__} does not define its rate: implement get_lr()")

    def step(self) -> None:
        """Raises NotImplementedError, as in Fluid: the rate depends on epochs."""
        raise NotImplementedError(
            f"{type(self).__name__} has no step(): call epoch() once an epoch, without which the rate never changes"
        )

    def _state_keys(self) -> None:
        self.keys = ["epoch_num", "learning_rate"]

    def _peek(self) -> float:
        return float(self.learning_rate)

    def _skip(self, calls: int) -> None:
        """No effect: the rate does not depend on calls."""


def check_falling(factor: float, name: str) -> float:
    """`factor`, by which a rate is multiplied; ValueError unless it is below 1."""
    if not factor < 1.0:
        raise ArgumentError(f"{name} should be < 1.0., got {factor}")
    return factor


def check_step_size(step_size: Any) -> int:
    """The length of a stair; TypeError unless it is an integer, ValueError unless it is positive."""
    if isinstance(step_size, bool) or not isinstance(step_size, int):
        raise ArgumentTypeError(f"The type of 'step_size' must be 'int', but received {type(step_size)}.")
    if step_size < 1:
        raise ArgumentError(f"step_size must be at least 1, got {step_size}")
    return step_size


def check_milestones(milestones: Any) -> Sequence[float]:
    """Numbers of epochs; TypeError unless they are a list or tuple, ValueError unless they increase."""
    if not isinstance(milestones, (tuple, list)):
        raise ArgumentTypeError(
            f"The type of 'milestones' in 'MultiStepDecay' must be 'tuple, list', but received {type(milestones)}."
        )
    if any(b <= a for a, b in zip(milestones, milestones[1:], strict=False)):
        raise ArgumentError(f"The elements of milestones must be incremented, got {list(milestones)}")
    return milestones


def check_function(value: Any, schedule: str) -> Callable[[int], float]:
    """A function of the epoch; TypeError if it is not callable."""
    if not callable(value):
        raise ArgumentTypeError(
            f"The type of 'lr_lambda' in '{schedule}' must be 'function', but received {type(value)}."
        )
    return value  # type: ignore[no-any-return]


def _decayed(rate: float, factor: float, times: int) -> float:
    """`rate * factor**times` in single precision, which Fluid's tensors of rates have."""
    return float(np.float32(rate) * np.float32(float(np.float32(factor)) ** times))


class StepDecay(_EpochDecay):
    """Times `decay_rate` after every `step_size` epochs (`fluid.dygraph.StepDecay`).

    Raises TypeError for a `learning_rate` that is no number or a `step_size` that is no integer, ValueError unless
    `step_size` is positive and `decay_rate` below 1.
    """

    def __init__(self, learning_rate: float, step_size: int, decay_rate: float = 0.1) -> None:
        self.step_size = check_step_size(step_size)
        self.decay_rate = check_falling(decay_rate, "decay_rate")
        super().__init__(learning_rate)

    def get_lr(self) -> float:
        return _decayed(self.base_lr, self.decay_rate, self.epoch_num // self.step_size)


class MultiStepDecay(_EpochDecay):
    """Times `decay_rate` at each epoch of `milestones` (`fluid.dygraph.MultiStepDecay`).

    Raises TypeError unless `milestones` is a list or tuple, ValueError unless it is increasing and `decay_rate` is
    below 1.
    """

    def __init__(self, learning_rate: float, milestones: Sequence[float], decay_rate: float = 0.1) -> None:
        self.milestones = check_milestones(milestones)
        self.decay_rate = check_falling(decay_rate, "decay_rate")
        super().__init__(learning_rate)

    def get_lr(self) -> float:
        passed = sum(self.epoch_num >= milestone for milestone in self.milestones)
        return _decayed(self.base_lr, self.decay_rate, passed)


class LambdaDecay(_EpochDecay):
    """`learning_rate` times `lr_lambda(epoch)` (`fluid.dygraph.LambdaDecay`).

    Raises TypeError if `lr_lambda` cannot be called.
    """

    def __init__(self, learning_rate: float, lr_lambda: Callable[[int], float]) -> None:
        self.lr_lambda = check_function(lr_lambda, "LambdaDecay")
        super().__init__(learning_rate)

    def get_lr(self) -> float:
        return float(self.base_lr * self.lr_lambda(self.epoch_num))


class Plateau:
    """Detects that a measure has not improved for some time."""

    cooldown_counter: int
    num_bad_epochs: int

    def _watch(self, mode: str, patience: int, threshold: float, threshold_mode: str, cooldown: int) -> None:
        """Begin; ValueError for a `mode` or `threshold_mode` that does not exist."""
        if mode.lower() not in ("min", "max"):
            raise ArgumentError(f"mode: {mode} is unknown! It must be 'min' or 'max'.")
        if threshold_mode.lower() not in ("rel", "abs"):
            raise ArgumentError(f"threshold mode: {threshold_mode} is unknown! It must be 'rel' or 'abs'.")
        self.mode, self.threshold_mode = mode.lower(), threshold_mode.lower()
        self.patience, self.threshold, self.cooldown = patience, threshold, cooldown
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def _look(self, now: float, best: float | None) -> tuple[float | None, bool]:
        """The best measure, and whether to act now."""
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return best, False
        if best is None or self._is_better(now, best):
            self.num_bad_epochs = 0
            return now, False
        self.num_bad_epochs += 1
        stuck = self.num_bad_epochs > self.patience
        if stuck:
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        return best, stuck

    def _is_better(self, now: float, best: float) -> bool:
        margin = best * self.threshold if self.threshold_mode == "rel" else self.threshold
        return now < best - margin if self.mode == "min" else now > best + margin


class ReduceLROnPlateau(Plateau, LearningRateDecay):
    """Times `decay_rate` when a loss, given to `step`, has not become better for more than `patience` times.

    Args:
        learning_rate: the rate at first; a float.
        mode: 'min' if smaller is better, 'max' if larger.
        decay_rate: factor below 1.
        patience: how many times without a better loss are put up with.
        verbose: print a line for each change.
        threshold: what counts as better: by that much ('abs') or that part of the best ('rel').
        threshold_mode: 'rel' or 'abs'.
        cooldown: how many losses are not looked at after a change.
        min_lr: the rate does not go below.
        eps: smaller changes of the rate are not made.

    Raises ValueError or TypeError for other arguments. Follows `fluid.dygraph.ReduceLROnPlateau`.
    """

    learning_rate: Any

    def __init__(
        self, learning_rate: float, mode: str = "min", decay_rate: float = 0.1, patience: int = 10,
        verbose: bool = False, threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
        min_lr: float = 0, eps: float = 1e-8, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype)
        self._watch(mode, patience, threshold, threshold_mode, cooldown)
        check_falling(decay_rate, "new_lr = origin_lr * decay_rate and decay_rate")
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (float, int, Tensor)):
            raise ArgumentTypeError(
                "The type of 'learning_rate' in 'ReduceLROnPlateau' must be 'float, int, Variable', "
                f"but received {type(learning_rate)}."
            )
        self.learning_rate = learning_rate
        self.decay_rate, self.min_lr, self.eps = decay_rate, min_lr, eps
        self.verbose = verbose
        self.best_loss: float | None = None
        self.epoch_num = 0

    def __call__(self) -> Tensor:
        """The present rate, a tensor of shape [1]: the same one until the rate changes."""
        if not isinstance(self.learning_rate, Tensor):
            self.learning_rate = self.create_lr_var(self.learning_rate)
        return self.learning_rate

    def step(self, loss: Any = None) -> None:  # type: ignore[override]
        """Record a loss, a number or an array or tensor of one element; to be called once an epoch.

        Raises AssertionError for several elements, TypeError for none.
        """
        if loss is None:
            raise ArgumentTypeError("ReduceLROnPlateau.step() needs the loss: schedule.step(loss)")
        array = np.asarray(loss._on_host if isinstance(loss, Tensor) else loss)
        if array.size != 1:
            raise AssertionError(
                f"the loss.shape should be (1L,), but the current loss.shape is {list(array.shape)}. "
                "Maybe that you should call fluid.layers.mean to process it first."
            )
        self.epoch_num += 1
        self.best_loss, stuck = self._look(float(array.reshape(-1)[0]), self.best_loss)
        old = float(self.learning_rate)
        new = max(old * self.decay_rate, self.min_lr)
        if stuck and old - new > self.eps:
            if self.verbose:
                print(f"Epoch {self.epoch_num}: reducing learning rate from {old} to {new}.")
            self.learning_rate = new

    def _state_keys(self) -> None:
        self.keys = ["cooldown_counter", "best_loss", "num_bad_epochs", "epoch_num", "learning_rate"]

    def _peek(self) -> float:
        return float(self.learning_rate)

    def _skip(self, calls: int) -> None:
        """No effect: the rate does not depend on calls."""
