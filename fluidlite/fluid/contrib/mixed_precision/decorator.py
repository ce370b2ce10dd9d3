"""`OptimizerWithMixedPrecision`: an optimizer whose programs compute in float16 where it is safe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ....framework import (
    Operator,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
)
from ... import layers
from ...optimizer import Optimizer
from .fp16_utils import AutoMixedPrecisionLists, rewrite_program, update_loss_scaling, update_role_var_grad

__all__ = ["decorate"]


class OptimizerWithMixedPrecision:
    """An optimizer for mixed precision, made by `decorate`; the arguments are the same."""

    def __init__(
        self,
        optimizer: Optimizer,
        amp_lists: AutoMixedPrecisionLists,
        init_loss_scaling: float,
        use_dynamic_loss_scaling: bool,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int,
        incr_ratio: float,
        decr_ratio: float,
    ) -> None:
        self._optimizer = optimizer
        self._amp_lists = amp_lists
        self._param_grads: Any = None
        self._train_program = default_main_program()
        self._startup_prog = default_startup_program()
        self._scaled_loss: Variable | None = None
        self._loss_scaling = _state("loss_scaling", init_loss_scaling, "float32")
        self._use_dynamic_loss_scaling = use_dynamic_loss_scaling
        if use_dynamic_loss_scaling:
            self._incr_every_n_steps = layers.fill_constant([1], "int32", incr_every_n_steps)
            self._decr_every_n_nan_or_inf = layers.fill_constant([1], "int32", decr_every_n_nan_or_inf)
            self._incr_ratio, self._decr_ratio = incr_ratio, decr_ratio
            self._num_good_steps = _state("num_good_steps", 0, "int32")
            self._num_bad_steps = _state("num_bad_steps", 0, "int32")
        if isinstance(optimizer._learning_rate, float):
            optimizer._create_global_learning_rate()

    def get_loss_scaling(self) -> Variable:
        """The scale of the loss in the current step, float32 [1]."""
        return self._loss_scaling

    def get_scaled_loss(self) -> Variable | None:
        """The loss times its scale; None before `backward`."""
        return self._scaled_loss

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[tuple[Parameter, Variable]]:
        """Rewrite the program to float16 and append the gradients of the scaled `loss`.

        Returns pairs of parameter and gradient; the gradients are unscaled, float32.
        """
        rewrite_program(self._train_program, self._amp_lists)
        self._scaled_loss = loss * self._loss_scaling
        self._params_grads: Any = self._optimizer.backward(
            self._scaled_loss, startup_program, parameter_list, no_grad_set, callbacks
        )
        update_role_var_grad(self._train_program, self._params_grads)
        scaled = []
        for param, grad in self._params_grads:
            with self._train_program._optimized_guard([param, grad]):
                scaled.append((param, grad / self._loss_scaling))
        return scaled

    def apply_gradients(self, scaled_params_grads: Sequence[tuple[Parameter, Variable]]) -> list[Operator]:
        """Append the updates for the pairs of `backward` and that of the scale; returns the update operators.

        With dynamic scaling, a step whose gradients are not all finite updates with gradients of zero.
        """
        if self._use_dynamic_loss_scaling:
            sums = [layers.reduce_sum(grad) for _, grad in scaled_params_grads]
            finite = layers.isfinite(layers.reduce_sum(layers.concat(sums)))
            update_loss_scaling(
                finite,
                self._loss_scaling,
                self._num_good_steps,
                self._num_bad_steps,
                self._incr_every_n_steps,
                self._decr_every_n_nan_or_inf,
                self._incr_ratio,
                self._decr_ratio,
            )
            with layers.Switch() as step:
                with step.case(finite):
                    pass
                with step.default():
                    for _, grad in scaled_params_grads:
                        layers.assign(layers.zeros_like(grad), grad)
        return self._optimizer.apply_gradients(scaled_params_grads)

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> tuple[list[Operator], list[tuple[Parameter, Variable]]]:
        """`backward` and `apply_gradients`; returns the update operators and the pairs of parameter and gradient."""
        scaled = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_gradients(scaled), scaled


def _state(name: str, value: float, dtype: str) -> Variable:
    unused = default_main_program().global_block()._new_name(name)
    return layers.create_global_var([1], value=value, dtype=dtype, persistable=True, name=unused)


def decorate(
    optimizer: Optimizer,
    amp_lists: AutoMixedPrecisionLists | None = None,
    init_loss_scaling: float = 2**15,
    incr_every_n_steps: int = 1000,
    decr_every_n_nan_or_inf: int = 2,
    incr_ratio: float = 2.0,
    decr_ratio: float = 0.8,
    use_dynamic_loss_scaling: bool = True,
) -> OptimizerWithMixedPrecision:
    """`optimizer` for training in mixed precision (`fluid.contrib.mixed_precision.decorate`; programs only).

    Parameters and updates are float32; products and convolutions compute in float16 (a CPU stores float16 and computes
    in float32). The loss is multiplied by a scale, so that small gradients do not become 0.

    Args:
        amp_lists: the operators that compute in float16; the default lists if None.
        init_loss_scaling: the initial scale.
        incr_every_n_steps: after more consecutive finite steps than this, the scale is multiplied by `incr_ratio`.
        decr_every_n_nan_or_inf: after more consecutive other steps than this, it is multiplied by `decr_ratio`, but
            kept at 1 or more.
        use_dynamic_loss_scaling: False for a constant scale.
    """
    return OptimizerWithMixedPrecision(
        optimizer,
        AutoMixedPrecisionLists() if amp_lists is None else amp_lists,
        init_loss_scaling,
        use_dynamic_loss_scaling,
        incr_every_n_steps,
        decr_every_n_nan_or_inf,
        incr_ratio,
        decr_ratio,
    )
