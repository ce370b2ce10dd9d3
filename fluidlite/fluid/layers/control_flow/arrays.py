"""Tensor arrays, layers that count, and `Print`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .... import eager
from ....base.dtypes import VarType
from ....base.errors import ArgumentAssertion, TypeAssertion
from ....eager import Tensor
from ....framework import Variable, mode
from ...initializer import Constant
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer
from ..checks import check_choice, check_dtype
from ..tensor.joining import concat, stack
from ..tensor.variables import assign

__all__ = [
    "Print",
    "array_length",
    "array_read",
    "array_write",
    "autoincreased_step_counter",
    "create_array",
    "increment",
    "tensor_array_to_tensor",
]


def create_array(dtype: Any) -> Any:
    """An empty tensor array for elements of type `dtype`; in dygraph mode an empty list.

    Its shape, type and lod_level are those of what is written last. Follows `fluid.layers.create_array`.
    """
    if mode.in_dygraph_mode():
        return []
    helper = LayerHelper("array")
    return helper.create_variable(name=f"{helper.name}.out", type=VarType.LOD_TENSOR_ARRAY, dtype=dtype)


def array_write(x: Variable, i: Variable, array: Any = None) -> Any:
    """Put a copy of `x` at index `i` of `array`, which grows if need be (`fluid.layers.array_write`).

    Args:
        x: a tensor of any shape and type.
        i: the index, int64 of shape [1], not negative.
        array: a tensor array, or in dygraph mode a list; a new one by default. Elements in between that were never
            written cannot be read.

    Returns:
        The array.

    Raises:
        TypeError: an argument is of another type.
        AssertionError: in dygraph mode, `i` is beyond the end of the list by more than one, or no such index.
    """
    if mode.in_dygraph_mode():
        index, given = _position(i, "array_write"), [] if array is None else _list(array, "array_write")
        check_variable(x, "x", "array_write")
        if index > len(given):
            raise ArgumentAssertion(
                f"array_write puts an element at index {index} of a list of {len(given)}: elements are added at the end"
            )
        given[index : index + 1] = [x]
        return given
    check_variable(x, "x", "array_write")
    check_dtype(i, "i", "array_write", [VarType.INT64])
    helper = LayerHelper("array_write")
    if array is None:
        array = helper.create_variable(
            name=f"{helper.name}.out", type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype
        )
    _check_array(array, "array_write")
    helper.append_op(type="write_to_array", inputs={"X": [x], "I": [i]}, outputs={"Out": [array]})
    return array


def array_read(array: Any, i: Variable) -> Any:
    """The element of `array` at index `i`, int64 of shape [1] (`fluid.layers.array_read`).

    Beyond the end of a tensor array there is an empty tensor. Raises TypeError for arguments of another type; when the
    program runs, EnforceNotMet for an element that was never written. In dygraph mode the error for another type is an
    AssertionError too, and IndexError says that there is no such element.
    """
    if mode.in_dygraph_mode():
        given, index = _list(array, "array_read"), _position(i, "array_read")
        if index >= len(given):
            raise IndexError(f"i in array_read is {index}, beyond the end of a list of {len(given)}")
        return given[index]
    _check_array(array, "array_read")
    check_dtype(i, "i", "array_read", [VarType.INT64])
    return run_layer("read_from_array", locals(), X="array", helper=LayerHelper("array_read"))


def array_length(array: Any) -> Any:
    """How many elements `array` has, int64 of shape [1]; in dygraph mode an int (`fluid.layers.array_length`).

    Unwritten elements count if a later one was written. Raises TypeError unless it is an array.
    """
    if mode.in_dygraph_mode():
        return len(_list(array, "array_length"))
    _check_array(array, "array_length")
    return LayerHelper("array_length").run("lod_array_length", {"X": array}, stop_gradient=True)


def tensor_array_to_tensor(
    input: Any, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """All elements of a tensor array in one tensor, and their sizes (`fluid.layers.tensor_array_to_tensor`).

    Args:
        input: a tensor array, or in dygraph mode a list; all elements written, of shapes that differ along `axis` only.
        axis: along which they are concatenated; with `use_stack` the index of the new axis.
        name: the prefix of names.
        use_stack: stack them along a new axis; their shapes have to be equal.

    Returns:
        The tensor, and the size of each element along the axis, int32 [elements].

    Raises:
        TypeError: `input` is no tensor array.
        EnforceNotMet: when the program runs, if an element was never written or there is none.
    """
    if mode.in_dygraph_mode():
        elements = _list(input, "tensor_array_to_tensor")
        joined = (stack if use_stack else concat)(elements, axis)
        sizes = [element.shape[axis] for element in elements]
        return joined, assign(np.array(sizes, "int64"))
    _check_array(input, "tensor_array_to_tensor")
    return run_layer("tensor_array_to_tensor", locals(), X="input")


def _check_array(array: Any, layer: str) -> None:
    if not isinstance(array, Variable) or array.type != VarType.LOD_TENSOR_ARRAY:
        what = f"the {array.type} {array.name!r}" if isinstance(array, Variable) else repr(array)
        raise TypeError(
            f"array should be tensor array variable in {layer}, got {what}; create_array makes one"
        )


def _list(array: Any, layer: str) -> list[Any]:
    if not isinstance(array, list):
        raise TypeAssertion(f"array should be a list in {layer} in dygraph mode, got {type(array).__name__}")
    return array


def _position(i: Any, layer: str) -> int:
    check_variable(i, "i", layer)
    if tuple(i.shape) != (1,):
        raise TypeAssertion(f"i in {layer} must be of shape [1], got {list(i.shape)}")
    index = int(i.numpy()[0])
    if index < 0:
        raise IndexError(f"i in {layer} must not be negative, got {index}")
    return index


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


_serial = itertools.count(1)


def Print(
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """Shows `input` whenever the program computes it, and passes it on (`fluid.layers.Print`).

    Only what uses the result is sure to come after the print.

    Args:
        input: the variable to show.
        first_n: the number of times to show it; -1: always.
        message: text put before it.
        summarize: how many elements to show; -1: all.
        print_tensor_name, print_tensor_type, print_tensor_shape, print_tensor_lod: what to show besides.
        print_phase: 'forward' shows the value, 'backward' its gradient, 'both' both.

    Returns:
        A variable equal to `input`.
    """
    check_variable(input, "input", "Print")
    check_choice(print_phase.upper(), "print_phase", ("FORWARD", "BACKWARD", "BOTH"), "Print")
    print_phase, message, tensor_name = print_phase.upper(), message or "", input.name
    serial, helper = next(_serial), LayerHelper(f"print_{input.name}")
    return run_layer("print", locals(), without=("helper",), helper=helper, In="input")
