"""Learning rates that change when the user calls `scheduler.step()` (`paddle.optimizer.lr`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.reports.texts import ShowsArguments
from ...eager import Tensor
from ...fluid.optimizer.epoch_schedules import (
    Plateau,
    check_falling,
    check_function,
    check_milestones,
    check_step_size,
)
from ...fluid.optimizer.schedules import noam_rate, piecewise_rate, polynomial_part, restore

__all__ = [
    "CosineAnnealingDecay",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LRScheduler",
    "LambdaDecay",
    "LinearWarmup",
    "MultiStepDecay",
    "MultiplicativeDecay",
    "NaturalExpDecay",
    "NoamDecay",
    "PiecewiseDecay",
    "PolynomialDecay",
    "ReduceOnPlateau",
    "StepDecay",
]


class LRScheduler(ShowsArguments):
    """Base of the schedulers; subclasses say in `get_lr()` what the rate is after `last_epoch` calls of `step`.

    Given to an optimizer as its learning rate; `scheduler()` is the present rate. Follows
    `paddle.optimizer.lr.LRScheduler`.

    Args:
        learning_rate: the base rate, not negative.
        last_epoch: the number of the epoch before the first one; -1 to start from the beginning.
        verbose: print a line in each step.

    Raises:
        TypeError, ValueError: `learning_rate` is no number, or negative.
    """

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False) -> None:
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (float, int)):
            raise TypeError(f"The type of learning rate must be float, but received {type(learning_rate)}")
        if learning_rate < 0:
            raise ValueError(f"Invalid learning rate: {learning_rate}")
        self.base_lr = float(learning_rate)
        self.last_lr = self.base_lr
        self.last_epoch = last_epoch
        self.verbose = verbose
        self.step()

    def __call__(self) -> float:
        """The present rate."""
        return self.last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go on by one, or to number `epoch`; call it once an epoch or once a batch, as the schedule is meant."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.last_lr = self.get_lr()
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        """The rate for `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its rate is: define get_lr()")

    def state_keys(self) -> None:
        """Set `keys`, the names of the attributes that make up the state."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict[str, Any]:
        """The state of the scheduler, as numbers by name."""
        self.state_keys()
        return {key: self.__dict__[key] for key in self.keys}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict()`.

        Warns of numbers that this scheduler does not have; raises RuntimeError for one that is missing.
        """
        self.state_keys()
        restore(self, self.keys, state_dict)

    def set_dict(self, state_dict: dict[str, Any]) -> None:
        """`set_state_dict`, as it was called before."""
        self.set_state_dict(state_dict)

    def _peek(self) -> float:
        return self()


def _positive(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise AssertionError(f"'{name}' must be a positive integer, got {value!r}.")
    return value


class NoamDecay(LRScheduler):
    """Up for `warmup_steps` steps, then down with the root of the step; scaled by `d_model` ** -0.5.

    Vaswani et al. 2017. Follows `paddle.optimizer.lr.NoamDecay`.
    """

    def __init__(
        self, d_model: float, warmup_steps: float, learning_rate: float = 1.0, last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        if not d_model > 0:
            raise ValueError(f"d_model should be greater than 0, got {d_model}")
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch == 0:
            return 0.0
        return self.base_lr * noam_rate(self.last_epoch, self.d_model, self.warmup_steps)


class PiecewiseDecay(LRScheduler):
    """values[i] while the epoch is below boundaries[i], then the last (`paddle.optimizer.lr.PiecewiseDecay`).

    Raises ValueError unless there is one value more than boundaries.
    """

    def __init__(
        self,
        boundaries: Sequence[float],
        values: Sequence[float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if len(boundaries) == 0:
            raise ValueError("The boundaries cannot be empty.")
        if len(values) <= len(boundaries):
            raise ValueError(
                f"The values have one more element than boundaries, but received len(values) [{len(values)}] "
                f"< len(boundaries) + 1 [{len(boundaries) + 1}]."
            )
        self.boundaries = list(boundaries)
        self.values = list(values)
        super().__init__(last_epoch=last_epoch, verbose=verbose)

    def get_lr(self) -> float:
        return piecewise_rate(self.last_epoch, self.boundaries, self.values)


class _ByGamma(LRScheduler):
    """Schedulers that fall with the epoch, at a speed given by `gamma`."""

    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


class NaturalExpDecay(_ByGamma):
    """learning_rate * e ** (-gamma * epoch) (`paddle.optimizer.lr.NaturalExpDecay`)."""

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(_ByGamma):
    """learning_rate / (1 + gamma * epoch) (`paddle.optimizer.lr.InverseTimeDecay`)."""

    def get_lr(self) -> float:
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(_ByGamma):
    """learning_rate * gamma ** epoch (`paddle.optimizer.lr.ExponentialDecay`)."""

    def get_lr(self) -> float:
        return float(self.base_lr * self.gamma**self.last_epoch)


class PolynomialDecay(LRScheduler):
    """From `learning_rate` to `end_lr` along (1 - epoch / decay_steps) ** power.

    With `cycle` the descent begins again, each time `decay_steps` longer, instead of ending. Raises AssertionError
    unless `decay_steps` is a positive integer. Follows `paddle.optimizer.lr.PolynomialDecay`.
    """

    def __init__(
        self, learning_rate: float, decay_steps: int, end_lr: float = 0.0001, power: float = 1.0,
        cycle: bool = False, last_epoch: int = -1, verbose: bool = False,
    ) -> None:  # fmt: skip
        self.decay_steps = _positive(decay_steps, "decay_steps")
        self.end_lr = end_lr
        self.power = power
        self.cycle = cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        left = polynomial_part(self.last_epoch, self.decay_steps, self.power, self.cycle)
        return (self.base_lr - self.end_lr) * left + self.end_lr


class LinearWarmup(LRScheduler):
    """From `start_lr` to `end_lr` in `warmup_steps` steps, then `learning_rate` (a number or another scheduler).

    The other scheduler begins where the warm-up ends. Raises TypeError for a `learning_rate` of another kind,
    AssertionError unless `end_lr` is above `start_lr` and `warmup_steps` a positive integer. Follows
    `paddle.optimizer.lr.LinearWarmup`.
    """

    def __init__(
        self, learning_rate: float | LRScheduler, warmup_steps: int, start_lr: float, end_lr: float,
        last_epoch: int = -1, verbose: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (float, int, LRScheduler)):
            raise TypeError(
                "the type of learning_rate should be [int, float or LRScheduler], "
                f"the current type is {learning_rate}"
            )
        if not end_lr > start_lr:
            raise AssertionError(f"end_lr {end_lr} must be greater than start_lr {start_lr}")
        self.learning_rate = learning_rate
        self.warmup_steps = _positive(warmup_steps, "warmup_steps")
        self.start_lr = start_lr
        self.end_lr = end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        late = self.last_epoch - self.warmup_steps
        if late < 0:
            return (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(late)
            return self.learning_rate()
        return float(self.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """The state, with that of the other scheduler as `LinearWarmup_LR`."""
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict()`; see `LRScheduler.set_state_dict`."""
        own = dict(state_dict)
        inner = own.pop("LinearWarmup_LR", None)
        super().set_state_dict(own)
        if isinstance(self.learning_rate, LRScheduler) and inner is not None:
            self.learning_rate.set_state_dict(inner)


