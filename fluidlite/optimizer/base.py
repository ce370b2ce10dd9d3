"""`Optimizer`: gradients, clipping, regularization, accumulators and update operators of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from ..backward import append_backward
from ..base import unique_name
from ..base.dtypes import VarType
from ..clip import GradientClipBase, append_gradient_clip_ops, error_clip_callback
from ..framework import (
    Block,
    Operator,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    name_scope,
    program_guard,
)
from ..initializer import Constant
from ..layer_helper import LayerHelper
from ..regularizer import WeightDecayRegularizer, append_regularization_ops

ParamGrad = tuple[Parameter, "Variable | None"]


class Optimizer:
    """Base of all optimizers (`fluid.optimizer.Optimizer`).

    Args:
        learning_rate: a float, or a Variable of one element.
        parameter_list: Parameters or names to train; by default all that are trainable.
        regularization: added for parameters that have no regularizer of their own.
        grad_clip: a `GradientClipBase`.
        name: put into the names of accumulators.

    Raises:
        TypeError: an argument is of another type.
    """

    type = "optimizer"

    def __init__(
        self,
        learning_rate: float | Variable,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(learning_rate, (float, Variable)):
            raise TypeError(f"learning rate should be float or Variable, got {type(learning_rate)} here")
        if grad_clip is not None and not isinstance(grad_clip, GradientClipBase):
            raise TypeError(
                f"'grad_clip' should be an instance of GradientClipBase's derived class, got {grad_clip!r}"
            )
        if regularization is not None and not isinstance(regularization, WeightDecayRegularizer):
            raise TypeError(
                f"'regularization' should be a regularizer of fluid.regularizer, got {regularization!r}"
            )
        if isinstance(parameter_list, (str, Variable)):
            raise TypeError(
                f"'parameter_list' should be a list of Parameters or names, got {parameter_list!r:.60}"
            )
        self.regularization = regularization
        self._parameter_list = list(parameter_list) if parameter_list is not None else None
        self._name = name
        self._grad_clip = grad_clip
        self._learning_rate = learning_rate
        self._dtype: VarType | None = None
        self._learning_rate_map: dict[Program, Variable] = {}
        self._accumulators: dict[str, dict[str, Variable]] = {}
        self._opti_name_list: list[str] = []
        self.helper: LayerHelper | None = None

    def get_opti_var_name_list(self) -> list[str]:
        """The names of the accumulators made so far."""
        return self._opti_name_list

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
    ) -> tuple[list[Operator], list[ParamGrad]]:
        """Append everything that makes a run of the program of `loss` (shape [1]) a step of training.

        Returns the update operators and the pairs of parameter and gradient. Raises TypeError if `loss` is
        no Variable.
        """
        params_grads = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, params_grads), params_grads

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[ParamGrad]:
        """Append the gradients of `loss`; returns pairs of parameter and gradient for `apply_gradients`."""
        if not isinstance(loss, Variable):
            raise TypeError(f"The loss should be a Variable, got {type(loss).__name__} ({loss!r:.60})")
        self._dtype = loss.dtype
        chosen = parameter_list if parameter_list else self._parameter_list
        with program_guard(loss.block.program, startup_program):
            return list(append_backward(loss, chosen, no_grad_set, [error_clip_callback, *(callbacks or ())]))

    def apply_gradients(self, params_grads: Sequence[ParamGrad]) -> list[Operator]:
        """Append clipping, regularization and updates for the pairs of `backward`; returns the operators."""
        pairs = sorted(params_grads, key=lambda pair: pair[0].name)
        pairs = self._grad_clip(pairs) if self._grad_clip is not None else append_gradient_clip_ops(pairs)
        pairs = append_regularization_ops(pairs, self.regularization)
        return self._create_optimization_pass(pairs)

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: Sequence[ParamGrad]
    ) -> list[Operator]:
        """`apply_gradients` in the program of `loss`."""
        with program_guard(loss.block.program, startup_program or default_startup_program()):
            return self.apply_gradients(params_grads)

    def current_step_lr(self) -> NoReturn:
        """The learning rate of an eager step: there is none in a static program."""
        self._only_eager("current_step_lr", "fetch the learning rate variable")

    def state_dict(self) -> NoReturn:
        """The accumulators of eager training: there are none in a static program."""
        self._only_eager("state_dict", "use fluid.save, which keeps the accumulators too")

    def set_dict(self, state_dict: dict[str, Any]) -> NoReturn:
        """Put eager accumulators back: there are none in a static program."""
        self._only_eager("set_dict", "use fluid.load")

    def clear_gradients(self) -> NoReturn:
        """Forget eager gradients: those of a static program are computed anew in each run."""
        self._only_eager("clear_gradients", "nothing needs clearing")

    def _only_eager(self, what: str, instead: str) -> NoReturn:
        raise RuntimeError(
            f"{type(self).__name__}.{what} works in dygraph mode only; in a static program {instead}"
        )

    def _create_global_learning_rate(self) -> None:
        """Make the variable that holds the rate, once for each program."""
        program = default_main_program()
        if program in self._learning_rate_map:
            return
        rate = self._learning_rate
        if isinstance(rate, Variable):
            self._learning_rate_map[program] = rate
            return
        self._learning_rate_map[program] = self._create_state(
            unique_name.generate("learning_rate"),
            [1],
            self._dtype or VarType.FP32,
            float(rate),
            stop_gradient=True,
        )

    def _global_learning_rate(self, program: Program | None = None) -> Variable | None:
        """The variable that holds the rate in `program`, None if there is none yet."""
        return self._learning_rate_map.get(default_main_program() if program is None else program)

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
            raise ValueError(
                f"Accumulator {key} already exists for parameter {param.name}: "
                "use another optimizer object for a second minimize()"
            )
        var = self._create_state(
            unique_name.generate(f"{param.name}_{key}"),
            param.shape if shape is None else shape,
            dtype or param.dtype,
            fill_value,
            belong_to_optimizer=True,
        )
        self._opti_name_list.append(var.name)
        mine[param.name] = var
        return var

    def _get_accumulator(self, name: str, param: Parameter) -> Variable:
        """Accumulator `name` of `param`; raises ValueError if it was not made."""
        found = self._accumulators.get(self._key(name), {}).get(param.name)
        if found is None:
            raise ValueError(f"Accumulator {self._key(name)} does not exist for parameter {param.name}")
        return found

    def _key(self, name: str) -> str:
        return f"{self._name}_{name}" if self._name is not None else name

    def _create_param_lr(self, param_and_grad: Any) -> Variable:
        """The rate for one parameter: the optimizer's times the `learning_rate` of its ParamAttr."""
        param = param_and_grad[0]
        factor = param.optimize_attr["learning_rate"]
        if isinstance(factor, Variable):
            return factor
        base = self._global_learning_rate()
        assert base is not None
        if factor == 1.0:
            return base
        with default_main_program()._lr_schedule_guard(is_with_opt=True), name_scope("scale_with_param_lr"):
            return base * factor

    def _create_accumulators(self, block: Block, parameters: list[Parameter]) -> None:
        """Make the accumulators of `parameters`; subclasses that keep any do so here."""

    def _append_optimize_op(self, block: Block, param_and_grad: Any) -> Operator:
        """Append the update of one parameter."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to update a parameter")

    def _finish_update(self, block: Block, parameters_and_grads: Sequence[ParamGrad]) -> None:
        """Append what follows all updates; nothing by default."""

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


_OUTPUTS = {"SquaredAccumulator": "SquaredAccumOut", "LinearAccumulator": "LinearAccumOut"}
"""Output slots that are not called after their input slot."""
