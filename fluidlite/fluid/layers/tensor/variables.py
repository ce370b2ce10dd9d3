"""Layers that make, convert, copy, save and load variables, and give their rows other sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.dtypes import VarType, attribute, to_numpy, to_vartype
from ....base.errors import ArgumentError, ArgumentTypeError, StaticModeError
from ....eager import DeclaredTensor, Tensor, as_numbers, placing
from ....framework import Parameter, Variable, mode
from ...initializer import Constant, Initializer
from ...layer_helper import LayerHelper, check_variable, run_op
from ...op_functions import run_layer
from ...param_attr import ParamAttr

__all__ = [
    "assign",
    "cast",
    "create_global_var",
    "create_parameter",
    "create_tensor",
    "get_tensor_from_selected_rows",
    "lod_append",
    "lod_reset",
    "merge_selected_rows",
]


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
    if mode.in_dygraph_mode():
        tensor: Any = DeclaredTensor(helper.name, [], dtype, stop_gradient=True)
        tensor.persistable = persistable
        return tensor
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
    """`x` converted to element type `dtype` (`fluid.layers.cast`).

    Args:
        x: a tensor of any shape and of bool, floats or integers.
        dtype: the type: its name, a NumPy type or a `VarType`.

    Returns:
        A tensor of the shape of `x`; fractions are cut off where integers are made.

    Raises:
        TypeError: `x` is no Variable, or `dtype` no type.

    Example:
        >>> import paddle.fluid as fluid
        >>> label = fluid.data("label", [None, 1], "int64")
        >>> fluid.layers.cast(label, "float32").shape
        (-1, 1)
    """
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


def lod_reset(x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None) -> Variable:
    """The rows of `x` in other sequences (`fluid.layers.lod_reset`).

    Args:
        x: any rows.
        y: a variable whose sequences are taken; or, if it has none, integers that are the offsets.
        target_lod: the offsets, from 0 to the number of rows, if there is no `y`.

    Raises:
        ValueError: neither is given.
        EnforceNotMet: when it runs, offsets that do not fit the rows.
    """
    if y is None and target_lod is None:
        raise ArgumentError("lod_reset needs y or target_lod")
    out = _reset("lod_reset", x, y, target_lod or [], False)
    out.lod_level = 1 if y is None else max(y.lod_level, 1)
    return out


def lod_append(x: Variable, level: Sequence[int] | Variable) -> Variable:
    """The rows of `x` with one more level, below those it has (`fluid.layers.lod_append`).

    `level`: offsets, from 0 to the number of rows; or a Variable, whose sequences then replace those of `x`.
    """
    if not isinstance(level, (list, tuple, Variable)):
        raise ArgumentError(f"'level' of lod_append must be a list, tuple or Variable, got {level!r}")
    y, offsets = (level, []) if isinstance(level, Variable) else (None, list(level))
    out = _reset("lod_append", x, y, offsets, True)
    out.lod_level = x.lod_level + 1
    return out


def _reset(layer: str, x: Variable, y: Variable | None, target_lod: Sequence[int], append: bool) -> Any:
    if mode.in_dygraph_mode():
        raise StaticModeError(f"{layer} is a layer of programs only: eager tensors have no sequences")
    given = {"x": x, "y": y, "target_lod": [int(offset) for offset in target_lod], "append": append}
    return run_layer("lod_reset", given, helper=LayerHelper(layer))


def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """`x` with every row once, the values of equal rows added up (`fluid.layers.merge_selected_rows`).

    Raises TypeError unless `x` is a Variable of type SELECTED_ROWS.
    """
    return _append("merge_selected_rows", x, name)


def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """The values of `x` as a tensor, one row for each row it holds (`fluid.layers.get_tensor_from_selected_rows`).

    Raises TypeError unless `x` is a Variable of type SELECTED_ROWS.
    """
    return _append("get_tensor_from_selected_rows", x, name)


def _append(op_type: str, x: Variable, name: str | None) -> Variable:
    check_variable(x, "x", op_type)
    if x.type != VarType.SELECTED_ROWS:
        raise TypeError(f"The type of 'x' in {op_type} must be SELECTED_ROWS, but {x.name!r} is {x.type}")
    return run_op(op_type, {"X": x}, name=name)


def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Read `out` from a file in each run (`fluid.layers.load`); it holds what `save` or `fluid.io.save_vars` wrote.

    `load_as_fp16`: as float16, whatever the file has. Running raises EnforceNotMet if there is no such file, or if it
    holds no single tensor.
    """
    check_variable(out, "out", "load")
    attrs: dict[str, Any] = {"file_path": file_path}
    if load_as_fp16 is not None:
        attrs["load_as_fp16"] = load_as_fp16
    LayerHelper("load").append_op(type="load", inputs={}, outputs={"Out": [out]}, attrs=attrs)


def save(x: Variable, file_path: str, overwrite: bool = True) -> None:
    """Write `x` to a file in each run (`fluid.layers.tensor.save`, which fails in Fluid 1.8 itself).

    Folders are made. With `overwrite=False` running raises EnforceNotMet if the file is there.
    """
    check_variable(x, "x", "save")
    attrs = {"file_path": file_path, "overwrite": overwrite}
    LayerHelper("save").append_op(type="save", inputs={"X": [x]}, outputs={}, attrs=attrs)


def save_combine(x: Sequence[Variable], file_path: str, overwrite: bool = True) -> None:
    """Write several tensors to one file in each run (`fluid.layers.tensor.save_combine`); see `save`."""
    attrs = {"file_path": file_path, "overwrite": overwrite}
    LayerHelper("save_combine").append_op(
        type="save_combine", inputs={"X": _variables(x, "save_combine")}, outputs={}, attrs=attrs
    )


def load_combine(out: Sequence[Variable], file_path: str) -> None:
    """Read several tensors from one file in each run, in their order (`fluid.layers.tensor.load_combine`)."""
    LayerHelper("load_combine").append_op(
        type="load_combine",
        inputs={},
        outputs={"Out": _variables(out, "load_combine")},
        attrs={"file_path": file_path},
    )


def _variables(given: Sequence[Variable], layer: str) -> list[Variable]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, Variable) for one in given):
        raise ArgumentTypeError(f"{layer} takes a list of Variables, got {given!r}")
    return list(given)
