"""Layers that draw random numbers: new ones in each run, or with a seed those of Paddle 1.8 on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.dtypes import FLOATS, VarType, to_vartype
from ....base.errors import ArgumentError
from ....framework import Variable, device_guard
from ...layer_helper import LayerHelper, check_variable
from ...layer_helper_base import is_eager
from ...op_functions import run_layer
from .constants import shape_inputs
from .variables import known_shape

__all__ = [
    "gaussian_random",
    "gaussian_random_batch_size_like",
    "randint",
    "randn",
    "random_crop",
    "uniform_random",
    "uniform_random_batch_size_like",
]

Shape = Sequence["int | Variable"] | Variable


def uniform_random(
    shape: Shape, dtype: Any = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0
) -> Variable:
    """Numbers drawn evenly from [`min`, `max`) (`fluid.layers.uniform_random`).

    Args:
        shape: numbers and one-element Variables, or a Variable that holds them all.
        dtype: float32 or float64.
        min: the lower limit.
        max: the upper limit.
        seed: 0 for new numbers in each run.

    Raises:
        TypeError: `shape` or `dtype` is of another type.
    """
    return _shaped("uniform_random", locals(), _float(dtype, "uniform_random"))


def gaussian_random(
    shape: Shape, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = "float32"
) -> Variable:
    """Normal numbers with the given mean and deviation (`fluid.layers.gaussian_random`)."""
    return _shaped("gaussian_random", locals(), _float(dtype, "gaussian_random"))


def randint(
    low: int,
    high: int | None = None,
    shape: Shape | None = None,
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """Integers drawn evenly from `low` to `high` - 1, or below `low` without `high` (`fluid.layers.randint`).

    Args:
        low: the lower limit; without `high` the upper one.
        high: the upper limit, excluded.
        shape: as of `uniform_random`; one number by default.
        out: what to write; a new variable by default.
        dtype: int64 (the default) or int32.
        device: has no effect.
        stop_gradient: whether the result has a gradient.
        seed: 0 for new numbers in each run.
        name: put into the name of the result.

    Raises:
        TypeError: `dtype` is another type.
        ValueError: `high` is not above `low`.
    """
    kind = VarType.INT64 if dtype is None else to_vartype(dtype)
    if kind not in (VarType.INT32, VarType.INT64):
        raise TypeError(f"The data type of 'dtype' in randint must be int32 or int64, but received {dtype}")
    if high is None:
        low, high = 0, low
    if low >= high:
        raise ArgumentError(f"randint's low must less then high, but received low = {low}, high = {high}")
    given = {"shape": [1] if shape is None else shape, "low": low, "high": high, "seed": seed}
    made = _shaped("randint", {**given, "name": name, "out": out}, kind)
    made.stop_gradient = stop_gradient
    return made


def randn(
    shape: Sequence[int],
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """Numbers of mean 0 and deviation 1 (`fluid.layers.randn`).

    The operator's seed is drawn from `numpy.random` when the layer is called, as in Fluid: each run then draws the same
    numbers (unless the seed is 0).

    Args:
        shape: a list or tuple of integers.
        out: what to write; a new variable by default.
        dtype: float32 (the default) or float64.
        device: "cpu" or "gpu": where the operator runs, as of `device_guard`.
        stop_gradient: whether the result has no gradient.
        name: put into the name of the result.

    Raises:
        TypeError: `shape` or `dtype` is of another type.
        ValueError: `device` is another.
    """
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"The type of 'shape' in randn must be a list or tuple, but received {type(shape)}")
    if device not in (None, "cpu", "gpu"):
        raise ArgumentError(
            f"The value of 'device' in randn must be None, 'cpu' or 'gpu', but received {device}"
        )
    kind = _float("float32" if dtype is None else dtype, "randn")
    attrs: dict[str, Any] = {"mean": 0.0, "std": 1.0, "seed": int(np.random.randint(0, 100))}
    with device_guard(device):
        attrs = {"shape": list(shape), "dtype": int(kind), **attrs}
        made = LayerHelper("randn", name=name).run("gaussian_random", {}, attrs=attrs, into={"Out": out})
    made.stop_gradient = stop_gradient
    return made


def uniform_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: Any = "float32",
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
) -> Variable:
    """As `uniform_random`, with dimension `output_dim_idx` as large as dimension `input_dim_idx` of `input`.

    Follows `fluid.layers.uniform_random_batch_size_like`.
    """
    return _like("uniform_random_batch_size_like", locals())


def gaussian_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: Any = "float32",
) -> Variable:
    """As `gaussian_random`, with dimension `output_dim_idx` as large as dimension `input_dim_idx` of `input`.

    Follows `fluid.layers.gaussian_random_batch_size_like`.
    """
    return _like("gaussian_random_batch_size_like", locals())


def _float(dtype: Any, layer: str) -> VarType:
    kind = to_vartype(dtype)
    if kind not in FLOATS:
        raise TypeError(
            f"The data type of 'dtype' in {layer} must be float32 or float64, but received {dtype}"
        )
    return kind


def _shaped(op_type: str, arguments: dict[str, Any], kind: VarType) -> Variable:
    helper = LayerHelper(op_type, name=arguments.get("name"))
    sizes, inputs = shape_inputs(
        arguments["shape"], op_type, None if op_type == "gaussian_random" else helper
    )
    return run_layer(op_type, {**arguments, **inputs, "shape": sizes, "dtype": kind}, helper=helper)


def _like(op_type: str, arguments: dict[str, Any]) -> Variable:
    shape, kind = known_shape(arguments["shape"], op_type), _float(arguments["dtype"], op_type)
    return run_layer(op_type, {**arguments, "shape": shape, "dtype": kind})


def random_crop(x: Variable, shape: Sequence[int], seed: int | Variable | None = None) -> Variable:
    """A part of each element of `x`, cut out at a random place of its own (`fluid.layers.random_crop`).

    Args:
        x: a tensor.
        shape: the sizes of the parts along the last dimensions; what is before them are the elements.
        seed: the first number of the random stream, or an int64 variable [1] that holds it and is changed by each run;
            by default another one in each program.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    check_variable(x, "x", "random_crop")
    helper = LayerHelper("random_crop")
    attrs: dict[str, Any] = {"shape": list(shape)}
    if not isinstance(seed, Variable):
        attrs["startup_seed"] = int(np.random.randint(-65536, 65536) if seed is None else seed)
        if is_eager(x):
            return helper.run("random_crop", {"X": x}, ("Out",), attrs)
        seed = helper.create_variable(
            name=helper._new_name("random_crop_seed"), dtype=VarType.INT64, persistable=True
        )
    inputs, outputs = {"X": x, "Seed": seed}, ("Out", "SeedOut")
    return helper.run("random_crop", inputs, outputs, attrs, into={"SeedOut": seed})[0]
