"""Learning rates that change from one eager step to the next (`fluid.dygraph.learning_rate_scheduler`).

Given to an optimizer as its learning rate, a schedule is asked once in each `minimize`. Static programs use the
functions of `fluid.layers` (`noam_decay`, ...) instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base import callsite, unique_name
from ...base.dtypes import to_numpy
from ...base.errors import ArgumentError, ArgumentTypeError
from ...base.reports.texts import ShowsArguments
from ...eager import Tensor, placing

__all__ = [
    "CosineDecay",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateDecay",
    "LinearLrWarmup",
    "NaturalExpDecay",
    "NoamDecay",
    "PiecewiseDecay",
    "PolynomialDecay",
]


class LearningRateDecay(ShowsArguments):
    """Base of the schedules: `schedule()` gives the rate of this step and moves on to the next.

    Subclasses say in `step()` what the rate is when `step_num` steps have been taken. Follows
    `fluid.dygraph.learning_rate_scheduler.LearningRateDecay`.

    Args:
        begin: the number of the first step.
        step: how much is added to the number in each step.
        dtype: of the rate.
    """

    plain = False
    """Whether `current_step_lr()` gives a Python number before the first step, and not one of `dtype`, as in Fluid."""

    def __init__(self, begin: int = 0, step: int = 1, dtype: Any = "float32") -> None:
        self.step_num = begin
        self.step_size = step
        self.dtype = dtype

    def __call__(self) -> Tensor:
        """The rate, a tensor of shape [1]."""
        rate = self.step()
        self.step_num += self.step_size
        return rate if isinstance(rate, Tensor) else self.create_lr_var(rate)

    def step(self) -> Any:
        """The rate for the present `step_num`, a float (a tensor will do as well)."""
        raise NotImplementedError(f"{type(self).__name__} does not define its rate: implement step()")

    def create_lr_var(self, lr: float) -> Tensor:
        """A tensor of shape [1] with the number `lr`."""
        rate = placing.to_default_device(np.full(1, lr, to_numpy(self.dtype)))
        return Tensor(rate, unique_name.generate("learning_rate"))

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule, as numbers by name."""
        self._state_keys()
        state = {}
        for key in self.keys:
            value = self.__dict__[key]
            state[key] = value._on_host.reshape(-1)[0].item() if isinstance(value, Tensor) else value
        return state

    def _state_keys(self) -> None:
        """Set `keys`, the names of the attributes that make up the state."""
        self.keys = ["step_num"]

    def set_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`.

        Warns of numbers that this schedule does not have; raises RuntimeError for one that is missing.
        """
        self._state_keys()
        restore(self, self.keys, state_dict)

    set_state_dict = set_dict

    def _peek(self) -> float:
        """The rate that the next call gives, without moving on."""
        return float(self.step())

    def _skip(self, calls: int) -> None:
        """Skip `calls` calls; negative numbers go back."""
        self.step_num += calls * self.step_size


def restore(schedule: object, keys: Sequence[str], state: dict[str, Any]) -> None:
    """Set the attributes `keys` of a schedule to the values in `state`, arrays and tensors to their number.

    Warns of other keys; raises RuntimeError for a missing key, before anything is set.
    """
    for key in keys:
        if key not in state:
            raise RuntimeError(
                "Please check whether state_dict is correct for optimizer. "
                f"Can't find [ {key} ] in state_dict, which has {sorted(state)}"
            )
    for key in keys:
        value = state[key]._on_host if isinstance(state[key], Tensor) else state[key]
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.reshape(-1)[0].item()
        setattr(schedule, key, value)
    unused = sorted(set(state) - set(keys))
    if unused:
        callsite.warn(
            f"{type(schedule).__name__}: there are some unused values in state_dict ({', '.join(unused)}); "
            "was it saved from another kind of schedule?"
        )


def noam_rate(step: float, d_model: float, warmup_steps: float) -> float:
    """Noam's rate for a step; ZeroDivisionError for step 0, which has none."""
    return float(d_model**-0.5 * min(step**-0.5, warmup_steps**-1.5 * step))


def piecewise_rate(step: float, boundaries: Sequence[float], values: Sequence[float]) -> float:
    """values[i] for the first i with `step` below boundaries[i], else the last."""
    for boundary, value in zip(boundaries, values, strict=False):
        if step < boundary:
            return float(value)
    return float(values[-1])


def polynomial_part(step: float, decay_steps: float, power: float, cycle: bool) -> float:
    """The factor of polynomial decay, from 1 to 0; with `cycle` it restarts over ever longer spans."""
    if cycle:
        decay_steps *= max(1, math.ceil(step / decay_steps))
    return float((1 - min(step, decay_steps) / decay_steps) ** power)


class NoamDecay(LearningRateDecay):
    """Up for `warmup_steps` steps, then down with the root of the step; scaled by `d_model` ** -0.5.

    The first step is number 1, since the rate of number 0 is not defined (Vaswani et al. 2017). Follows
    `fluid.dygraph.NoamDecay`.
    """

    def __init__(
        self, d_model: float, warmup_steps: float, begin: int = 1, step: int = 1, dtype: Any = "float32",
        learning_rate: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(begin, step, dtype)
        self.learning_rate = learning_rate
        self.d_model = d_model
        self.warmup_steps = warmup_steps

    def step(self) -> float:
        return self.learning_rate * noam_rate(self.step_num, self.d_model, self.warmup_steps)


class PiecewiseDecay(LearningRateDecay):
    """values[i] while the step is below boundaries[i], then the last (`fluid.dygraph.PiecewiseDecay`).

    Raises ValueError unless there is at least one value more than boundaries.
    """

    plain = True

    def __init__(
        self,
        boundaries: Sequence[int],
        values: Sequence[float],
        begin: int,
        step: int = 1,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(begin, step, dtype)
        if not values:
            raise ArgumentError("PiecewiseDecay needs one value more than boundaries, got none")
        self.boundaries = list(boundaries)
        self.values = list(values)

    def step(self) -> float:
        return piecewise_rate(self.step_num, self.boundaries, self.values)


class _Falling(LearningRateDecay):
    """Schedules that fall with step / decay_steps, rounded down if `staircase`."""

    def __init__(
        self, learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False, begin: int = 0,
        step: int = 1, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(begin, step, dtype)
        self.learning_rate = learning_rate
        self.decay_steps = decay_steps
        self.decay_rate = decay_rate
        self.staircase = staircase

    def _periods(self) -> float:
        passed = self.step_num / self.decay_steps
        return math.floor(passed) if self.staircase else passed


class NaturalExpDecay(_Falling):
    """learning_rate * e ** (-decay_rate * step / decay_steps) (`fluid.dygraph.NaturalExpDecay`).

    With `staircase` step / decay_steps is rounded down.
    """

    def step(self) -> float:
        return float(self.learning_rate * math.exp(-self.decay_rate * self._periods()))


class ExponentialDecay(_Falling):
    """learning_rate * decay_rate ** (step / decay_steps) (`fluid.dygraph.ExponentialDecay`).

    With `staircase` the exponent is rounded down.
    """

    def step(self) -> float:
        return float(self.learning_rate * self.decay_rate ** self._periods())


class InverseTimeDecay(_Falling):
    """learning_rate / (1 + decay_rate * step / decay_steps) (`fluid.dygraph.InverseTimeDecay`).

    With `staircase` step / decay_steps is rounded down.
    """

    def step(self) -> float:
        return float(self.learning_rate / (1 + self.decay_rate * self._periods()))


class PolynomialDecay(LearningRateDecay):
    """From `learning_rate` to `end_learning_rate` along (1 - step / decay_steps) ** power.

    With `cycle` the descent begins again, each time `decay_steps` longer, instead of ending. Follows
    `fluid.dygraph.PolynomialDecay`.
    """

    def __init__(
        self, learning_rate: Any, decay_steps: int, end_learning_rate: float = 0.0001, power: float = 1.0,
        cycle: bool = False, begin: int = 0, step: int = 1, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(begin, step, dtype)
        self.learning_rate = learning_rate
        self.decay_steps = decay_steps
        self.end_learning_rate = end_learning_rate
        self.power = power
        self.cycle = cycle

    def step(self) -> float:
        left = polynomial_part(self.step_num, self.decay_steps, self.power, self.cycle)
        return float((self.learning_rate - self.end_learning_rate) * left + self.end_learning_rate)


class CosineDecay(LearningRateDecay):
    """From `learning_rate` to 0 along half a cosine in `epochs` epochs, constant within each.

    `step_each_epoch`: the steps of an epoch. Follows `fluid.dygraph.CosineDecay`.
    """

    def __init__(
        self, learning_rate: Any, step_each_epoch: int, epochs: int, begin: int = 0, step: int = 1,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(begin, step, dtype)
        self.learning_rate = learning_rate
        self.step_each_epoch = step_each_epoch
        self.epochs = epochs

    def step(self) -> float:
        epoch = math.floor(self.step_num / self.step_each_epoch)
        return float(self.learning_rate * 0.5 * (math.cos(epoch * math.pi / self.epochs) + 1))


class LinearLrWarmup(LearningRateDecay):
    """Rises for `warmup_steps` steps, then is `learning_rate` (a number or another schedule).

    As in Fluid 1.8 the rise begins at 0 and not at `start_lr`, of which only the distance to `end_lr` counts: step *
    (end_lr - start_lr) / warmup_steps. The other schedule moves on in every step. Follows
    `fluid.dygraph.LinearLrWarmup`.

    Raises TypeError for a `learning_rate` of another kind, AssertionError unless `end_lr` is above `start_lr`.
    """

    plain = True

    def __init__(
        self, learning_rate: Any, warmup_steps: int, start_lr: float, end_lr: float, begin: int = 1,
        step: int = 1, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(begin, step, dtype)
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (float, int, LearningRateDecay)):
            raise ArgumentTypeError(
                "the type of learning_rate should be [int, float or LearningRateDecay], "
                f"the current type is {learning_rate}"
            )
        if not end_lr > start_lr:
            raise AssertionError(f"end_lr {end_lr} must be greater than start_lr {start_lr}")
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.lr_ratio_before_warmup = (float(end_lr) - float(start_lr)) / float(warmup_steps)

    def step(self) -> float:
        # The wrapped schedule advances at every call, even by current_step_lr() before the first step.
        after = self.learning_rate
        rate = float(after() if isinstance(after, LearningRateDecay) else after)
        return self.lr_ratio_before_warmup * self.step_num if self.step_num < self.warmup_steps else rate

    def state_dict(self) -> dict[str, Any]:
        """The state, with that of the other schedule as `LinearWarmup_LR`."""
        state = super().state_dict()
        if isinstance(self.learning_rate, LearningRateDecay):
            state[_INNER] = self.learning_rate.state_dict()
        return state

    def set_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`; see `LearningRateDecay.set_dict`.

        If it lacks the state of the wrapped schedule, as files of Paddle do, that is advanced as far as this one.
        """
        inner, before = state_dict.get(_INNER), self.step_num
        super().set_dict({key: value for key, value in state_dict.items() if key != _INNER})
        if not isinstance(self.learning_rate, LearningRateDecay):
            return
        if inner is None:
            self.learning_rate._skip((self.step_num - before) // self.step_size)
        else:
            self.learning_rate.set_dict(inner)

    set_state_dict = set_dict

    def _skip(self, calls: int) -> None:
        super()._skip(calls)
        if isinstance(self.learning_rate, LearningRateDecay):
            self.learning_rate._skip(calls)


_INNER = "LinearWarmup_LR"
