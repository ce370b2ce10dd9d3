"""Tensors, numbers and lists of rewritten code as Variables of the program, and `tensor.numpy()` while it is built."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .....base import callsite
from .....base.dtypes import FLOATS, VarType, to_vartype
from .....base.errors import ArgumentAssertion, NotSupportedError
from .....eager import Tensor
from .....framework import Block, Program, Variable, default_main_program, tracing
from .... import layers
from ....layers import (
    array_length,
    array_read,
    array_write,
    assign,
    cast,
    create_array,
    elementwise_max,
    elementwise_min,
    fill_constant,
    increment,
    less_than,
)
from ....layers.control_flow.loops import While

UNSET: Any = type("Unset", (), {"__repr__": lambda self: "nothing"})()
"""The value of a variable that has not been assigned."""


class Number(Variable):
    """A Python number computed by a program: combined with tensors, it is converted to their type."""

    of_python = True

    def _binary(self, op_type: str, other: Any, swapped: bool = False) -> Variable:
        me: Variable = self
        plain = isinstance(other, (int, float, np.number)) or type(other) is Number
        kind = getattr(other, "dtype", None) if isinstance(other, Variable) else None
        whole = me.dtype not in FLOATS
        if kind is not None and not plain:
            me = me if kind == me.dtype else _variable(me, kind)
        elif whole and (
            op_type == "elementwise_div"
            or (kind is None and isinstance(other, (float, np.floating)))
            or (kind is not None and kind in FLOATS)
        ):
            me = _variable(me, VarType.FP32)
        if me is not self:
            return _number(Variable._binary(me, op_type, other, swapped), plain)
        return _number(super()._binary(op_type, other, swapped), plain)

    def _scaled(self, scale: float, bias: float) -> Variable:
        if self.dtype not in FLOATS and not (float(scale).is_integer() and float(bias).is_integer()):
            return _number(_variable(self, VarType.FP32)._scaled(scale, bias), True)
        return _number(super()._scaled(scale, bias), True)

    def __index__(self) -> int:
        raise NotSupportedError(
            f"an index of a Python list, or a size, depends on the value of variable {self.name!r}"
            f"{callsite.describe(callsite.user_line())}, which is known only when the program runs"
        )


def _variable(number: Variable, dtype: VarType) -> Variable:
    return cast(number, dtype)


def _number(result: Any, plain: bool) -> Any:
    if plain and type(result) is Variable and result.dtype != VarType.BOOL:
        result.__class__ = Number
    return result


class TensorList(Variable):
    """A list that grows in a program: a tensor array."""

    def append(self, item: Any) -> None:
        """Append an element."""
        array_write(variable(item), array_length(self), self)

    def extend(self, items: Any) -> None:
        """Append all of `items`."""
        for item in items:
            self.append(item)

    def length(self) -> Variable:
        """The number of elements, as a Variable."""
        return as_number(array_length(self))

    def part(self, wanted: slice) -> TensorList:
        """The slice `wanted`, as a copy."""
        step = 1 if wanted.step is None else wanted.step
        if isinstance(step, Variable) or step == 0:
            raise NotSupportedError(
                f"the step of a slice must be a number other than 0, got {step!r}{here()}"
            )
        count, zero = array_length(self), fill_constant([1], VarType.INT64, 0)
        least, most = (zero, count) if step > 0 else (zero - 1, count - 1)

        def bound(limit: Any, missing: Variable) -> Variable:
            if limit is None:
                return missing
            place = variable(limit, VarType.INT64)
            place = cast(place, VarType.INT64) if place.dtype != VarType.INT64 else place
            place = place + count * cast(less_than(place, zero), VarType.INT64)
            return elementwise_max(elementwise_min(place, most), least)

        start = bound(wanted.start, least if step > 0 else most)
        stop = bound(wanted.stop, most if step > 0 else least)
        distance = elementwise_max(stop - start if step > 0 else start - stop, zero)
        size = (distance + (abs(step) - 1)) // abs(step)
        result = tensor_list([], self.dtype)
        result._shape = self._shape
        index = fill_constant([1], VarType.INT64, 0)
        more = less_than(index, size)
        with While(more).block():
            array_write(array_read(self, start + index * step), index, result)
            increment(index)
            less_than(index, size, cond=more)
        return result

    def __getitem__(self, index: Any) -> Variable:
        if isinstance(index, slice):
            return self.part(index)
        if isinstance(index, Variable):
            place = cast(variable(index), VarType.INT64)
        elif index < 0:
            place = self.length() + index
        else:
            place = fill_constant([1], VarType.INT64, index)
        return array_read(self, place)

    def __setitem__(self, index: Any, item: Any) -> None:
        place = (
            cast(variable(index), VarType.INT64)
            if isinstance(index, Variable)
            else (fill_constant([1], VarType.INT64, index) if index >= 0 else self.length() + index)
        )
        array_write(variable(item), place, self)

    def __iter__(self) -> Any:
        raise NotSupportedError(
            f"only `for` can iterate over a list that grows in a loop over tensors{here()}"
        )

    def __len__(self) -> int:
        raise NotSupportedError(
            f"the length of a list that grows in a loop is known only when the program runs{here()}"
        )

    def __bool__(self) -> bool:
        return True


def tensor_list(items: list[Any], dtype: VarType) -> TensorList:
    """A tensor array with the elements of a list."""
    array = create_array(dtype)
    array.__class__ = TensorList
    for item in items:
        array.append(item)
    return array  # type: ignore[no-any-return]


def here() -> str:
    """` (at FILE:LINE)` of the user's code."""
    return callsite.describe(callsite.user_line()).replace("built at", "at")


