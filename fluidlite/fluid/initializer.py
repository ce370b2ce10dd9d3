"""Initial values of parameters. Calling an initializer puts its operator first in a block.

Follows `fluid.initializer`. With the same seed the values are those that Paddle 1.8 draws on the CPU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.dtypes import FLOATS, VarType, to_numpy
from ..base.errors import ArgumentAssertion, ArgumentError, ArgumentTypeError, TypeAssertion
from ..base.reports.texts import ShowsArguments
from ..framework import Block, Operator, Variable

__all__ = [
    "MSRA",
    "Bilinear",
    "BilinearInitializer",
    "Constant",
    "ConstantInitializer",
    "Initializer",
    "MSRAInitializer",
    "Normal",
    "NormalInitializer",
    "NumpyArrayInitializer",
    "TruncatedNormal",
    "TruncatedNormalInitializer",
    "Uniform",
    "UniformInitializer",
    "Xavier",
    "XavierInitializer",
]

_VALUES = {
    VarType.BOOL: "bool_values",
    VarType.FP32: "fp32_values",
    VarType.INT32: "int32_values",
    VarType.INT64: "int64_values",
}
"""The attribute of `assign_value` for the elements of each type."""


class Initializer(ShowsArguments):
    """Base of all initializers: `initializer(var, block)` has `block` fill `var` first of all."""

    def __call__(self, var: Variable, block: Block) -> Operator:
        raise NotImplementedError(f"{type(self).__name__} does not say how to fill a variable")

    @staticmethod
    def _compute_fans(var: Variable) -> tuple[int, int]:
        """The numbers of inputs and outputs of the layer whose weight `var` is."""
        shape = var.shape
        if not shape:
            return 1, 1
        if len(shape) == 1:
            return shape[0], shape[0]
        if len(shape) == 2:
            return shape[0], shape[1]
        receptive = math.prod(shape[2:])
        return shape[1] * receptive, shape[0] * receptive


def _fill(
    op_type: str, label: str, var: Variable, block: Block, attrs: dict[str, Any], first: bool = True
) -> Operator:
    """Put `op_type` filling `var` first or last in `block`; float16 is filled as float32 and then cast."""
    target, dtype = var, var.dtype
    if dtype == VarType.FP16:
        dtype = VarType.FP32
        target = block.create_var(
            name=block._new_name(f"{label}.{var.name}.tmp"),
            shape=var.shape,
            dtype=dtype,
            persistable=False,
        )
    op = (block._prepend_op if first else block.append_op)(
        type=op_type,
        outputs={"Out": [target]},
        attrs={**attrs, "shape": list(var.shape), "dtype": int(dtype)},
    )
    if target is not var:
        block.append_op(
            type="cast",
            inputs={"X": [target]},
            outputs={"Out": [var]},
            attrs={"in_dtype": int(dtype), "out_dtype": int(var.dtype)},
        )
    return op


def _require_float(var: Variable, who: str) -> None:
    if var.dtype not in FLOATS:
        raise ArgumentTypeError(
            f"{who} fills float16, float32 and float64 variables, but {var.name!r} is {var.dtype}"
        )


def _number(value: Any, what: str) -> float:
    if value is None or isinstance(value, (str, bytes)):
        error = TypeAssertion if value is None else ArgumentTypeError
        raise error(f"{what} must be a number, got {value!r}")
    return float(value)


class _Random(Initializer):
    """An initializer that draws numbers; seed 0 means the program's `random_seed`."""

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise ArgumentTypeError(f"the seed of {type(self).__name__} must be an integer, got {seed!r}")
        self._seed = int(seed)

    def _seed_in(self, block: Block) -> int:
        return self._seed or block.program.random_seed

    def _evenly(self, var: Variable, block: Block, low: float, high: float, **attrs: Any) -> Operator:
        _require_float(var, type(self).__name__)
        attrs = {"min": low, "max": high, "seed": self._seed_in(block), **attrs}
        return _fill("uniform_random", "uniform_random", var, block, attrs)

    def _normally(
        self, var: Variable, block: Block, mean: float, std: float, op_type: str = "gaussian_random"
    ) -> Operator:
        _require_float(var, type(self).__name__)
        return _fill(op_type, op_type, var, block, {"mean": mean, "std": std, "seed": self._seed_in(block)})


