"""Random tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.dtypes import to_vartype
from ...eager import Tensor
from ...fluid import layers
from ...fluid.layer_helper import run_op
from ...framework import Variable
from ...ops.tensor.random_ import reseed
from ..dtypes import get_default_dtype
from ..modes import in_mode_of, run
from .manipulation import cast, reshape
from .search import topk

__all__ = [
    "bernoulli",
    "multinomial",
    "normal",
    "rand",
    "randint",
    "randint_like",
    "randn",
    "randperm",
    "seed",
    "standard_normal",
    "uniform",
]


def seed(seed: int) -> None:
    """Have all random numbers from here on depend on `seed`: tensors, initial values, dropout (`paddle.seed`).

    Operators and initializers with a seed of their own, and programs with a `random_seed`, keep to that.
    """
    reseed(int(seed))


def _shape(shape: Any) -> Any:
    if isinstance(shape, Tensor):
        return [int(size) for size in shape.tolist()]
    return shape if isinstance(shape, Variable) else list(shape)


def uniform(
    shape: Any, dtype: Any = None, min: float = -1.0, max: float = 1.0, seed: int = 0, name: str | None = None
) -> Any:
    """Floats drawn evenly from [min, max) (`paddle.uniform`). `seed`: 0 for another one each time."""
    with in_mode_of(shape):
        return layers.uniform_random(_shape(shape), dtype or get_default_dtype(), min, max, seed)


def rand(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Floats drawn evenly from [0, 1) (`paddle.rand`)."""
    return uniform(shape, dtype, 0.0, 1.0)


def standard_normal(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Floats from the normal distribution of mean 0 and deviation 1 (`paddle.standard_normal`)."""
    with in_mode_of(shape):
        return layers.gaussian_random(_shape(shape), dtype=dtype or get_default_dtype())


def randn(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """The same as `standard_normal` (`paddle.randn`)."""
    return standard_normal(shape, dtype, name)


def normal(mean: Any = 0.0, std: Any = 1.0, shape: Any = None, name: str | None = None) -> Any:
    """Floats from normal distributions (`paddle.normal`).

    `mean` and `std` are numbers, and `shape` says how many are drawn, or one of them is a tensor of the result's shape.
    """
    for given in (mean, std):
        if isinstance(given, Variable):
            return standard_normal(list(given.shape), given.dtype) * std + mean
    with in_mode_of(shape):
        return layers.gaussian_random(
            _shape([1] if shape is None else shape), mean, std, dtype=get_default_dtype()
        )


def randint(
    low: int = 0, high: int | None = None, shape: Any = (1,), dtype: Any = None, name: str | None = None
) -> Any:
    """Integers drawn evenly from [low, high), or [0, low) without `high` (`paddle.randint`)."""
    if high is None:
        low, high = 0, low
    with in_mode_of(shape):
        return layers.randint(low, high, shape=_shape(shape), dtype=dtype or "int64", stop_gradient=True)


def randint_like(
    x: Any, low: int = 0, high: int | None = None, dtype: Any = None, name: str | None = None
) -> Any:
    """As `randint`, in the shape and type of `x` (`paddle.randint_like`)."""
    with in_mode_of(x):
        return cast(randint(low, high, x.shape), dtype or x.dtype)


def randperm(n: int, dtype: Any = "int64", name: str | None = None) -> Any:
    """The numbers below `n` in random order (`paddle.randperm`)."""
    with in_mode_of():
        return run_op("randperm", {}, attrs={"n": n, "dtype": int(to_vartype(dtype))})


def bernoulli(x: Any, name: str | None = None) -> Any:
    """Ones with the probabilities that `x` holds, zeros else (`paddle.bernoulli`)."""
    with in_mode_of(x):
        drawn = cast(uniform(x.shape, x.dtype, 0.0, 1.0) < x, x.dtype)
    drawn.stop_gradient = True
    return drawn


def multinomial(x: Any, num_samples: int = 1, replacement: bool = False, name: str | None = None) -> Any:
    """Numbers drawn with the weights in `x` [categories] or [rows, categories], int64 (`paddle.multinomial`).

    `replacement`: whether a number may come again. Raises ValueError for fewer categories than are to be drawn.
    """
    count = x.shape[-1]
    if not replacement and num_samples > count:
        raise ValueError(f"{num_samples} different numbers cannot be drawn from {count} categories")
    with in_mode_of(x):
        if not replacement:
            # The largest of log(weight) plus Gumbel noise are a draw without replacement.
            noise = uniform(x.shape, x.dtype, 0.0, 1.0)
            spread = run("log", {"X": x}) - run("log", {"X": -run("log", {"X": noise})})
            return topk(spread, num_samples)[1]
        rows: Sequence[int] = x.shape[:-1]
        share = run("cumsum", {"X": x}, attrs={"axis": -1})
        whole = run("reduce_sum", {"X": x}, attrs={"dim": [-1], "keep_dim": True})
        drawn = uniform([*rows, num_samples, 1], x.dtype, 0.0, 1.0)
        below = reshape(share / whole, [*rows, 1, count]) <= drawn
        found = run("reduce_sum", {"X": below.astype("int64")}, attrs={"dim": [-1]}, stop_gradient=("Out",))
        return found