def program() -> Program:
    return default_main_program()


def is_tensor(value: Any) -> bool:
    """True if a value is known only when the program runs."""
    if isinstance(value, Tensor):
        return tracing.current() is not None
    return isinstance(value, Variable)


def is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def kind_of(value: Any) -> VarType:
    """The element type that a number has as a Variable."""
    if isinstance(value, (bool, np.bool_)):
        return VarType.BOOL
    if isinstance(value, np.generic):
        return to_vartype(value.dtype)
    return VarType.INT64 if isinstance(value, int) else VarType.FP32


def variable(value: Any, dtype: VarType | None = None) -> Variable:
    """A tensor, number or array as a Variable of the program."""
    if isinstance(value, Tensor):
        tracer = tracing.current()
        if tracer is None:
            return value  # type: ignore[return-value]
        return tracer.stand_in(value)
    if isinstance(value, Variable):
        return value
    if is_scalar(value):
        kind = kind_of(value) if dtype is None else dtype
        var = fill_constant([1], kind, value if isinstance(value, (int, float)) else value.item())
        var.stop_gradient = True
        return as_number(var)
    return assign(np.asarray(value))


def as_number(var: Variable) -> Variable:
    """The same Variable, marked as a Python number."""
    if type(var) is Variable and var.dtype != VarType.BOOL:
        var.__class__ = Number
    return var


def placeholder(block: Block, var: Variable) -> None:
    """Append the operator that fills a variable with NaN, or the least integer, where Python has it unassigned."""
    shape = var._shape
    block.append_op(
        type="fill_constant",
        outputs={"Out": [var]},
        attrs={
            "shape": [n if type(n) is int and n >= 0 else 1 for n in shape] or [1],
            "value": float("nan") if var.dtype in FLOATS else float(_LEAST.get(var.dtype, 0)),
            "dtype": int(var.dtype),
        },
    )
    var._shape = shape


_LEAST = {VarType.INT32: -(2**31), VarType.INT64: -(2**63)}


