"""Learning rates that change from step to step: each function returns a Variable to give to an optimizer.

The steps are counted in the persistable `@LR_DECAY_COUNTER@`, which all schedules of a program share. In dygraph mode
the functions return objects that count for themselves (`fluid.dygraph.NoamDecay`, ...). Follows
`fluid.layers.learning_rate_scheduler`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...base.errors import ArgumentError
from ...framework import Variable, default_main_program, mode
from ...framework.pruning import LR_COUNTER
from ..layer_helper import run_op
from ..optimizer import schedules
from .control_flow.arrays import autoincreased_step_counter
from .control_flow.conditional_block import Switch
from .tensor.constants import fill_constant
from .tensor.variables import assign, cast, create_global_var

__all__ = [
    "cosine_decay",
    "exponential_decay",
    "inverse_time_decay",
    "linear_lr_warmup",
    "natural_exp_decay",
    "noam_decay",
    "piecewise_decay",
    "polynomial_decay",
]

Schedule = TypeVar("Schedule", bound=Callable[..., Variable])


def _schedule(eager: Callable[..., Any]) -> Callable[[Schedule], Schedule]:
    """Mark the operators of a schedule as such; in dygraph mode make the object `eager` of the same arguments."""

    def decorate(build: Schedule) -> Schedule:
        @functools.wraps(build)
        def marked(*args: Any, **kwargs: Any) -> Any:
            if mode.in_dygraph_mode():
                return eager(*args, **kwargs)
            with default_main_program()._lr_schedule_guard():
                return build(*args, **kwargs)

        return marked  # type: ignore[return-value]

    return decorate


def _eager_noam(d_model: int, warmup_steps: int, learning_rate: Any = 1.0) -> schedules.NoamDecay:
    return schedules.NoamDecay(d_model, warmup_steps, learning_rate=learning_rate)


def _eager_piecewise(boundaries: Sequence[int], values: Sequence[float]) -> schedules.PiecewiseDecay:
    return schedules.PiecewiseDecay(boundaries, values, begin=0)


def _decay_step_counter(begin: int = 0) -> Variable:
    """The number of the step as float32; `begin` in the first run."""
    return cast(autoincreased_step_counter(LR_COUNTER, begin, 1), "float32")


def _apply(op_type: str, x: Variable, y: Variable | None = None) -> Variable:
    return run_op(op_type, {"X": x, "Y": y}, attrs=None if y is None else {"axis": -1})


def _periods(decay_steps: int, staircase: bool) -> Variable:
    """How many times `decay_steps` steps have passed; whole times only with `staircase`."""
    passed = _decay_step_counter() / decay_steps
    return _apply("floor", passed) if staircase else passed


@_schedule(schedules.ExponentialDecay)
def exponential_decay(
    learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """learning_rate * decay_rate ** (step / decay_steps) (`fluid.layers.exponential_decay`).

    With `staircase` the exponent is rounded down.
    """
    return learning_rate * (decay_rate ** _periods(decay_steps, staircase))


@_schedule(schedules.NaturalExpDecay)
def natural_exp_decay(
    learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """learning_rate * e ** (-decay_rate * step / decay_steps) (`fluid.layers.natural_exp_decay`).

    With `staircase` step / decay_steps is rounded down.
    """
    return learning_rate * _apply("exp", -1 * decay_rate * _periods(decay_steps, staircase))


@_schedule(schedules.InverseTimeDecay)
def inverse_time_decay(
    learning_rate: Any, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """learning_rate / (1 + decay_rate * step / decay_steps) (`fluid.layers.inverse_time_decay`).

    With `staircase` step / decay_steps is rounded down.
    """
    return learning_rate / (1 + decay_rate * _periods(decay_steps, staircase))


@_schedule(schedules.PolynomialDecay)
def polynomial_decay(
    learning_rate: Any,
    decay_steps: int,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> Variable:
    """From `learning_rate` to `end_learning_rate` along (1 - step / decay_steps) ** power.

    With `cycle` the descent begins again, each time `decay_steps` longer, instead of ending. Follows
    `fluid.layers.polynomial_decay`.
    """
    step = _decay_step_counter()
    if cycle:
        rounds = _apply("ceil", step / decay_steps)
        zero = fill_constant([1], "float32", 0.0)
        one = fill_constant([1], "float32", 1.0)
        with Switch() as switch, switch.case(step == zero):
            assign(one, output=rounds)
        left = 1 - step / (decay_steps * rounds)
    else:
        last = fill_constant([1], "float32", float(decay_steps))
        left = 1 - _apply("elementwise_min", step, last) / decay_steps
    return (learning_rate - end_learning_rate) * (left**power) + end_learning_rate


@_schedule(_eager_noam)
def noam_decay(d_model: int, warmup_steps: int, learning_rate: Any = 1.0) -> Variable:
    """Up for `warmup_steps` steps, then down with the root of the step; scaled by `d_model` ** -0.5.

    The first step is number 1 (Vaswani et al. 2017). Follows `fluid.layers.noam_decay`.
    """
    step = _decay_step_counter(1)
    falling = step**-0.5
    rising = (warmup_steps**-1.5) * step
    return learning_rate * (d_model**-0.5) * _apply("elementwise_min", falling, rising)


@_schedule(schedules.CosineDecay)
def cosine_decay(learning_rate: Any, step_each_epoch: int, epochs: int) -> Variable:
    """From `learning_rate` to 0 along half a cosine in `epochs` epochs, constant within each.

    Follows `fluid.layers.cosine_decay`.
    """
    epoch = _apply("floor", _decay_step_counter() / step_each_epoch)
    return learning_rate * 0.5 * (_apply("cos", epoch * math.pi / epochs) + 1)


@_schedule(_eager_piecewise)
def piecewise_decay(boundaries: Sequence[float], values: Sequence[float]) -> Variable:
    """A rate that changes at some steps (`fluid.layers.piecewise_decay`).

    Args:
        boundaries: numbers of steps, in ascending order.
        values: the rates: values[i] while the step is below boundaries[i], then the last.

    Returns:
        A float32 variable of shape [1]; in dygraph mode a `PiecewiseDecay`.

    Raises:
        ValueError: there is not one value more than boundaries.

    Example:
        >>> import paddle.fluid as fluid
        >>> rate = fluid.layers.piecewise_decay([2, 4], [1.0, 0.5, 0.1])
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> _ = exe.run(fluid.default_startup_program())
        >>> [float(exe.run(fetch_list=[rate])[0][0]) for _ in range(3)]
        [1.0, 1.0, 0.5]
    """
    if len(values) - len(boundaries) != 1:
        raise ArgumentError(
            f"len(values) - len(boundaries) should be 1, got {len(values)} values "
            f"and {len(boundaries)} boundaries"
        )
    step = _decay_step_counter()
    rate = create_global_var([1], 0.0, "float32", persistable=True, name="learning_rate")
    with Switch() as switch:
        for boundary, value in zip(boundaries, values, strict=False):
            end = fill_constant([1], "float32", float(boundary), force_cpu=True)
            chosen = fill_constant([1], "float32", float(value))
            with switch.case(step < end):
                assign(chosen, rate)
        chosen = fill_constant([1], "float32", float(values[-1]))
        with switch.default():
            assign(chosen, rate)
    return rate


@_schedule(schedules.LinearLrWarmup)
def linear_lr_warmup(learning_rate: Any, warmup_steps: int, start_lr: float, end_lr: float) -> Variable:
    """From `start_lr` to `end_lr` in `warmup_steps` steps, then `learning_rate` (a number or Variable).

    Follows `fluid.layers.linear_lr_warmup`. Raises TypeError if a limit is no number.
    """
    for name, value in (("start_lr", start_lr), ("end_lr", end_lr)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} of linear_lr_warmup must be a number, got {value!r}")
    rate = create_global_var([1], 0.0, "float32", persistable=True, name="learning_rate_warmup")
    step = _decay_step_counter()
    with Switch() as switch:
        with switch.case(step < float(warmup_steps)):
            assign(start_lr + float(end_lr - start_lr) * (step / float(warmup_steps)), rate)
        with switch.default():
            if not isinstance(learning_rate, Variable):
                learning_rate = fill_constant([1], "float32", float(learning_rate))
            assign(learning_rate, rate)
    return rate
