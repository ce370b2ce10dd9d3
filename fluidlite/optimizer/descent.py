"""Optimizers that step along the gradient or a velocity made of gradients."""

from __future__ import annotations

from typing import Any

from ..base.errors import ArgumentTypeError
from ..framework import Block, Operator, Parameter
from .base import Optimizer


def number(value: Any, name: str, optimizer: str) -> float:
    """`value` as a float; TypeError naming the optimizer's argument otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(f"{name} of {optimizer} must be a number, got {value!r}")
    return float(value)


class SGDOptimizer(Optimizer):
    """param -= learning_rate * grad (`fluid.optimizer.SGD`)."""

    type = "sgd"

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        return self._update(block, param_and_grad, {})


class MomentumOptimizer(Optimizer):
    """velocity = momentum * velocity + grad; param -= learning_rate * velocity (`fluid.optimizer.Momentum`).

    With `use_nesterov` the step is learning_rate * (grad + momentum * velocity).
    """

    type = "momentum"
    _velocity_acc_str = "velocity"

    def __init__(
        self,
        learning_rate: Any,
        momentum: float,
        parameter_list: Any = None,
        use_nesterov: bool = False,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._momentum = number(momentum, "momentum", "Momentum")
        self._use_nesterov = bool(use_nesterov)

    def _create_accumulators(self, block: Block, parameters: list[Parameter]) -> None:
        for param in parameters:
            self._add_accumulator("velocity", param)

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        state = {"Velocity": self._get_accumulator("velocity", param_and_grad[0])}
        attrs = {"mu": self._momentum, "use_nesterov": self._use_nesterov}
        return self._update(block, param_and_grad, state, attrs)


class LarsMomentumOptimizer(Optimizer):
    """Momentum whose rate for each layer follows the norms of its weights and gradient.

    The factor is `lars_coeff` * |param| / (|grad| + `lars_weight_decay` * |param|). Follows
    `fluid.optimizer.LarsMomentum` (You et al. 2017).
    """

    type = "lars_momentum"
    _velocity_acc_str = "velocity"

    def __init__(
        self,
        learning_rate: Any,
        momentum: float,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        parameter_list: Any = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = {
            "mu": number(momentum, "momentum", "LarsMomentum"),
            "lars_coeff": number(lars_coeff, "lars_coeff", "LarsMomentum"),
            "lars_weight_decay": number(lars_weight_decay, "lars_weight_decay", "LarsMomentum"),
        }

    def _create_accumulators(self, block: Block, parameters: list[Parameter]) -> None:
        for param in parameters:
            self._add_accumulator("velocity", param)

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        state = {"Velocity": self._get_accumulator("velocity", param_and_grad[0])}
        return self._update(block, param_and_grad, state, self._attrs)


class DpsgdOptimizer(Optimizer):
    """SGD with differential privacy: gradients are clipped and get noise (`fluid.optimizer.Dpsgd`).

    The noise has the deviation `sigma` * `clip` / `batch_size` (Abadi et al. 2016).
    """

    type = "dpsgd"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        clip: float = 0.9,
        batch_size: float = 0.999,
        sigma: float = 1e-8,
        parameter_list: Any = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list)
        self._attrs = {
            "clip": number(clip, "clip", "Dpsgd"),
            "batch_size": number(batch_size, "batch_size", "Dpsgd"),
            "sigma": number(sigma, "sigma", "Dpsgd"),
        }

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        return self._update(block, param_and_grad, {}, self._attrs)


SGD = SGDOptimizer
Momentum = MomentumOptimizer
LarsMomentum = LarsMomentumOptimizer
Dpsgd = DpsgdOptimizer
