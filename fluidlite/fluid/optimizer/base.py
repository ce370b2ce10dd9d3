"""`Optimizer`: gradients, clipping, regularization, accumulators and update operators of a program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...base import long_work
from ...base.dtypes import VarType, attribute, to_numpy
from ...base.errors import ArgumentError, ArgumentTypeError, TypeAssertion
from ...base.reports.texts import ShowsArguments
from ...eager import Tensor
from ...framework import (
    Block,
    Operator,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    mode,
    name_scope,
    program_guard,
)
from ...framework.gradients.backward import append_backward
from ..clip import GradientClipBase, append_gradient_clip_ops, error_clip_callback
from ..initializer import Constant
from ..layer_helper import LayerHelper
from ..regularizer import WeightDecayRegularizer, append_regularization_ops
from .eager import RATE, EagerSteps, eager_parameters
from .schedules import LearningRateDecay

ParamGrad = tuple[Parameter, "Variable | None"]


class Optimizer(ShowsArguments):
    """Base of all optimizers (`fluid.optimizer.Optimizer`).

    With eager Parameters in `parameter_list` it works on those: `minimize` then updates them at once, with the
    gradients that `loss.backward()` has computed.

    Args:
        learning_rate: a float, or a Variable of one element; for eager parameters a float or a `LearningRateDecay`.
        parameter_list: Parameters or names to train; by default all that are trainable. Needed in dygraph mode.
        regularization: added for parameters that have no regularizer of their own.
        grad_clip: a `GradientClipBase`.
        name: put into the names of accumulators.

    Raises:
        TypeError: an argument is of another type.
        AttributeError: no `parameter_list` in dygraph mode.
    """

    type = "optimizer"
    _in_eager_mode = staticmethod(mode.in_dygraph_mode)
    _schedules: tuple[Any, ...] = (LearningRateDecay,)
    """Classes of objects that give an eager step its learning rate."""
    _parameters_argument = "parameter_list"
    _always_shown = ("learning_rate",)

    def __init__(
        self,
        learning_rate: float | Variable | LearningRateDecay,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        if grad_clip is not None and not isinstance(grad_clip, GradientClipBase):
            raise ArgumentTypeError(
                f"'grad_clip' should be an instance of GradientClipBase's derived class, got {grad_clip!r}"
            )
        if regularization is not None and not isinstance(regularization, WeightDecayRegularizer):
            raise ArgumentTypeError(
                f"'regularization' should be a regularizer of fluid.regularizer, got {regularization!r}"
            )
        if isinstance(parameter_list, (str, Variable)):
            raise ArgumentTypeError(
                f"'{self._parameters_argument}' should be a list of Parameters or names, got {parameter_list!r:.60}"
            )
        if isinstance(learning_rate, (list, tuple)):
            raise ArgumentTypeError(
                f"learning rate should be a float, got a {type(learning_rate).__name__}; the Parameters are the "
                f"argument '{self._parameters_argument}'"
            )
        eager = eager_parameters(parameter_list, self._in_eager_mode(), self._parameters_argument)
        self._check_rate(learning_rate, eager is not None)
        self.regularization = regularization
        self._parameter_list: list[Any] | None = list(parameter_list) if parameter_list is not None else None
        self._eager = EagerSteps(self, eager) if eager is not None else None
        self._name = name
        self._grad_clip = grad_clip
        self._learning_rate: Any = learning_rate
        self._dtype: VarType | None = None
        self._learning_rate_map: dict[Program, Variable] = {}
        self._accumulators_holder: dict[str, Any] = {}
        self._param_device_map: dict[str, Any] = {}
        self._accumulators: dict[str, dict[str, Any]] = {}
        self._opti_names: dict[str, None] = {}
        self.helper: LayerHelper | None = None
        if isinstance(learning_rate, Variable):
            self._create_global_learning_rate()  # available before `minimize`, as in Fluid

    def __getattr__(self, name: str) -> Any:
        """The numbers of the update rule by Fluid's names: `_beta1`, `_epsilon`, `_momentum`, ..."""
        rule: dict[str, Any] = self.__dict__.get("_attrs", {})
        for called in (name[1:], _RULE_NAMES.get(name, "")):
            if name[:1] == "_" and called in rule:
                return rule[called]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def get_opti_var_name_list(self) -> list[str]:
        """The names of the existing accumulators."""
        return list(self._opti_names)

    @property
    def _opti_name_list(self) -> list[str]:
        return self.get_opti_var_name_list()

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> tuple[list[Operator], list[ParamGrad]]:
        """Append everything that makes a run of the program of `loss` a step of training.

        For eager parameters: update those of the constructor's `parameter_list` that have a gradient;
        `loss.backward()` has been called before, the other arguments change nothing.

        Args:
            loss: a float Variable of shape [1].
            startup_program: the Program for initial values of what the optimizer keeps; the default one if None.
            parameter_list: Parameters or names to train; all that are trainable if None.
            no_grad_set: Variables or names that get no gradient.

        Returns:
            The operators of updates (none of eager parameters), and the pairs of parameter and gradient.

        Raises:
            TypeError: `loss` is no Variable, or an eager one for an optimizer of programs, or the other way round.
        """
        steps = self._steps_for(loss)
        if steps is not None:
            pairs = steps.pairs()
            steps.step()
            return [], pairs
        params_grads = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, params_grads), params_grads

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[ParamGrad]:
        """Append the gradients of `loss`; returns pairs of parameter and gradient for `apply_gradients`.

        For eager parameters: the gradients that `loss.backward()` has computed.
        """
        steps = self._steps_for(loss)
        if steps is not None:
            return steps.pairs()
        self._dtype = loss.dtype
        chosen = parameter_list if parameter_list else self._parameter_list
        with program_guard(loss.block.program, startup_program):
            return list(append_backward(loss, chosen, no_grad_set, [error_clip_callback, *(callbacks or ())]))

    def apply_gradients(self, params_grads: Sequence[ParamGrad]) -> list[Operator]:
        """Append clipping, regularization and updates for the pairs of `backward`; returns the operators.

        For eager parameters: update them with the gradients in the pairs; returns [].
        """
        if self._eager is not None:
            self._eager.apply(params_grads)
            return []
        return self._append_updates(sorted(params_grads, key=lambda pair: pair[0].name))

    def _append_updates(self, pairs: Sequence[ParamGrad]) -> list[Operator]:
        """`apply_gradients` in the current program, in the order of the pairs."""
        clip = self._grad_clip
        with default_main_program()._gradients_guard(), long_work.collector_paused():
            if clip is None:
                pairs = append_gradient_clip_ops(pairs)
            elif self._eager is None or not clip._is_eager:
                pairs = clip(pairs)
            pairs = append_regularization_ops(pairs, self.regularization)
            return self._create_optimization_pass(pairs)

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Sequence[ParamGrad]
    ) -> list[Operator]:
        """`apply_gradients` in the program of `loss`."""
        if self._steps_for(loss) is not None:
            return self.apply_gradients(params_grads)
        with program_guard(loss.block.program, startup_program or default_startup_program()):
            return self.apply_gradients(params_grads)

    def current_step_lr(self) -> Any:
        """The learning rate of the last eager step, or of the first if there was none yet.

        Raises AssertionError for an optimizer of programs, which has none: fetch the variable instead.
        """
        steps = self._only_eager("current_step_lr", "fetch the learning rate variable")
        rate = self._learning_rate
        as_stored = to_numpy(self._dtype or VarType.FP32).type
        if steps.rate is not None:
            return as_stored(steps.rate)
        if isinstance(rate, float):
            return rate
        return rate._peek() if rate.plain else as_stored(rate._peek())

    def state_dict(self) -> dict[str, Any]:
        """The accumulators of eager training as tensors by name, and where the schedule of the rate stands.

        A schedule gives `LR_Scheduler`, and `global_step` if it counts steps. Raises AssertionError for an optimizer
        of programs.
        """
        steps = self._only_eager("state_dict", "use fluid.save, which keeps the accumulators too")
        state: dict[str, Any] = dict(steps.accumulators())
        if isinstance(self._learning_rate, self._schedules):
            state["LR_Scheduler"] = self._learning_rate.state_dict()
            step = getattr(self._learning_rate, "step_num", None)
            if step is not None:
                state["global_step"] = Tensor(np.array([step], "int32"), "global_step")
        return state

    def set_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()` of arrays or tensors, before the first eager step or later.

        Raises AssertionError for an optimizer of programs and for missing accumulators, KeyError if the state of the
        schedule is missing, ValueError for another shape or dtype; TypeError if `state_dict` is no dict.
        """
        steps = self._only_eager("set_dict", "use fluid.load")
        if not isinstance(state_dict, Mapping):
            raise ArgumentTypeError(f"set_dict takes what state_dict() gave, got {type(state_dict).__name__}")
        state = dict(state_dict)
        schedule, count = state.pop("LR_Scheduler", None), state.pop("global_step", None)
        scheduled = isinstance(self._learning_rate, self._schedules)
        if scheduled and schedule is None:
            raise KeyError(
                "LR_Scheduler: the state dict was saved by an optimizer without a schedule of its rate"
            )
        steps.load(state)
        if scheduled:
            self._learning_rate.set_dict(schedule)
            if count is not None and hasattr(self._learning_rate, "step_num"):
                self._learning_rate.step_num = int(np.asarray(count).reshape(-1)[0])

    def clear_gradients(self) -> None:
        """Set the gradients of the eager parameters to zero.

        Raises AssertionError for an optimizer of programs, where gradients are computed anew in each run.
        """
        self._only_eager("clear_gradients", "nothing needs clearing").clear_gradients()

    def _only_eager(self, what: str, instead: str) -> EagerSteps:
        if self._eager is None:
            raise AssertionError(
                f"{type(self).__name__}.{what} works in dygraph mode only (We Only support {what} in imperative "
                f"mode); in a static program {instead}"
            )
        return self._eager

    def _steps_for(self, loss: Any) -> EagerSteps | None:
        """The state that updates eager parameters; None for an optimizer of programs.

        Raises TypeError if `loss` is of the other kind.
        """
        steps = self._eager
        if isinstance(loss, Tensor):
            if steps is None:
                raise ArgumentTypeError(
                    f"the loss {loss.name!r} is an eager tensor, and this {type(self).__name__} trains programs: "
                    "give it the parameters as parameter_list=model.parameters()"
                )
            return steps
        if not isinstance(loss, Variable):
            raise TypeAssertion(f"The loss should be a Variable, got {type(loss).__name__} ({loss!r:.60})")
        if steps is not None:
            raise ArgumentTypeError(
                f"the loss {loss.name!r} belongs to a program, and this {type(self).__name__} trains eager parameters; "
                "make another optimizer for the program"
            )
        return None

    def _check_rate(self, rate: Any, eager: bool) -> None:
        """Raise TypeError unless the learning rate is of a kind that this mode has."""
        if isinstance(rate, float) or (
            not eager and isinstance(rate, Variable) and not isinstance(rate, Tensor)
        ):
            return
        if eager and isinstance(rate, self._schedules):
            return
        kinds = self._schedules[0].__name__ if eager else "Variable"
        error = TypeAssertion if rate is None else ArgumentTypeError
        raise error(f"learning rate should be float or {kinds}, got {type(rate)} here")

    def _next_rate(self) -> float:
        """The learning rate of the eager step about to be taken; a schedule moves on.

        A number becomes a tensor in the first step, which counts from then on, as in Fluid.
        """
        rate = self._learning_rate
        if not isinstance(rate, float):
            return float(attribute(float(rate())))
        held = self._eager.held_rate() if self._eager is not None else None
        return float(attribute(rate)) if held is None else held

    def _given(self, value: Variable) -> Variable:
        """A Variable given instead of a number; for an eager tensor, its variable in the private program."""
        if self._eager is not None and isinstance(value, Tensor):
            return self._eager.stand_in(value, default_main_program().global_block())
        return value

    def _state_name(self, stem: str) -> str:
        if self._eager is not None:
            return self._eager.name(stem)
        return default_main_program().global_block()._new_name(stem)

    def _create_global_learning_rate(self) -> None:
        """Make the variable that holds the rate, once for each program."""
        program = default_main_program()
        if program in self._learning_rate_map:
            return
        rate = self._learning_rate
        if isinstance(rate, Variable):
            self._learning_rate_map[program] = rate
            return
        start = rate if isinstance(rate, float) else 0.0  # a schedule overwrites it in each step
        self._learning_rate_map[program] = self._create_state(
            self._state_name(RATE), [1], self._dtype or VarType.FP32, start, stop_gradient=True
        )

    def _global_learning_rate(self, program: Program | None = None) -> Any:
        """The variable that holds the rate in `program`, or the tensor that eager steps use; None before either."""
        found = self._learning_rate_map.get(default_main_program() if program is None else program)
        return self._eager.rate_tensor() if found is None and self._eager and program is None else found

    def _create_state(
        self, name: str, shape: Sequence[int], dtype: Any, value: float, **options: Any
    ) -> Variable:
        """A persistable variable of the main program that the startup program fills with `value`."""
        helper = self.helper or LayerHelper(type(self).__name__)
        var = helper.create_global_variable(
            persistable=True, name=name, shape=list(shape), dtype=dtype, type=VarType.LOD_TENSOR, **options
        )
        helper.set_variable_initializer(var, Constant(value))
        return var

    def _add_accumulator(
        self,
        name: str,
        param: Parameter,
        dtype: Any = None,
        fill_value: float = 0.0,
        shape: Sequence[int] | None = None,
    ) -> Variable:
        """Make accumulator `name` of `param`, by default of its shape and type and zero at first.

        Raises ValueError if there is one already.
        """
        key = self._key(name)
        mine = self._accumulators.setdefault(key, {})
        if param.name in mine:
            raise ArgumentError(
                f"Accumulator {key} already exists for parameter {param.name}: "
                "use another optimizer object for a second minimize()"
            )
        var = self._create_state(
            self._state_name(f"{param.name}_{key}"),
            param.shape if shape is None else shape,
            dtype or param.dtype,
            fill_value,
            belong_to_optimizer=True,
        )
        self._opti_names[var.name] = None
        mine[param.name] = var
        return var

    def _get_accumulator(self, name: str, param: Parameter) -> Variable:
        """Accumulator `name` of `param`; raises ValueError if it was not made."""
        result = self._accumulators.get(self._key(name), {}).get(param.name)
        if result is None:
            raise ArgumentError(f"Accumulator {self._key(name)} does not exist for parameter {param.name}")
        return result

    def _key(self, name: str) -> str:
        return f"{self._name}_{name}" if self._name is not None else name

    def _create_param_lr(self, param_and_grad: Any) -> Variable:
        """The rate for one parameter: the optimizer's times the `learning_rate` of its ParamAttr."""
        param = param_and_grad[0]
        factor = param.optimize_attr["learning_rate"]
        if isinstance(factor, Variable):
            return self._given(factor)
        base = self._global_learning_rate()
        assert base is not None
        if factor == 1.0:
            return base
        with default_main_program()._lr_schedule_guard(is_with_opt=True), name_scope("scale_with_param_lr"):
            return base * factor

    _state_slots: ClassVar[dict[str, str]] = {}
    """The accumulator of each parameter by slot of the update operator."""

    _attrs: dict[str, Any] | None = None
    """The attributes of all updates."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Set the names of the class's accumulators as Fluid's attributes: `_moment1_acc_str`, ..."""
        super().__init_subclass__(**options)
        for name in cls.__dict__.get("_state_slots", {}).values():
            setattr(cls, f"_{name.strip('_').removesuffix('_acc')}_acc_str", name)

    def _create_accumulators(self, block: Block, parameters: list[Parameter]) -> None:
        """Make the accumulators of `parameters`: those of `_state_slots`, with zeros."""
        for param in parameters:
            for name in self._state_slots.values():
                self._add_accumulator(name, param)

    def _state_of(self, param: Parameter) -> dict[str, Variable]:
        """The accumulators of a parameter by slot."""
        return {slot: self._get_accumulator(name, param) for slot, name in self._state_slots.items()}

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        """Append the update of one parameter, by default from `_state_slots` and `_attrs`."""
        if self._attrs is None:
            raise NotImplementedError(f"{type(self).__name__} does not say how to update a parameter")
        return self._update(block, param_and_grad, self._state_of(param_and_grad[0]), self._attrs)

    def _finish_update(self, block: Block, parameters_and_grads: Sequence[ParamGrad]) -> None:
        """Append operators after all updates; none by default."""

    def _create_optimization_pass(self, parameters_and_grads: Sequence[ParamGrad]) -> list[Operator]:
        """Append the update of each trainable parameter with a gradient; returns the operators appended."""
        program = default_main_program()
        block = program.current_block()
        start = len(block.ops)
        self.helper = LayerHelper(type(self).__name__)
        updated = [pair for pair in parameters_and_grads if pair[1] is not None and pair[0].trainable]
        self._create_accumulators(block, [param for param, _ in updated])
        self._create_global_learning_rate()
        for pair in updated:
            with program._optimized_guard(list(pair)), name_scope("optimizer"):
                self._append_optimize_op(block, pair)
        self._finish_update(block, updated)
        return block.ops[start:]

    def _update(
        self,
        block: Block,
        param_and_grad: Any,
        state: dict[str, Variable],
        attrs: dict[str, Any] | None = None,
        rate: bool = True,
        keeps: Sequence[str] = (),
    ) -> Operator:
        """Append operator `type` with accumulators `state` by slot; all but `keeps` are written back."""
        param, grad = param_and_grad
        inputs: dict[str, Any] = {"Param": param, "Grad": grad, **state}
        if rate:
            inputs["LearningRate"] = self._create_param_lr(param_and_grad)
        written = {slot: var for slot, var in state.items() if slot not in keeps}
        outputs = {
            "ParamOut": param,
            **{_OUTPUTS.get(slot, slot + "Out"): var for slot, var in written.items()},
        }
        return block.append_op(type=self.type, inputs=inputs, outputs=outputs, attrs=attrs)


_RULE_NAMES = {"_rho": "decay", "_momentum": "mu", "_nesterov": "use_nesterov"}
"""Attributes with another name in optimizers than in their operators."""

_OUTPUTS = {"SquaredAccumulator": "SquaredAccumOut", "LinearAccumulator": "LinearAccumOut"}
"""Output slots that are not called after their input slot."""
