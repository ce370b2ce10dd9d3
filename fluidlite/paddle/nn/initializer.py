"""Initial values of parameters (`paddle.nn.initializer`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...fluid.initializer import (
    BilinearInitializer,
    ConstantInitializer,
    Initializer,
    MSRAInitializer,
    NormalInitializer,
    NumpyArrayInitializer,
    TruncatedNormalInitializer,
    UniformInitializer,
    XavierInitializer,
)

__all__ = [
    "Assign",
    "Bilinear",
    "Constant",
    "Initializer",
    "KaimingNormal",
    "KaimingUniform",
    "Normal",
    "TruncatedNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "calculate_gain",
]

Bilinear = BilinearInitializer


class Constant(ConstantInitializer):
    """Every element is `value` (`paddle.nn.initializer.Constant`)."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__(value)


class Normal(NormalInitializer):
    """Drawn from a normal distribution (`paddle.nn.initializer.Normal`)."""

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> None:
        super().__init__(mean, std)


class TruncatedNormal(TruncatedNormalInitializer):
    """Drawn from a normal distribution, within two deviations (`paddle.nn.initializer.TruncatedNormal`)."""

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> None:
        super().__init__(mean, std)


class Uniform(UniformInitializer):
    """Drawn evenly from [low, high) (`paddle.nn.initializer.Uniform`)."""

    def __init__(self, low: float = -1.0, high: float = 1.0, name: str | None = None) -> None:
        super().__init__(low, high)


class XavierNormal(XavierInitializer):
    """Normal with variance 2 / (fan_in + fan_out) (`paddle.nn.initializer.XavierNormal`)."""

    def __init__(
        self, fan_in: float | None = None, fan_out: float | None = None, name: str | None = None
    ) -> None:
        super().__init__(False, fan_in, fan_out)


class XavierUniform(XavierInitializer):
    """Even, within sqrt(6 / (fan_in + fan_out)) (`paddle.nn.initializer.XavierUniform`)."""

    def __init__(
        self, fan_in: float | None = None, fan_out: float | None = None, name: str | None = None
    ) -> None:
        super().__init__(True, fan_in, fan_out)


class KaimingNormal(MSRAInitializer):
    """Normal with variance 2 / fan_in (`paddle.nn.initializer.KaimingNormal`)."""

    def __init__(self, fan_in: float | None = None) -> None:
        super().__init__(False, fan_in)


class KaimingUniform(MSRAInitializer):
    """Even, within sqrt(6 / fan_in) (`paddle.nn.initializer.KaimingUniform`)."""

    def __init__(self, fan_in: float | None = None) -> None:
        super().__init__(True, fan_in)


class Assign(NumpyArrayInitializer):
    """Given values: an array, nested lists or a tensor (`paddle.nn.initializer.Assign`)."""

    def __init__(self, value: Any, name: str | None = None) -> None:
        array = np.asarray(value)
        super().__init__(array.astype(np.float32) if array.dtype == np.float64 else array)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much initial values are scaled before an activation (`paddle.nn.initializer.calculate_gain`).

    Raises ValueError for one that it does not know.
    """
    slope = 0.01 if param is None else param
    gains = {
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1 + slope**2)),
        "tanh": 5.0 / 3,
        "selu": 0.75,
        **dict.fromkeys(("sigmoid", "linear", "conv1d", "conv2d", "conv3d"), 1.0),
        **dict.fromkeys(("conv1d_transpose", "conv2d_transpose", "conv3d_transpose"), 1.0),
    }
    if nonlinearity not in gains:
        raise ValueError(f"nonlinearity must be one of {sorted(gains)}, got {nonlinearity!r}")
    return gains[nonlinearity]