class MultiStepDecay(LRScheduler):
    """Times `gamma` at each epoch of `milestones` (`paddle.optimizer.lr.MultiStepDecay`).

    Raises TypeError unless `milestones` is a list or tuple, ValueError unless it is increasing and `gamma` below 1.
    """

    def __init__(
        self, learning_rate: float, milestones: Sequence[float], gamma: float = 0.1, last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self.milestones = check_milestones(milestones)
        self.gamma = check_falling(gamma, "gamma")
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return float(self.base_lr * self.gamma ** sum(self.last_epoch >= m for m in self.milestones))


class StepDecay(LRScheduler):
    """Times `gamma` after every `step_size` epochs (`paddle.optimizer.lr.StepDecay`).

    Raises TypeError unless `step_size` is an integer, ValueError unless it is positive and `gamma` below 1.
    """

    def __init__(
        self, learning_rate: float, step_size: int, gamma: float = 0.1, last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self.step_size = check_step_size(step_size)
        self.gamma = check_falling(gamma, "gamma")
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return float(self.base_lr * self.gamma ** (self.last_epoch // self.step_size))


class _ByFunction(LRScheduler):
    """Schedulers with a function of the epoch; TypeError if `lr_lambda` cannot be called."""

    def __init__(
        self,
        learning_rate: float,
        lr_lambda: Callable[[int], float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.lr_lambda = check_function(lr_lambda, type(self).__name__)
        super().__init__(learning_rate, last_epoch, verbose)


class LambdaDecay(_ByFunction):
    """`learning_rate` times `lr_lambda(epoch)` (`paddle.optimizer.lr.LambdaDecay`)."""

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(_ByFunction):
    """`learning_rate` times the product of lr_lambda(1) ... lr_lambda(epoch).

    Follows `paddle.optimizer.lr.MultiplicativeDecay`.
    """

    _reached = (0, 1.0)  # an epoch and the product up to it

    def get_lr(self) -> float:
        epoch, product = self._reached if self._reached[0] <= self.last_epoch else (0, 1.0)
        for later in range(epoch + 1, self.last_epoch + 1):
            product *= self.lr_lambda(later)
        self._reached = (self.last_epoch, product)
        return self.base_lr * product


class CosineAnnealingDecay(LRScheduler):
    """Down to `eta_min` along half a cosine in `T_max` epochs, then up again, and so on.

    Loshchilov and Hutter 2017, without restarts. Raises TypeError unless `T_max` is a number and AssertionError
    unless it is positive. Follows `paddle.optimizer.lr.CosineAnnealingDecay`.
    """

    def __init__(
        self, learning_rate: float, T_max: int, eta_min: float = 0.0, last_epoch: int = -1, verbose: bool = False
    ) -> None:  # fmt: skip
        self.T_max = _positive(T_max, "T_max")
        self.eta_min = float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return self.eta_min + (self.base_lr - self.eta_min) * height


class ReduceOnPlateau(Plateau, LRScheduler):
    """Times `factor` when a measure, given to `step`, has not become better for more than `patience` times.

    Args:
        learning_rate: the rate at first.
        mode: 'min' if smaller is better, 'max' if larger.
        factor: below 1.
        patience: how many times without a better measure are put up with.
        threshold: what counts as better: by that much ('abs') or that part of the best ('rel').
        threshold_mode: 'rel' or 'abs'.
        cooldown: how many measures are not looked at after a change.
        min_lr: the rate does not go below.
        epsilon: smaller changes of the rate are not made.
        verbose: print a line for each change.

    Raises ValueError or TypeError for other arguments. Follows `paddle.optimizer.lr.ReduceOnPlateau`.
    """

    def __init__(
        self, learning_rate: float, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0,
        epsilon: float = 1e-8, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._watch(mode, patience, threshold, threshold_mode, cooldown)
        check_falling(factor, "new_lr = origin_lr * gamma and gamma")
        self.factor = factor
        self.min_lr = min_lr
        self.epsilon = epsilon
        self.best: float | None = None
        super().__init__(learning_rate, verbose=verbose)

    def get_lr(self) -> float:
        return self.last_lr

    def step(self, metrics: Any = None, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at a measure, a number or an array or tensor of one element.

        Raises AssertionError for several elements, TypeError for what is no number.
        """
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if metrics is None and self.last_epoch == 0:
            return  # the constructor's first step has nothing to look at
        array = np.asarray(metrics._on_host if isinstance(metrics, Tensor) else metrics)
        if array.dtype.kind not in "fiu":
            raise TypeError(
                "metrics must be 'int', 'float', 'np.float64', 'numpy.ndarray' or 'paddle.Tensor', "
                f"but receive {type(metrics)}"
            )
        if array.size != 1:
            raise AssertionError(
                f"the metrics must have one element, but the current metrics.shape is {list(array.shape)}. "
                "Maybe that you should call paddle.mean to process it first."
            )
        self.best, stuck = self._look(float(array.reshape(-1)[0]), self.best)
        new = max(self.last_lr * self.factor, self.min_lr)
        if stuck and self.last_lr - new > self.epsilon:
            self.last_lr = new
            if self.verbose:
                print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def state_keys(self) -> None:
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]
