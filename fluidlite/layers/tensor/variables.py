"""Layers that make variables and parameters, convert and copy them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType, attribute, to_numpy, to_vartype
from ...eager import Tensor, as_numbers, placing
from ...framework import Parameter, Variable, mode
from ...initializer import Constant, Initializer
from ...layer_helper import LayerHelper, check_variable, run_op
from ...param_attr import ParamAttr

__all__ = ["assign", "cast", "create_global_var", "create_parameter", "create_tensor"]


def known_shape(shape: Any, layer: str) -> list[int]:
    """`shape` as a list of integers; TypeError unless it is a list or tuple of numbers (see `as_numbers`)."""
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"The type of 'shape' in {layer} must be a list or tuple, but received {shape!r}")
    sizes = as_numbers(shape)
    for item in sizes:
        if isinstance(item, bool) or not isinstance(item, int):
            raise TypeError(f"The items of 'shape' in {layer} must be integers, but received {item!r}")
    return sizes  # type: ignore[no-any-return]


def create_tensor(dtype: Any, name: str | None = None, persistable: bool = False) -> Variable:
    """A variable without a value, to be written by `assign` and the like (`fluid.layers.create_tensor`)."""
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name=helper.name, dtype=dtype, persistable=persistable)


def create_parameter(
    shape: Sequence[int],
    dtype: Any,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Parameter:
    """A parameter of the main program (`fluid.layers.create_parameter`).

    Args:
        shape: its sizes, all known.
        dtype: its element type.
        name: its name, unless `attr` is given.
        attr: a ParamAttr, or what stands for one.
        is_bias: filled with zeros rather than by Xavier where no initializer is given.
        default_initializer: used if `attr` has none.

    Raises:
        TypeError: `shape` is no list of integers.
    """
    shape = known_shape(shape, "create_parameter")
    helper = LayerHelper("create_parameter", name=name)
    attr = ParamAttr(name=name) if attr is None else attr
    return helper.create_parameter(attr, shape, dtype, is_bias, default_initializer)


def create_global_var(
    shape: Sequence[int],
    value: float,
    dtype: Any,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
    """A global variable that the startup program fills with `value` (`fluid.layers.create_global_var`).

    With `persistable` it keeps its value from run to run. In dygraph mode a tensor. Raises TypeError if `shape` is no
    list of integers.
    """
    shape, value = known_shape(shape, "create_global_var"), as_numbers(value)
    if mode.in_dygraph_mode():
        array = placing.to_default_device(np.full(shape, attribute(value), to_numpy(to_vartype(dtype))))
        return Tensor(array, name, persistable=persistable)  # type: ignore[return-value]
    helper = LayerHelper("global_var")
    var = helper.main_program.global_block().create_var(
        name=name, shape=shape, dtype=dtype, persistable=persistable, stop_gradient=True
    )
    helper.set_variable_initializer(var, Constant(float(value), force_cpu=force_cpu))
    return var


def cast(x: Variable, dtype: Any) -> Variable:
    """`x` converted to element type `dtype` (`fluid.layers.cast`)."""
    check_variable(x, "x", "cast")
    target = to_vartype(dtype)
    attrs = {"in_dtype": int(x.dtype), "out_dtype": int(target)}
    return run_op("cast", {"X": x}, attrs=attrs)


_VALUES = {
    VarType.BOOL: "bool_values",
    VarType.FP32: "fp32_values",
    VarType.INT32: "int32_values",
    VarType.INT64: "int64_values",
}


def assign(input: Variable | np.ndarray, output: Variable | None = None) -> Variable:
    """Copy a variable, or an array that becomes part of the program, into `output` (`fluid.layers.assign`).

    Args:
        input: a Variable, or an array of bool, float32, int32 or int64.
        output: what to write; a new variable by default.

    Raises:
        TypeError: `input` is something else, or an array of another type.
    """
    helper = LayerHelper("assign")
    if isinstance(input, Variable):
        dtype = input.dtype
    elif isinstance(input, np.ndarray):
        dtype = to_vartype(input.dtype)
        if dtype not in _VALUES:
            raise TypeError(
                "When the type of 'input' in assign is numpy.ndarray, its data type must be bool, float32, "
                f"int32 or int64, but received {input.dtype}; convert it with astype"
            )
    else:
        raise TypeError(
            "The type of 'input' in assign must be a Variable or numpy.ndarray, "
            f"but received {type(input).__name__}"
        )
    if output is None:
        output = helper.create_variable_for_type_inference(
            dtype, like=input if isinstance(input, Variable) else None
        )
    check_variable(output, "output", "assign")
    if isinstance(input, Variable):
        helper.append_op(type="assign", inputs={"X": [input]}, outputs={"Out": [output]})
        return output
    values = (input.astype("int32") if dtype == VarType.BOOL else input).ravel().tolist()
    attrs = {"shape": list(input.shape), "dtype": int(dtype), _VALUES[dtype]: values}
    helper.append_op(type="assign_value", outputs={"Out": [output]}, attrs=attrs)
    return output