class ConstantInitializer(Initializer):
    """Every element is `value` (`fluid.initializer.Constant`).

    Args:
        value: a number.
        force_cpu: kept in the program; the value is the same.

    Raises:
        TypeError: `value` is no number.

    Example:
        >>> import paddle.fluid as fluid
        >>> start = fluid.initializer.Constant(0.5)
        >>> w = fluid.layers.create_parameter([2, 3], "float32", default_initializer=start)
        >>> fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), fetch_list=[w])[0][0]
        array([0.5, 0.5, 0.5], dtype=float32)
    """

    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        self._value = _number(value, "the value of Constant")
        self._force_cpu = bool(force_cpu)

    def __call__(self, var: Variable, block: Block) -> Operator:
        return _fill(
            "fill_constant", "constant_init", var, block, {"value": self._value, "force_cpu": self._force_cpu}
        )


class UniformInitializer(_Random):
    """Elements drawn evenly from [low, high) (`fluid.initializer.Uniform`), for parameters of float32 or float64.

    Args:
        low, high: the limits.
        seed: 0: that of the program, or another one in each run if this is 0, too.
        diag_num, diag_step, diag_val: `diag_num` elements, `diag_step` + 1 apart (of a matrix with `diag_step` columns:
            its diagonal), become `diag_val`.

    Raises:
        ValueError: `high` is below `low`, or only one of `diag_num` and `diag_step` is above 0.

    Example:
        >>> import paddle.fluid as fluid
        >>> start = fluid.initializer.Uniform(-1, 1)
        >>> w = fluid.layers.create_parameter([2, 3], "float32", default_initializer=start)
        >>> fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), fetch_list=[w])[0].shape
        (2, 3)
    """

    def __init__(
        self,
        low: float = -1.0,
        high: float = 1.0,
        seed: int = 0,
        diag_num: int = 0,
        diag_step: int = 0,
        diag_val: float = 1.0,
    ) -> None:
        super().__init__(seed)
        self._low, self._high = _number(low, "the low of Uniform"), _number(high, "the high of Uniform")
        if self._high < self._low:
            raise ArgumentAssertion(
                f"the high of Uniform must not be below its low, got low={low}, high={high}"
            )
        if (diag_num > 0 or diag_step > 0) and (diag_num < 1 or diag_step < 1):
            raise ArgumentError(
                f"diag_num and diag_step must both be positive or 0, got {diag_num} and {diag_step}"
            )
        self._diag_num, self._diag_step, self._diag_val = diag_num, diag_step, float(diag_val)

    def __call__(self, var: Variable, block: Block) -> Operator:
        diagonal = {"diag_num": self._diag_num, "diag_step": self._diag_step, "diag_val": self._diag_val}
        return self._evenly(var, block, self._low, self._high, **diagonal)


class NormalInitializer(_Random):
    """Normal numbers (`fluid.initializer.Normal`), for parameters of float32 or float64.

    Args:
        loc: their mean.
        scale: their standard deviation.
        seed: 0: that of the program, or another one in each run if this is 0, too.

    Raises:
        TypeError: `loc` or `scale` is no number.

    Example:
        >>> import paddle.fluid as fluid
        >>> start = fluid.initializer.Normal(scale=0.1)
        >>> w = fluid.layers.create_parameter([2, 3], "float32", default_initializer=start)
        >>> fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), fetch_list=[w])[0].shape
        (2, 3)
    """

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed)
        self._mean, self._std_dev = _number(loc, "loc"), _number(scale, "scale")

    def __call__(self, var: Variable, block: Block) -> Operator:
        return self._normally(var, block, self._mean, self._std_dev)


class TruncatedNormalInitializer(NormalInitializer):
    """As `Normal`, but only from within two deviations of the mean (`fluid.initializer.TruncatedNormal`)."""

    def __call__(self, var: Variable, block: Block) -> Operator:
        return self._normally(var, block, self._mean, self._std_dev, "truncated_gaussian_random")


def _positive(fans: float, label: str, var: Variable) -> float:
    """How many values a layer's weights connect; raises ZeroDivisionError, as Fluid does, if there are none."""
    if fans == 0:
        raise ZeroDivisionError(
            f"{label} scales by the inputs and outputs of a layer, and '{var.name}' of shape {list(var.shape)} "
            "has none; give the layer a positive size"
        )
    return fans


