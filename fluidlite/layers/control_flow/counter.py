"""Layers that count: one step of a number, and the number of runs."""

from __future__ import annotations

from ... import eager
from ...base.dtypes import VarType
from ...eager import Tensor
from ...framework import Variable
from ...initializer import Constant
from ...layer_helper import LayerHelper
from ...op_functions import run_layer

__all__ = ["autoincreased_step_counter", "increment"]


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """`x`, which has one element, plus `value`; written back into `x` unless `in_place` is False.

    Follows `fluid.layers.increment`.
    """
    if in_place and isinstance(x, Tensor) and not x.stop_gradient:
        # The operator counts and has no gradient; a tensor that wants one passes it on, as in Fluid.
        eager.apply_into("scale", {"X": x}, {"Out": x}, {"scale": 1.0, "bias": float(value)})
        return x
    out = x if in_place else None
    return run_layer("increment", locals(), without=("in_place",), step="value")


def autoincreased_step_counter(counter_name: str | None = None, begin: int = 1, step: int = 1) -> Variable:
    """A persistable int64 variable of one element: `begin` - 1 before the first run, `step` more in each.

    Further calls with the same `counter_name` return the same variable. Follows
    `fluid.layers.autoincreased_step_counter`.
    """
    helper = LayerHelper("global_step_counter")
    counter, new = helper.create_or_get_global_variable(
        name="@STEP_COUNTER@" if counter_name is None else counter_name,
        dtype=VarType.INT64,
        shape=[1],
        persistable=True,
        belong_to_optimizer=True,
    )
    if new:
        helper.set_variable_initializer(counter, Constant(begin - 1, force_cpu=True))
        helper.main_program.global_block()._prepend_op(
            type="increment", inputs={"X": [counter]}, outputs={"Out": [counter]}, attrs={"step": float(step)}
        )
        counter.stop_gradient = True
    return counter
