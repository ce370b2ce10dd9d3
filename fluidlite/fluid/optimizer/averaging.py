"""Averages of the parameters over the steps of training: `ModelAverage`, `ExponentialMovingAverage`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...base import callsite
from ...base.dtypes import FLOATS, VarType, to_vartype
from ...framework import (
    Block,
    Parameter,
    Program,
    Variable,
    default_main_program,
    name_scope,
    program_guard,
)
from ...framework.pruning import EMA_COUNTER
from ..initializer import Constant
from ..layer_helper import LayerHelper, run_op
from ..layers.control_flow.conditional_block import Switch
from ..layers.tensor.variables import assign
from .adaptive import number
from .base import Optimizer
from .eager import programs_only


class _Averages:
    """Base of both averages: programs that swap the parameters for their averages and back."""

    apply_program: Program
    restore_program: Program

    @contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """Inside the block the parameters of the global scope are their averages; `need_restore` puts them back."""
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any) -> None:
        """Restore the parameters that `apply(need_restore=False)` replaced."""
        executor.run(self.restore_program)

    def _swap_programs(self, swaps: list[tuple[Parameter, Variable]]) -> None:
        self.apply_program, self.restore_program = Program(), Program()
        block = self.apply_program.global_block()
        with program_guard(main_program=self.apply_program):
            self._append_apply(block, swaps)
        block = self.restore_program.global_block()
        with program_guard(main_program=self.restore_program):
            for param, kept in swaps:
                _assign(block._clone_variable(kept), block._clone_variable(param))

    def _append_apply(self, block: Block, swaps: list[tuple[Parameter, Variable]]) -> None:
        raise NotImplementedError


class ModelAverage(_Averages, Optimizer):
    """The mean of the parameters over a window of recent steps (`fluid.optimizer.ModelAverage`).

    Made after `minimize`; training then also sums the parameters up. The window is `average_window_rate` times the
    number of steps so far, at least `min_average_window` and at most `max_average_window` steps; it is cut off when it
    is full, so the average is over between one and two windows. `regularization` is accepted and changes nothing.
    Parameters with `do_model_average=False` are left alone.
    """

    def __init__(
        self,
        average_window_rate: float,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        regularization: Any = None,
        name: str | None = None,
    ) -> None:
        programs_only(self)
        super().__init__(0.0, regularization=regularization, name=name)
        self.average_window = number(average_window_rate, "average_window_rate", "ModelAverage")
        self.min_average_window = min_average_window
        self.max_average_window = max_average_window
        self.helper = LayerHelper(type(self).__name__)
        self.params_grads = _averaged("tmp")
        for param, kept in self.params_grads:
            with param.block.program._optimized_guard([param, kept]), name_scope("move_average"):
                self._append_accumulate(param)
        self._swap_programs(self.params_grads)

    def _append_accumulate(self, param: Parameter) -> None:
        state = {name: self._add_accumulator(name, param) for name in _SUMS}
        state.update(
            (name, self._add_accumulator(name, param, dtype=VarType.INT64, shape=[1])) for name in _COUNTS
        )
        default_main_program().global_block().append_op(
            type="average_accumulates",
            inputs={"param": param, **{"in_" + name: var for name, var in state.items()}},
            outputs={"out_" + name: var for name, var in state.items()},
            attrs={
                "average_window": self.average_window,
                "min_average_window": self.min_average_window,
                "max_average_window": self.max_average_window,
            },
        )

    def _append_apply(self, block: Block, swaps: list[tuple[Parameter, Variable]]) -> None:
        for param, kept in swaps:
            here = block._clone_variable(param)
            _assign(here, block._clone_variable(kept))
            state = {
                name: block._clone_variable(self._get_accumulator(name, param))
                for name in (*_SUMS, "num_accumulates", "old_num_accumulates")
            }
            count = _apply("sum", {"X": [state["num_accumulates"], state["old_num_accumulates"]]}, "int64")
            total = _apply("sum", {"X": [state[name] for name in _SUMS]}, param.dtype)
            count, total = _cast(count, param.dtype), _cast(total, param.dtype)
            block.append_op(
                type="elementwise_div", inputs={"X": [total], "Y": [count]}, outputs={"Out": [here]}, attrs={"axis": -1}
            )  # fmt: skip


_SUMS = ("sum_1", "sum_2", "sum_3")
_COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")


class ExponentialMovingAverage(_Averages):
    """Averages that fade by `decay` in each step (`fluid.optimizer.ExponentialMovingAverage`).

    Call `update()` after `minimize`. `apply` divides by 1 - decay ** steps, since the averages begin at zero; as in
    Fluid 1.8 it is the divided average that training goes on with. `thres_steps`, a float Variable of one element,
    makes the decay min(`decay`, (thres_steps + 1) / (thres_steps + 10)); an integer one has no effect, as in Fluid 1.8
    (with a warning). `name` is put before the names of the averages.
    """

    def __init__(
        self, decay: float = 0.999, thres_steps: Variable | None = None, name: str | None = None
    ) -> None:
        programs_only(self)
        self._decay = number(decay, "decay", "ExponentialMovingAverage")
        self._thres_steps = thres_steps
        self._name = name or ""
        self._decay_var = self._scheduled_decay()
        swaps = _averaged("ema_tmp", self._name)
        self._params_tmps = swaps
        self._ema_vars: dict[str, Variable] = {}
        for param, kept in swaps:
            with param.block.program._optimized_guard([param, kept]), name_scope("moving_average"):
                name_here = param.block._new_name(self._name + param.name + "_ema")
                self._ema_vars[param.name] = persistable_state(name_here, param.shape, param.dtype, 0.0)
        self._swap_programs(swaps)

    def update(self) -> None:
        """Append the update of the averages to the main program; call it once, after `minimize`."""
        block = default_main_program().global_block()
        counter = _step_counter(force_cpu=True)
        block._prepend_op(
            type="increment", inputs={"X": [counter]}, outputs={"Out": [counter]}, attrs={"step": 1.0}
        )
        for param, kept in self._params_tmps:
            with param.block.program._optimized_guard([param, kept]), name_scope("moving_average"):
                ema = self._ema_vars[param.name]
                _assign(ema * self._decay_var + param * (1.0 - self._decay_var), ema)

    def _scheduled_decay(self) -> Variable:
        with default_main_program()._lr_schedule_guard():
            rate = persistable_state("scheduled_ema_decay_rate", [1], VarType.FP32, self._decay)
            steps = self._thres_steps
            if steps is None:
                return rate
            if steps.dtype not in FLOATS:
                callsite.warn(
                    f"thres_steps {steps.name!r} has no effect on ExponentialMovingAverage, as in Fluid 1.8, because "
                    f"it is {steps.dtype}; give fluid.layers.cast(steps, 'float32')"
                )
                return rate
            early = (steps + 1.0) / (steps + 10.0)
            with Switch() as switch:
                with switch.case(early < self._decay):
                    assign(early, rate)
                with switch.default():
                    assign(np.array([self._decay], "float32"), rate)
        return rate

    def _append_apply(self, block: Block, swaps: list[tuple[Parameter, Variable]]) -> None:
        steps = _cast(_step_counter(), "float32")
        rate = block._clone_variable(self._decay_var)
        fade = _apply("elementwise_pow", {"X": rate, "Y": steps}, rate.dtype, {"axis": -1})
        for param, kept in swaps:
            here = block._clone_variable(param)
            ema = block._clone_variable(self._ema_vars[param.name])
            _assign(here, block._clone_variable(kept))
            with Switch() as switch, switch.case(steps > 0):
                assign(ema / (1.0 - fade), ema)
            _assign(ema, here)


def _averaged(suffix: str, prefix: str = "") -> list[tuple[Parameter, Variable]]:
    """The averaged parameters, each with a variable for its own value meanwhile."""
    pairs = []
    for param in default_main_program().global_block().all_parameters():
        if param.do_model_average is not False:
            kept = param.block.create_var(
                name=param.block._new_name(f"{prefix}{param.name}.{suffix}"),
                dtype=param.dtype,
                persistable=False,
                stop_gradient=True,
            )
            pairs.append((param, kept))
    return pairs


def _step_counter(force_cpu: bool = False) -> Variable:
    """The int64 number of updates, in the current main program; startup sets it to 0."""
    helper = LayerHelper("global_step_counter")
    counter, new = helper.create_or_get_global_variable(
        name=EMA_COUNTER, dtype=VarType.INT64, shape=[1], persistable=True, stop_gradient=True
    )
    if new:
        helper.set_variable_initializer(counter, Constant(0.0, force_cpu=force_cpu))
    return counter


def persistable_state(name: str, shape: Any, dtype: Any, value: float) -> Variable:
    """A persistable variable that startup fills with `value`."""
    helper = LayerHelper("global_var")
    var = helper.create_global_variable(
        persistable=True, name=name, shape=list(shape), dtype=dtype, stop_gradient=True
    )
    helper.set_variable_initializer(var, Constant(value))
    return var


def _apply(op_type: str, inputs: dict[str, Any], dtype: Any, attrs: dict[str, Any] | None = None) -> Variable:
    out: Variable = run_op(op_type, inputs, attrs=attrs)
    return out


def _cast(x: Variable, dtype: Any) -> Variable:
    kind = to_vartype(dtype)
    return _apply("cast", {"X": x}, kind, {"in_dtype": int(x.dtype), "out_dtype": int(kind)})


def _assign(source: Variable, target: Variable) -> None:
    default_main_program().global_block().append_op(
        type="assign", inputs={"X": [source]}, outputs={"Out": [target]}
    )
