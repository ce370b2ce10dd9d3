"""Optimizers that step along the gradient or a velocity made of gradients."""

from __future__ import annotations

from typing import Any

from ...base.errors import ArgumentTypeError, TypeAssertion
from .base import Optimizer


def number(value: Any, name: str, optimizer: str) -> float:
    """`value` as a float; TypeError naming the optimizer's argument otherwise, in Fluid an AssertionError for None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        asserted = value is None and optimizer not in ("RMSProp", "Adadelta")
        raise (TypeAssertion if asserted else ArgumentTypeError)(
            f"{name} of {optimizer} must be a number, got {value!r}"
        )
    return float(value)


def numbers(optimizer: str, **values: Any) -> dict[str, Any]:
    """`number` of each of several arguments, by name."""
    return {name: number(value, name, optimizer) for name, value in values.items()}


class SGDOptimizer(Optimizer):
    """param -= learning_rate * grad (`fluid.optimizer.SGD`)."""

    type = "sgd"
    _attrs: dict[str, Any] = {}


class MomentumOptimizer(Optimizer):
    """velocity = momentum * velocity + grad; param -= learning_rate * velocity (`fluid.optimizer.Momentum`).

    With `use_nesterov` the step is learning_rate * (grad + momentum * velocity).
    """

    type = "momentum"
    _state_slots = {"Velocity": "velocity"}

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
        mu = number(momentum, "momentum", "Momentum")
        self._attrs = {"mu": mu, "use_nesterov": bool(use_nesterov)}


class LarsMomentumOptimizer(Optimizer):
    """Momentum whose rate for each layer follows the norms of its weights and gradient.

    The factor is `lars_coeff` * |param| / (|grad| + `lars_weight_decay` * |param|). Follows
    `fluid.optimizer.LarsMomentum` (You et al. 2017).
    """

    type = "lars_momentum"
    _state_slots = {"Velocity": "velocity"}

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
            **numbers("LarsMomentum", lars_coeff=lars_coeff, lars_weight_decay=lars_weight_decay),
        }


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
        self._attrs = numbers("Dpsgd", clip=clip, batch_size=batch_size, sigma=sigma)


SGD = SGDOptimizer
Momentum = MomentumOptimizer
LarsMomentum = LarsMomentumOptimizer
Dpsgd = DpsgdOptimizer
