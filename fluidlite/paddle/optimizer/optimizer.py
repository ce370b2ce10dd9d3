"""`Optimizer` as Paddle 2.0 has it: `step()`, `clear_grad()`, `set_lr()`, parameter groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ...base.errors import NotSupportedError
from ...fluid.clip import GradientClipBase
from ...fluid.optimizer import base
from ...fluid.optimizer.base import ParamGrad
from ...fluid.regularizer import L2Decay, WeightDecayRegularizer
from ...framework import Operator, Program, Variable, mode
from .lr import LRScheduler

GROUP_OPTIONS = frozenset({"params", "learning_rate", "weight_decay"})
"""The valid keys of a group of parameters."""


class Optimizer(base.Optimizer):
    """Base of the optimizers (`paddle.optimizer.Optimizer`).

    Args:
        learning_rate: a float or an `LRScheduler`; for static programs a float or a Variable.
        parameters: Parameters to train, or groups of them: dicts with 'params' and, for these parameters only,
            'learning_rate' (a factor) and 'weight_decay'. Needed unless static mode is on.
        weight_decay: a number, the coefficient of an L2 penalty, or a regularizer.
        grad_clip: a gradient clip, `paddle.nn.ClipGradByNorm` and the like.
        name: put into the names of accumulators.

    Raises:
        TypeError: an argument is of another type.
        AttributeError: no `parameters` in dynamic mode.
    """

    _in_eager_mode = staticmethod(mode.eager_by_default)
    _schedules = (LRScheduler,)
    _parameters_argument = "parameters"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        parameters: Any = None,
        weight_decay: float | WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, flat(parameters), decay(weight_decay), grad_clip, name)

    def _next_rate(self) -> float:
        rate = self._learning_rate
        return rate if isinstance(rate, float) else float(rate())

    def _check_rate(self, rate: Any, eager: bool) -> None:
        if isinstance(rate, LRScheduler) and not eager:
            raise TypeError(
                "the learning rate of a static program is a float or a Variable, got the scheduler "
                f"{type(rate).__name__}: use the function of fluid.layers for it (noam_decay, piecewise_decay, ...)"
            )
        super()._check_rate(rate, eager)

    def step(self) -> None:
        """Update the parameters that have a gradient."""
        self._only_eager("step", "minimize(loss) appends the updates to the program").step()

    def minimize(
        self,
        loss: Any,
        startup_program: Program | None = None,
        parameters: Sequence[Any] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> tuple[list[Operator], list[ParamGrad]]:
        """Update the parameters (or only `parameters`) that have a gradient; in static mode append what does.

        `loss.backward()` has been called before. Returns update operators and pairs of parameter and gradient.
        """
        steps = self._steps_for(loss)
        if steps is None or parameters is None:
            return super().minimize(loss, startup_program, parameters, no_grad_set)
        chosen = {id(param) for param in parameters}
        pairs = [pair for pair in steps.pairs() if id(pair[0]) in chosen]
        steps.apply(pairs)
        return [], pairs

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set the gradients of the parameters to zero, or with `set_to_zero=False` forget them."""
        steps = self._only_eager("clear_grad", "nothing needs clearing")
        if set_to_zero:
            steps.clear_gradients()
        else:
            for param in steps.parameters:
                param.grad_array = None

    clear_gradients = clear_grad

    def get_lr(self) -> float:
        """The present learning rate.

        Raises AssertionError if it is a Variable of a static program, which has a value only while that runs.
        """
        rate = self._learning_rate
        if isinstance(rate, Variable):
            raise AssertionError("the learning rate is a Variable of a program: fetch it with Executor.run")
        return float(rate() if isinstance(rate, LRScheduler) else rate)

    def set_lr(self, value: float) -> None:
        """Go on with the learning rate `value`.

        Raises TypeError if `value` is no number, RuntimeError if the rate comes from an LRScheduler, AssertionError
        for an optimizer of programs.
        """
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(
                f"The type of 'value' in optimizer.set_lr must be float, but received {type(value)}."
            )
        if isinstance(self._learning_rate, LRScheduler):
            raise RuntimeError(
                "optimizer's learning rate can't be LRScheduler when invoke this API, because this will lead to "
                "conflict: the scheduler would overwrite it in the next step"
            )
        self._only_eager("set_lr", "make the rate a variable with fluid.layers.create_global_var")
        self._learning_rate = float(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Take the learning rate from `scheduler` from now on; TypeError if it is none."""
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(
                f"The type of 'scheduler' in optimizer.set_lr_scheduler must be LRScheduler, got {type(scheduler)}"
            )
        self._learning_rate = scheduler

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict()`; see `set_dict`."""
        self.set_dict(state_dict)


def decay(weight_decay: Any) -> WeightDecayRegularizer | None:
    """The regularizer that a `weight_decay` means."""
    if weight_decay is None or isinstance(weight_decay, WeightDecayRegularizer):
        return weight_decay
    if isinstance(weight_decay, bool) or not isinstance(weight_decay, (int, float)):
        raise TypeError(f"weight_decay should be a float or a regularizer, got {weight_decay!r:.60}")
    return L2Decay(float(weight_decay))


def groups(parameters: Any) -> list[Mapping[str, Any]]:
    """The groups in `parameters`; none if it is a plain list.

    Raises TypeError for lists that mix groups and parameters, NotSupportedError for options that groups lack here.
    """
    if not isinstance(parameters, (list, tuple)) or not any(isinstance(item, Mapping) for item in parameters):
        return []
    for item in parameters:
        if not isinstance(item, Mapping) or "params" not in item:
            raise TypeError(
                f"a group of parameters is a dict with 'params', got {type(item).__name__} ({item!r:.60})"
            )
        unknown = sorted(set(item) - GROUP_OPTIONS)
        if unknown:
            raise NotSupportedError(
                f"a group of parameters has the keys {', '.join(sorted(GROUP_OPTIONS))}, got {', '.join(unknown)}"
            )
    return list(parameters)


def flat(parameters: Any, decayed: Callable[[Any, Any], None] | None = None) -> list[Any] | None:
    """All parameters, of all groups; what groups say is written to their parameters.

    `decayed(param, weight_decay)` says what a group's decay means; an L2 penalty by default.
    """
    if callable(getattr(parameters, "parameters", None)):
        raise TypeError(
            f"parameters must be a list, got the layer {type(parameters).__name__}: pass its parameters()"
        )
    found = groups(parameters)
    if not found:
        return (
            list(parameters)
            if isinstance(parameters, Iterable) and not isinstance(parameters, (str, Variable))
            else parameters
        )
    params: list[Any] = []
    for group in found:
        members = list(group["params"])
        params += members
        for param in members:
            if "learning_rate" in group:
                param.optimize_attr = {**param.optimize_attr, "learning_rate": float(group["learning_rate"])}
            if "weight_decay" in group:
                if decayed is not None:
                    decayed(param, group["weight_decay"])
                else:
                    param.regularizer = decay(group["weight_decay"])
    return params
