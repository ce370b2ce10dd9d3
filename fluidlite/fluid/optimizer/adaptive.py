"""The rules of optimizers: plain descent, momentum, and steps scaled by past gradients or by norms of parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.errors import ArgumentTypeError, TypeAssertion
from ...framework import Block, Operator, Parameter, Variable, name_scope
from .base import Optimizer, ParamGrad


class AdamOptimizer(Optimizer):
    """Adam (Kingma and Ba 2015; `fluid.optimizer.Adam`).

    Args:
        learning_rate: a number, a Variable of a schedule, or in dygraph mode a `LearningRateDecay`.
        beta1, beta2: how much of the moments stays in a step; numbers, or Variables of one element.
        epsilon: added to the root of the second moment.
        parameter_list: the parameters; needed in dygraph mode, in programs by default all that are trainable.
        regularization: `L1Decay` or `L2Decay`, for parameters without one of their own.
        grad_clip: `GradientClipByGlobalNorm`, `GradientClipByNorm` or `GradientClipByValue`.
        name: the prefix of the names of moments.
        lazy_mode: of a sparse gradient, update the rows that it has only.

    Raises:
        TypeError: for arguments of other types.
        AttributeError: `parameter_list` is missing in dygraph mode.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [None, 1], "float32")
        >>> loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 1) - x))
        >>> steps, pairs = fluid.optimizer.Adam(learning_rate=0.1).minimize(loss)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.run(fluid.default_startup_program())
        []
        >>> feed = {"x": np.array([[1], [2]], "float32")}
        >>> losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(60)]
        >>> losses[-1] < 0.1 * losses[0]
        True
    """

    type = "adam"
    _state_slots = {
        "Moment1": "moment1",
        "Moment2": "moment2",
        "Beta1Pow": "beta1_pow_acc",
        "Beta2Pow": "beta2_pow_acc",
    }

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: float = 1e-8,
        parameter_list: Any = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        lazy_mode: bool = False,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._beta1, self._beta2 = beta1, beta2
        for label, beta in (("beta1", beta1), ("beta2", beta2)):
            if not isinstance(beta, Variable):
                number(beta, label, "Adam")
        self._epsilon = number(epsilon, "epsilon", "Adam")
        self._lazy_mode = bool(lazy_mode)

    def _create_accumulators(self, block: Block, parameters: list[Parameter]) -> None:
        for param in parameters:
            self._add_accumulator("moment1", param)
            self._add_accumulator("moment2", param)
            for name, beta, usual in (("beta1", self._beta1, 0.9), ("beta2", self._beta2, 0.999)):
                start = usual if isinstance(beta, Variable) else float(beta)
                self._add_accumulator(f"{name}_pow_acc", param, fill_value=start, shape=[1])

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        state = self._state_of(param_and_grad[0])
        attrs: dict[str, Any] = {"epsilon": self._epsilon, "lazy_mode": self._lazy_mode}
        tensors = []
        for label, slot, beta in (
            ("beta1", "Beta1Tensor", self._beta1),
            ("beta2", "Beta2Tensor", self._beta2),
        ):
            if isinstance(beta, Variable):
                state[slot] = self._given(beta)
                tensors.append(slot)
            else:
                attrs[label] = float(beta)
        return self._update(block, param_and_grad, state, attrs, keeps=tensors)


class LambOptimizer(AdamOptimizer):
    """LAMB for large batches (You et al. 2020; `fluid.optimizer.Lamb`).

    `exclude_from_weight_decay_fn(param)` is true for parameters without `lamb_weight_decay`.
    """

    type = "lamb"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        parameter_list: Any = None,
        regularization: Any = None,
        grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Parameter], bool] | None = None,
        name: str | None = None,
    ) -> None:
        beta1, beta2 = number(beta1, "beta1", "Lamb"), number(beta2, "beta2", "Lamb")
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameter_list, regularization, grad_clip, name
        )
        self._weight_decay = number(lamb_weight_decay, "lamb_weight_decay", "Lamb")
        self._exclude_from_weight_decay_fn = exclude_from_weight_decay_fn

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        param = param_and_grad[0]
        free = self._exclude_from_weight_decay_fn is not None and self._exclude_from_weight_decay_fn(
            param.origin
        )
        attrs = {
            "beta1": self._beta1,
            "beta2": self._beta2,
            "epsilon": self._epsilon,
            "weight_decay": 0.0 if free else self._weight_decay,
        }
        return self._update(
            block, param_and_grad, self._state_of(param), attrs, keeps=("Beta1Pow", "Beta2Pow")
        )


class AdamaxOptimizer(Optimizer):
    """Adam with the infinity norm (Kingma and Ba 2015; `fluid.optimizer.Adamax`)."""

    type = "adamax"
    _attrs: dict[str, Any]
    _state_slots = {"Moment": "moment", "InfNorm": "inf_norm", "Beta1Pow": "beta1_pow_acc"}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameter_list: Any = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = numbers("Adamax", beta1=beta1, beta2=beta2, epsilon=epsilon)

    def _create_accumulators(self, block: Block, parameters: list[Parameter]) -> None:
        for param in parameters:
            self._add_accumulator("moment", param)
            self._add_accumulator("inf_norm", param)
            self._add_accumulator("beta1_pow_acc", param, fill_value=self._attrs["beta1"], shape=[1])

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        state = self._state_of(param_and_grad[0])
        return self._update(block, param_and_grad, state, self._attrs, keeps=("Beta1Pow",))

    def _finish_update(self, block: Block, parameters_and_grads: Sequence[ParamGrad]) -> None:
        for param, grad in parameters_and_grads:
            power = self._get_accumulator("beta1_pow_acc", param)
            with param.block.program._optimized_guard([param, grad]), name_scope("adamax"):
                block.append_op(
                    type="scale",
                    inputs={"X": power},
                    outputs={"Out": power},
                    attrs={"scale": self._attrs["beta1"]},
                )


class AdagradOptimizer(Optimizer):
    """Steps divided by the root of summed squared gradients (Duchi 2011; `fluid.optimizer.Adagrad`)."""

    type = "adagrad"
    _state_slots = {"Moment": "moment"}

    def __init__(
        self,
        learning_rate: Any,
        epsilon: float = 1e-6,
        parameter_list: Any = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = numbers("Adagrad", epsilon=epsilon)
        self.initial_accumulator_value = number(
            initial_accumulator_value, "initial_accumulator_value", "Adagrad"
        )

    def _create_accumulators(self, block: Block, parameters: list[Parameter]) -> None:
        for param in parameters:
            self._add_accumulator("moment", param, fill_value=self.initial_accumulator_value)


class DecayedAdagradOptimizer(Optimizer):
    """Adagrad with squared gradients decayed by `decay` (`fluid.optimizer.DecayedAdagrad`)."""

    type = "decayed_adagrad"
    _state_slots = {"Moment": "moment"}

    def __init__(
        self,
        learning_rate: Any,
        decay: float = 0.95,
        epsilon: float = 1e-6,
        parameter_list: Any = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = numbers("DecayedAdagrad", decay=decay, epsilon=epsilon)


class AdadeltaOptimizer(Optimizer):
    """Steps as long as recent steps, divided by recent gradients (Zeiler 2012; `fluid.optimizer.Adadelta`).

    `learning_rate` is taken but, as in Fluid 1.8, not used.
    """

    type = "adadelta"
    _state_slots = {"AvgSquaredGrad": "_avg_squared_grad", "AvgSquaredUpdate": "_avg_squared_update"}

    def __init__(
        self,
        learning_rate: Any,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameter_list: Any = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = numbers("Adadelta", epsilon=epsilon, rho=rho)

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        state = self._state_of(param_and_grad[0])
        return self._update(block, param_and_grad, state, self._attrs, rate=False)


class RMSPropOptimizer(Optimizer):
    """Steps divided by the root of a fading mean of squared gradients (`fluid.optimizer.RMSProp`).

    `centered` takes the square of the mean gradient off; `momentum` makes a velocity of the steps.
    """

    type = "rmsprop"
    _state_slots = {"Moment": "momentum", "MeanSquare": "mean_square", "MeanGrad": "mean_grad"}

    def __init__(
        self,
        learning_rate: Any,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameter_list: Any = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = {
            "decay": number(rho, "rho", "RMSProp"),
            "epsilon": number(epsilon, "epsilon", "RMSProp"),
            "momentum": number(momentum, "momentum", "RMSProp"),
            "centered": bool(centered),
        }


class FtrlOptimizer(Optimizer):
    """Follow the regularised leader (McMahan 2013; `fluid.optimizer.Ftrl`).

    As in Fluid 1.8, `l1` is used as `l2` as well, whose own value is ignored.
    """

    type = "ftrl"
    _state_slots = {"SquaredAccumulator": "squared", "LinearAccumulator": "linear"}

    def __init__(
        self,
        learning_rate: Any,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        parameter_list: Any = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        # None is the operator's default.
        number(0.0 if l2 is None else l2, "l2", "Ftrl")
        first = number(0.0 if l1 is None else l1, "l1", "Ftrl")
        power = number(-0.5 if lr_power is None else lr_power, "lr_power", "Ftrl")
        self._attrs = {"l1": first, "l2": first, "lr_power": power}


Adam = AdamOptimizer
Lamb = LambOptimizer
Adamax = AdamaxOptimizer
Adagrad = AdagradOptimizer
DecayedAdagrad = DecayedAdagradOptimizer
Adadelta = AdadeltaOptimizer
RMSProp = RMSPropOptimizer
Ftrl = FtrlOptimizer


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