def truth(value: Any) -> Variable:
    """A tensor of one element as a bool Variable.

    Tensors of several elements raise at once or, in a branch or loop, when that runs.
    """
    var = variable(value)
    if var.type != VarType.LOD_TENSOR:
        raise NotSupportedError(f"whether {var.name!r} is empty is known only when the program runs{here()}")
    if all(n >= 0 for n in var.shape) and math.prod(var.shape) != 1:
        message = (
            f"a condition must have one element, got a tensor of shape {list(var.shape)}{here()}; reduce it with "
            "fluid.layers.reduce_any or reduce_all"
        )
        block = default_main_program().current_block()
        if block.parent_idx < 0:
            raise ArgumentAssertion(message)
        var = fill_constant([1], VarType.BOOL, False)
        block.append_op(type="assert", inputs={"Cond": [var]}, outputs={}, attrs={"message": message})
    return var if var.dtype == VarType.BOOL else cast(var, VarType.BOOL)


def scalar(value: Any, dtype: VarType) -> Variable:
    """A tensor of one element converted to a number (`int(x)`, `float(x)`)."""
    var = variable(value)
    if all(n >= 0 for n in var.shape) and math.prod(var.shape) != 1:
        raise ArgumentAssertion(
            f"only a tensor of one element converts to a number, got shape {list(var.shape)}{here()}"
        )
    number = as_number(cast(var, dtype))
    number.stop_gradient = True
    return number


class Array(Variable):
    """The elements of a tensor, without its gradient. NumPy's functions refuse it."""

    def reshape(self, *shape: Any, order: str = "C") -> Array:
        """The elements in another shape."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
        if order != "C":
            raise self._refusal(f"reshape in order {order!r}")
        return array(layers.reshape(self, list(sizes)))

    def astype(self, dtype: Any) -> Array:
        """The elements as another type."""
        return array(layers.cast(self, to_vartype(dtype)))

    def copy(self) -> Array:
        """The same elements."""
        return self

    def item(self) -> Variable:
        """The only element."""
        return layers.reshape(self, [1])  # type: ignore[no-any-return]

    def flatten(self) -> Array:
        """The elements in a row."""
        return self.reshape(-1)

    ravel = flatten

    def _binary(self, op_type: str, other: Any, swapped: bool = False) -> Variable:
        result = super()._binary(op_type, other, swapped)
        return result if result is NotImplemented else _marked(result)

    def _scaled(self, scale: float, bias: float) -> Variable:
        return _marked(super()._scaled(scale, bias))

    def __getitem__(self, index: Any) -> Variable:
        return _marked(super().__getitem__(index))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self._refusal("a function of NumPy")

    def _refusal(self, use: str) -> NotSupportedError:
        return NotSupportedError(
            f"{use} needs the elements of {self.name!r}{here()}, known only when the program runs: use layers, "
            "or keep this part out of the declarative function"
        )


def _reduced(layer: Callable[..., Variable], on_truth: bool) -> Callable[..., Any]:
    def method(
        self: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if dtype is not None or out is not None:
            raise self._refusal(f"{layer.__name__} with dtype or out")
        operand: Variable = self
        if on_truth and self.dtype != VarType.BOOL:
            operand = layers.cast(self, VarType.BOOL)
        elif not on_truth and self.dtype == VarType.BOOL:
            operand = layers.cast(self, VarType.INT64)
        return array(layer(operand, dim=axis, keep_dim=keepdims))

    return method


for _name, _layer in {
    "sum": layers.reduce_sum,
    "mean": layers.reduce_mean,
    "max": layers.reduce_max,
    "min": layers.reduce_min,
    "all": layers.reduce_all,
    "any": layers.reduce_any,
}.items():
    setattr(Array, _name, _reduced(_layer, _name in ("all", "any")))


def _marked(var: Variable) -> Array:
    var.__class__ = Array
    var.stop_gradient = True
    return var  # type: ignore[return-value]


def array(var: Variable) -> Array:
    """A copy of a Variable that has the methods of arrays, and no gradient."""
    return _marked(layers.assign(var))