class XavierInitializer(_Random):
    """Signals keep their size through the layer, forward and backward (`fluid.initializer.Xavier`).

    Uniform within sqrt(6 / (fan_in + fan_out)), or normal with variance 2 / (fan_in + fan_out); the fans come
    from the variable's shape unless given (Glorot and Bengio 2010).
    """

    def __init__(
        self, uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(seed)
        self._uniform = _flag(uniform, "Xavier")
        self._fan_in, self._fan_out = fan_in, fan_out

    def __call__(self, var: Variable, block: Block) -> Operator:
        known_in, known_out = self._compute_fans(var)
        fans = _positive(
            (known_in if self._fan_in is None else self._fan_in)
            + (known_out if self._fan_out is None else self._fan_out),
            "Xavier",
            var,
        )
        if self._uniform:
            limit = math.sqrt(6.0 / fans)
            return self._evenly(var, block, -limit, limit)
        return self._normally(var, block, 0.0, math.sqrt(2.0 / fans))


class MSRAInitializer(_Random):
    """For layers followed by relu (`fluid.initializer.MSRA`; He et al. 2015).

    Uniform within sqrt(6 / fan_in), or normal with variance 2 / fan_in.
    """

    def __init__(self, uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> None:
        super().__init__(seed)
        self._uniform = _flag(uniform, "MSRA")
        self._fan_in = fan_in

    def __call__(self, var: Variable, block: Block) -> Operator:
        known = self._compute_fans(var)[0] if self._fan_in is None else self._fan_in
        fan_in = _positive(known, "MSRA", var)
        if self._uniform:
            limit = math.sqrt(6.0 / fan_in)
            return self._evenly(var, block, -limit, limit)
        return self._normally(var, block, 0.0, math.sqrt(2.0 / fan_in))


class BilinearInitializer(Initializer):
    """The filter with which `conv2d_transpose` upsamples by interpolation (`fluid.initializer.Bilinear`).

    Fills float variables of shape [C_out, C_in, K, K]; raises ValueError for others.
    """

    def __call__(self, var: Variable, block: Block) -> Operator:
        shape = var.shape
        if len(shape) != 4:
            raise ArgumentError(f"the length of shape must be 4, got {list(shape)} for {var.name!r}")
        if shape[2] != shape[3]:
            raise ArgumentError(f"shape[2] must be equal to shape[3], got {list(shape)} for {var.name!r}")
        _require_float(var, "Bilinear")
        size = shape[3]
        factor = math.ceil(size / 2)
        center = (2 * factor - 1 - factor % 2) / (2 * factor)
        x = np.arange(size * size) % size
        # Fluid's row coordinate is not rounded down to the row, so it grows within a row as well.
        y = np.arange(size * size) / size
        plane = (1 - np.abs(x / factor - center)) * (1 - np.abs(y / factor - center))
        weight = np.broadcast_to(plane.reshape(size, size), shape)
        # Fluid puts this one last in the block.
        return _fill_values(weight, "bilinear_init", var, block, first=False)


class NumpyArrayInitializer(Initializer):
    """The elements of an array in the variable's type (`fluid.initializer.NumpyArrayInitializer`).

    Raises TypeError for anything but an array or a variable of a type that programs cannot hold constants of.
    The startup program fails if the array has another number of elements than the variable.
    """

    def __init__(self, value: np.ndarray) -> None:
        if not isinstance(value, np.ndarray):
            raise TypeAssertion(f"NumpyArrayInitializer takes a numpy.ndarray, got {type(value).__name__}")
        self._value = value

    def __call__(self, var: Variable, block: Block) -> Operator:
        return _fill_values(self._value, "numpy_array_init", var, block)


def _fill_values(value: np.ndarray, label: str, var: Variable, block: Block, first: bool = True) -> Operator:
    """Have `block` fill `var` with the elements of `value`; TypeError if programs hold none of its type."""
    dtype = VarType.FP32 if var.dtype == VarType.FP16 else var.dtype
    if dtype not in _VALUES:
        kinds = ", ".join(str(kind) for kind in (VarType.FP16, *_VALUES))
        raise ArgumentTypeError(f"arrays can fill variables of {kinds}, but {var.name!r} is {dtype}")
    values = value.astype(to_numpy(dtype)).ravel().tolist()
    return _fill("assign_value", label, var, block, {_VALUES[dtype]: values}, first)


def _flag(value: Any, who: str) -> bool:
    if value is None:
        raise ArgumentTypeError(f"the uniform of {who} must be True or False, got None")
    return bool(value)


Constant = ConstantInitializer
Uniform = UniformInitializer
Normal = NormalInitializer
TruncatedNormal = TruncatedNormalInitializer
Xavier = XavierInitializer
MSRA = MSRAInitializer
Bilinear = BilinearInitializer
