"""`fluid.contrib.extend_optimizer`: optimizers with decoupled weight decay (Loshchilov and Hutter 2019)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...framework import (
    Operator,
    Parameter,
    Program,
    Variable,
    default_startup_program,
    name_scope,
    program_guard,
)
from .. import layers
from ..optimizer import Optimizer

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["extend_with_decoupled_weight_decay"]

_SCOPE = "weight decay"


class DecoupledWeightDecay:
    """A mixin of optimizers that subtracts `coeff` times each parameter before its update.

    Args:
        coeff: a float or a Variable of one element.
        apply_decay_param_fun: a predicate of parameters' names; by default all decay.

    Raises TypeError for any other `coeff`.
    """

    def __init__(
        self,
        coeff: float | Variable = 0.0,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(coeff, (float, Variable)):
            raise TypeError(f"coeff should be float or Variable, got {coeff!r}")
        self._params_name: set[str] = set()
        self._apply_decay_param_fun = apply_decay_param_fun
        self._coeff = coeff
        super().__init__(**kwargs)

    def _scale_parameters(self, params_and_grads: Sequence[tuple[Parameter, Variable | None]]) -> list[Any]:
        """Append the decay of the chosen parameters with a gradient; returns (parameter, gradient, decay) triples."""
        chosen = self._apply_decay_param_fun or (lambda name: True)
        if isinstance(self._coeff, float) and self._coeff == 0.0:
            return []
        scaled = []
        for param, grad in params_and_grads:
            if grad is None or not chosen(param.name):
                continue
            with param.block.program._optimized_guard([param, grad]), name_scope(_SCOPE):
                scaled.append((param, grad, param * self._coeff))
            self._params_name.add(param.name)
        return scaled

    def backward(self, **kwargs: Any) -> Any:
        return super().backward(**kwargs)  # type: ignore[misc]

    def apply_optimize(self, **kwargs: Any) -> Any:
        return super().apply_optimize(**kwargs)  # type: ignore[misc]

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> tuple[list[Operator], list[Any]]:
        """Append gradients, decay and updates; returns the update operators and the pairs of parameter and gradient."""
        pairs = self.backward(
            loss=loss,
            startup_program=startup_program,
            parameter_list=parameter_list,
            no_grad_set=no_grad_set,
        )
        with program_guard(loss.block.program, startup_program or default_startup_program()):
            decays = self._scale_parameters(pairs)
        for param, grad, decay in decays:
            with param.block.program._optimized_guard([param, grad]), name_scope(_SCOPE):
                layers.assign(layers.elementwise_sub(param, decay), param)
        return self.apply_optimize(loss=loss, startup_program=startup_program, params_grads=pairs), pairs

    def __str__(self) -> str:
        return f"Weight Decay, params: {','.join(sorted(self._params_name))}"


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Any]:
    """A subclass of an optimizer with decoupled weight decay (`fluid.contrib.extend_with_decoupled_weight_decay`).

    Its constructor takes `weight_decay`, a float or a Variable of one element, `apply_decay_param_fun`, a predicate of
    parameters' names, and the arguments of `base_optimizer` by keyword. In each step `weight_decay` times a parameter
    is subtracted from it before its update. Raises TypeError if `base_optimizer` is no subclass of Optimizer.
    """
    if not issubclass(base_optimizer, Optimizer):
        raise TypeError("The input(base_optimizer) should be a derived class of Optimizer.")

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecay, base_optimizer):  # type: ignore[misc,valid-type]
        def __init__(
            self,
            weight_decay: float | Variable,
            apply_decay_param_fun: Callable[[str], bool] | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(weight_decay, apply_decay_param_fun, **kwargs)

    return OptimizerWithDecoupledWeightDecay
