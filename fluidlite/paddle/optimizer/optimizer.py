"""`Optimizer` as Paddle 2.0 has it: `step()`, `clear_grad()`, `set_lr()`, parameter groups; the rules of updates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ...base.errors import NotSupportedError
from ...fluid import optimizer as fluid
from ...fluid.clip import GradientClipBase, GradientClipByGlobalNorm, GradientClipByNorm, GradientClipByValue
from ...fluid.optimizer import base
from ...fluid.optimizer.base import ParamGrad
from ...fluid.regularizer import L2Decay, WeightDecayRegularizer
from ...framework import Operator, Parameter, Program, Variable, mode
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


__all__ = ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]


def _limited(value: Any, name: str, below_one: bool = True) -> Any:
    """A number not below 0, and below 1 if that is asked; ValueError otherwise. Variables are left alone."""
    if value is None:
        raise ValueError(f"{name} is not set.")
    if isinstance(value, (int, float)) and not (0 <= value and (value < 1 or not below_one)):
        wanted = f"{name} in [0,1)" if below_one else f"{name} >= 0"
        raise ValueError(f"Invalid value of {name}, expect {wanted}, got {value}.")
    return value


class SGD(Optimizer, fluid.SGD):
    """param -= learning_rate * grad (`paddle.optimizer.SGD`); see `Optimizer` for the arguments."""

    def __init__(
        self, learning_rate: Any = 0.001, parameters: Any = None, weight_decay: Any = None,
        grad_clip: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        fluid.SGD.__init__(self, learning_rate, flat(parameters), decay(weight_decay), grad_clip, name)


class Momentum(Optimizer, fluid.Momentum):
    """A step along a velocity that gathers gradients (`paddle.optimizer.Momentum`)."""

    def __init__(
        self, learning_rate: Any = 0.001, momentum: float = 0.9, parameters: Any = None,
        use_nesterov: bool = False, weight_decay: Any = None, grad_clip: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        if momentum is None:
            raise ValueError("momentum is not set")
        params, penalty = flat(parameters), decay(weight_decay)
        fluid.Momentum.__init__(self, learning_rate, momentum, params, use_nesterov, penalty, grad_clip, name)


class Adam(Optimizer, fluid.Adam):
    """Adam (Kingma and Ba 2015; `paddle.optimizer.Adam`).

    Raises ValueError unless the betas are in [0, 1) and `epsilon` is not negative.
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: float = 1e-8,
        parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, lazy_mode: bool = False,
        name: str | None = None,
    ) -> None:  # fmt: skip
        fluid.Adam.__init__(
            self, learning_rate, _limited(beta1, "beta1"), _limited(beta2, "beta2"),
            _limited(epsilon, "epsilon", below_one=False), flat(parameters), decay(weight_decay), grad_clip, name,
            lazy_mode,
        )  # fmt: skip


