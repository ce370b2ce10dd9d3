"""Layers that make constants: filled tensors, ranges, identity and diagonal matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base import unique_name
from ....base.dtypes import VarType, to_numpy, to_vartype
from ....eager import Tensor, as_number_list, as_numbers
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable, run_op
from ...op_functions import run_layer
from .variables import assign, cast, known_shape

__all__ = [
    "arange",
    "diag",
    "eye",
    "fill_constant",
    "fill_constant_batch_size_like",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "range",
    "zeros",
    "zeros_like",
]

_KINDS = frozenset({VarType.BOOL, VarType.FP16, VarType.FP32, VarType.FP64, VarType.INT32, VarType.INT64})


def fill_constant(
    shape: Sequence[int | Variable] | Variable,
    dtype: Any,
    value: float | Variable,
    force_cpu: bool = False,
    out: Variable | None = None,
) -> Variable:
    """A tensor whose every element is `value` (`fluid.layers.fill_constant`).

    Args:
        shape: numbers and one-element Variables, or a Variable that holds them all.
        dtype: bool, float16, float32, float64, int32 or int64.
        value: a number, or a Variable of one element.
        force_cpu: kept in the program; the value is the same.
        out: what to write; a new variable by default.

    Returns:
        A tensor of that shape and type; `out` if given.

    Raises:
        TypeError: `shape`, `dtype` or `out` is of another type.

    Example:
        >>> import paddle.fluid as fluid
        >>> half = fluid.layers.fill_constant([2], "float32", 0.5)
        >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[half])
        [array([0.5, 0.5], dtype=float32)]
    """
    return _filled(LayerHelper("fill_constant"), shape, dtype, value, force_cpu, out)


def full(
    shape: Sequence[int | Variable] | Variable,
    fill_value: float | Variable,
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """As `fill_constant`; `dtype` is float32 by default (`fluid.layers.full`). `device` has no effect."""
    helper = LayerHelper("full", name=name)
    unique_name.generate("fill_constant")  # as Fluid's full, which calls that layer
    made = _filled(helper, shape, "float32" if dtype is None else dtype, fill_value, False, out)
    made.stop_gradient = stop_gradient
    return made


def _filled(
    helper: LayerHelper,
    shape: Any,
    dtype: Any,
    value: Any,
    force_cpu: bool = False,
    out: Variable | None = None,
) -> Variable:
    """`fill_constant` on behalf of the layer of `helper`."""
    layer = helper.layer_type
    kind = to_vartype(dtype)
    if kind not in _KINDS:
        names = ", ".join(sorted(str(to_numpy(known)) for known in _KINDS))
        raise TypeError(f"The data type of 'dtype' in {layer} must be one of {names}, but received {dtype}")
    sizes, inputs = shape_inputs(shape, layer)
    value = as_numbers(value)
    attrs: dict[str, Any] = {"shape": sizes, "dtype": int(kind), "force_cpu": force_cpu}
    if isinstance(value, Variable):
        inputs["ValueTensor"] = value
    else:
        attrs.update(_value_attrs(value, kind))
    if out is not None:
        check_variable(out, "out", layer)
    made = helper.run("fill_constant", inputs, attrs=attrs, stop_gradient=True, into={"Out": out})
    if out is None and isinstance(made, Tensor):
        made.be_generated()
    return made


def _value_attrs(value: float, kind: VarType) -> dict[str, Any]:
    """The attributes of a filled value: float32, and text, which keeps full precision."""
    whole = kind in (VarType.INT32, VarType.INT64)
    return {"value": float(value), "str_value": str(int(value) if whole else float(value))}


def shape_inputs(
    shape: Any, layer: str, helper: LayerHelper | None = None
) -> tuple[list[int], dict[str, Any]]:
    """A shape as attribute `shape` (-1 for a Variable) and inputs `ShapeTensor`, `ShapeTensorList`.

    Eager tensors are numbers, unless a program is traced; fractions are cut off, as in Fluid. Variables have no
    gradient from here on, and become int32. With `helper` they stay what they are, and numbers are int64 and named by
    it, as of `uniform_random` and `randint`. Raises TypeError for anything but a Variable or a list of numbers and
    Variables.
    """
    shape = as_number_list(shape)
    if isinstance(shape, list):
        shape = [int(n) if isinstance(n, float) else n for n in shape]
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        return [], {"ShapeTensor": shape if helper else _as_int32(shape)}
    if not isinstance(shape, (list, tuple)):
        raise TypeError(
            f"The type of 'shape' in {layer} must be a list, tuple or Variable, but received {shape!r}"
        )
    if not any(isinstance(n, Variable) for n in shape):
        return known_shape(shape, layer), {}
    sizes, tensors = [], []
    for n in shape:
        if isinstance(n, Variable):
            n.stop_gradient = True
            sizes.append(-1)
            tensors.append(n if helper else _as_int32(n))
        else:
            sizes.append(int(n))
            made = helper.create_variable_for_type_inference("int64") if helper else None
            tensors.append(
                fill_constant([1], "int64" if helper else "int32", int(n), force_cpu=True, out=made)
            )
    return sizes, {"ShapeTensorList": tensors}


def _as_int32(var: Variable) -> Variable:
    return cast(var, "int32") if var.dtype == VarType.INT64 else var


def _listed(shape: Any, layer: str) -> Any:
    """`shape` if it is a list, a tuple or a Variable; TypeError naming `layer` otherwise."""
    return shape if isinstance(shape, (list, tuple, Variable)) else known_shape(shape, layer)


def zeros(shape: Sequence[int | Variable] | Variable, dtype: Any, force_cpu: bool = False) -> Variable:
    """Zeros (`fluid.layers.zeros`); `shape` and errors as of `fill_constant`."""
    return fill_constant(_listed(shape, "zeros"), dtype, 0.0, force_cpu)


def ones(shape: Sequence[int | Variable] | Variable, dtype: Any, force_cpu: bool = False) -> Variable:
    """Ones (`fluid.layers.ones`); `shape` and errors as of `fill_constant`."""
    return fill_constant(_listed(shape, "ones"), dtype, 1.0, force_cpu)


def fill_constant_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: Any,
    value: float,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    force_cpu: bool = False,
) -> Variable:
    """A tensor filled with `value` whose dimension `output_dim_idx` is as large as that of `input`.

    Args:
        input: the variable to look at; of a LoD variable's dimension 0 its sequences are counted.
        shape: the shape; the number at `output_dim_idx` is replaced.
        dtype: its element type.
        value: what to fill with.
        input_dim_idx: the dimension of `input`.
        output_dim_idx: the dimension of the result.
        force_cpu: kept in the program; the value is the same.

    Follows `fluid.layers.fill_constant_batch_size_like`.
    """
    shape, kind = known_shape(shape, "fill_constant_batch_size_like"), to_vartype(dtype)
    given = {**locals(), **_value_attrs(as_numbers(value), kind)}
    return run_layer("fill_constant_batch_size_like", given, without=("kind",), stop_gradient=True)


def _without_gradient(op_type: str, inputs: dict[str, Any], dtype: Any, attrs: dict[str, Any]) -> Variable:
    """The output of an operator that no gradient goes through."""
    return run_op(op_type, inputs, attrs=attrs, stop_gradient=True)


def zeros_like(x: Variable, out: Variable | None = None) -> Variable:
    """Zeros in the shape and type of `x` (`fluid.layers.zeros_like`)."""
    return run_layer("fill_zeros_like", locals(), stop_gradient=True, helper=LayerHelper("zeros_like"))


def ones_like(x: Variable, out: Variable | None = None) -> Variable:
    """Ones in the shape and type of `x` (`fluid.layers.ones_like`)."""
    return run_layer("fill_any_like", {**locals(), "value": 1.0}, helper=LayerHelper("ones_like"))


def full_like(
    input: Variable,
    fill_value: float,
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """`fill_value` in the shape of `input` and its type or `dtype` (`fluid.layers.full_like`)."""
    check_variable(input, "input", "full_like")
    given = {"x": input, "value": fill_value, "dtype": input.dtype if dtype is None else dtype, "out": out}
    made = run_layer("fill_any_like", given, helper=LayerHelper("full_like", name=name))
    made.stop_gradient = stop_gradient
    return made


def range(start: Any, end: Any, step: Any, dtype: Any) -> Variable:
    """`start`, `start + step`, ... before `end`, as a vector (`fluid.layers.range`).

    Each of the three is a number or a Variable of one element; `dtype` is that of the result.
    """
    inputs = {
        slot: _element(value, dtype) for slot, value in (("Start", start), ("End", end), ("Step", step))
    }
    return _without_gradient("range", inputs, dtype, {})


def arange(start: Any, end: Any, step: Any = 1, dtype: Any = None, name: str | None = None) -> Variable:
    """As `range`, in float32 unless `dtype` is given (`fluid.layers.arange`)."""
    return range(start, end, step, "float32" if dtype is None else dtype)


def linspace(start: Any, stop: Any, num: Any, dtype: Any) -> Variable:
    """`num` numbers evenly spaced from `start` to `stop`, both included (`fluid.layers.linspace`).

    Each of the three is a number or a Variable of one element. Raises TypeError unless `dtype` is float32 or
    float64.
    """
    kind = to_vartype(dtype)
    if kind not in (VarType.FP32, VarType.FP64):
        raise TypeError(
            f"The data type of 'dtype' in linspace must be float32 or float64, but received {dtype}"
        )
    inputs = {"Start": _element(start, kind), "Stop": _element(stop, kind), "Num": _element(num, "int32")}
    return run_op("linspace", inputs)


def _element(value: Any, dtype: Any) -> Variable:
    """`value` as a Variable of one element."""
    if isinstance(value, Variable):
        return value if value.dtype == to_vartype(dtype) else cast(value, dtype)
    return fill_constant([1], dtype, value)


def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: Sequence[int] | None = None,
    dtype: Any = "float32",
) -> Variable:
    """A matrix of zeros with ones on its diagonal, square by default (`fluid.layers.eye`).

    `batch_shape` repeats it along new leading dimensions. Raises TypeError for sizes that are no positive
    integers.
    """
    num_rows = as_numbers(num_rows)
    columns = num_rows if num_columns is None else as_numbers(num_columns)
    batch_shape = as_number_list(batch_shape)
    for size in (num_rows, columns, *(batch_shape or ())):
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise TypeError(f"the sizes of eye must be positive integers, got {size!r}")
    kind = to_vartype(dtype)
    out = _without_gradient(
        "eye", {}, kind, {"num_rows": num_rows, "num_columns": columns, "dtype": int(kind)}
    )
    for size in reversed(batch_shape or ()):
        out = run_op("stack", {"X": [out] * size}, outputs=("Y",), attrs={"axis": 0})
    return out


def diag(diagonal: Variable | np.ndarray) -> Variable:
    """A square matrix with the given diagonal, a vector (`fluid.layers.diag`)."""
    if isinstance(diagonal, np.ndarray):
        diagonal = assign(diagonal)
    return run_layer("diag", locals(), stop_gradient=True)