class AdamW(Adam):
    """Adam with a decay of the weights that stays out of the moments (Loshchilov and Hutter 2019).

    Each step first multiplies the parameter by 1 - learning_rate * weight_decay. Follows `paddle.optimizer.AdamW`.

    Args:
        weight_decay: a number.
        apply_decay_param_fun: tells by a parameter's name whether it decays; all do by default.
        lr_ratio: gives by the parameter a factor of the learning rate.
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: float = 1e-8,
        parameters: Any = None, weight_decay: float = 0.01,
        lr_ratio: Callable[[Any], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None, grad_clip: Any = None,
        lazy_mode: bool = False, name: str | None = None,
    ) -> None:  # fmt: skip
        if isinstance(weight_decay, bool) or not isinstance(weight_decay, (int, float)):
            raise TypeError(f"weight_decay of AdamW should be a float, got {weight_decay!r:.60}")
        for label, function in (("lr_ratio", lr_ratio), ("apply_decay_param_fun", apply_decay_param_fun)):
            if function is not None and not callable(function):
                raise TypeError(f"{label} of AdamW should be a function, got {function!r:.60}")
        self._coeff = float(weight_decay)
        self._coeffs: dict[str, float] = {}
        self._ratio = lr_ratio
        self._decays = apply_decay_param_fun
        params = flat(parameters, lambda param, coeff: self._coeffs.update({param.name: float(coeff)}))
        super().__init__(learning_rate, beta1, beta2, epsilon, params, None, grad_clip, lazy_mode, name)

    def _create_param_lr(self, param_and_grad: Any) -> Any:
        rate = super()._create_param_lr(param_and_grad)
        return rate if self._ratio is None else rate * float(self._ratio(param_and_grad[0].origin))

    def _append_optimize_op(self, block: Any, param_and_grad: Any) -> Any:
        param = param_and_grad[0]
        coeff = self._coeffs.get(param.name, self._coeff)
        if coeff and (self._decays is None or self._decays(param.name)):
            kept = self._create_param_lr(param_and_grad) * -coeff + 1.0
            block.append_op(
                type="elementwise_mul",
                inputs={"X": param, "Y": kept},
                outputs={"Out": param},
                attrs={"axis": -1},
            )
        return super()._append_optimize_op(block, param_and_grad)


class Adamax(Optimizer, fluid.Adamax):
    """Adam with the infinity norm (Kingma and Ba 2015; `paddle.optimizer.Adamax`)."""

    def __init__(
        self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
        parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        fluid.Adamax.__init__(
            self, learning_rate, _limited(beta1, "beta1"), _limited(beta2, "beta2"),
            _limited(epsilon, "epsilon", below_one=False), flat(parameters), decay(weight_decay), grad_clip, name,
        )  # fmt: skip


class Adagrad(Optimizer, fluid.Adagrad):
    """Steps divided by the root of summed squared gradients (Duchi 2011; `paddle.optimizer.Adagrad`)."""

    def __init__(
        self, learning_rate: Any, epsilon: float = 1e-6, parameters: Any = None, weight_decay: Any = None,
        grad_clip: Any = None, name: str | None = None, initial_accumulator_value: float = 0.0,
    ) -> None:  # fmt: skip
        fluid.Adagrad.__init__(
            self, learning_rate, _limited(epsilon, "epsilon", below_one=False), flat(parameters),
            decay(weight_decay), grad_clip, name,
            _limited(initial_accumulator_value, "initial_accumulator_value", below_one=False),
        )  # fmt: skip


class Adadelta(Optimizer, fluid.Adadelta):
    """Steps as long as recent steps, divided by recent gradients (Zeiler 2012; `paddle.optimizer.Adadelta`).

    As in Fluid 1.8 and Paddle 2.0 `learning_rate` is taken but not used.
    """

    def __init__(
        self, learning_rate: Any = 0.001, epsilon: float = 1e-6, rho: float = 0.95, parameters: Any = None,
        weight_decay: Any = None, grad_clip: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        fluid.Adadelta.__init__(
            self, learning_rate, _limited(epsilon, "epsilon", below_one=False), _limited(rho, "rho"),
            flat(parameters), decay(weight_decay), grad_clip, name,
        )  # fmt: skip


class RMSProp(Optimizer, fluid.RMSProp):
    """Steps divided by the root of a fading mean of squared gradients (`paddle.optimizer.RMSProp`)."""

    def __init__(
        self, learning_rate: Any, rho: float = 0.95, epsilon: float = 1e-6, momentum: float = 0.0,
        centered: bool = False, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        fluid.RMSProp.__init__(
            self, learning_rate, _limited(rho, "rho"), _limited(epsilon, "epsilon", below_one=False),
            _limited(momentum, "momentum", below_one=False), centered, flat(parameters), decay(weight_decay),
            grad_clip, name,
        )  # fmt: skip


class Lamb(Optimizer, fluid.LambOptimizer):
    """LAMB for large batches (You et al. 2020; `paddle.optimizer.Lamb`).

    `exclude_from_weight_decay_fn(param)` tells which parameters are free of `lamb_weight_decay`.
    """

    def __init__(
        self, learning_rate: Any = 0.001, lamb_weight_decay: float = 0.01, beta1: float = 0.9,
        beta2: float = 0.999, epsilon: float = 1e-6, parameters: Any = None, grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Any], bool] | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        fluid.LambOptimizer.__init__(
            self, learning_rate, lamb_weight_decay, _limited(beta1, "beta1"), _limited(beta2, "beta2"),
            _limited(epsilon, "epsilon", below_one=False), flat(parameters), None, grad_clip,
            exclude_from_weight_decay_fn, name,
        )  # fmt: skip


class _ByNeed:
    """Parameters made with `ParamAttr(need_clip=False)` do not take part."""

    def _wants(self, param: Parameter) -> bool:
        return bool(param.need_clip)


class ClipGradByValue(_ByNeed, GradientClipByValue):
    """Moves every element of a gradient into [min, max]; `min` is -max by default.

    Follows `paddle.nn.ClipGradByValue`.
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        super().__init__(max, min)


class ClipGradByNorm(_ByNeed, GradientClipByNorm):
    """Shortens each gradient alone to the norm `clip_norm` (`paddle.nn.ClipGradByNorm`)."""

    def __init__(self, clip_norm: float) -> None:
        super().__init__(clip_norm)


class ClipGradByGlobalNorm(_ByNeed, GradientClipByGlobalNorm):
    """Shortens all gradients together so that the norm of them all is at most `clip_norm`.

    Follows `paddle.nn.ClipGradByGlobalNorm`.
    """

    def __init__(self, clip_norm: float, group_name: str = "default_group") -> None:
        super().__init__(clip_norm, group_name)
