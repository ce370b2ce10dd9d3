"""Distributions of numbers, as parts of programs (`fluid.layers.distributions`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base import callsite
from ...base.errors import ArgumentError
from ...framework import Variable
from ..layer_helper import check_variable
from .nn.activations import log
from .ops import exp
from .tensor.arithmetic import elementwise_pow, less_than, reduce_max, reduce_prod, reduce_sum
from .tensor.constants import diag, fill_constant_batch_size_like, ones, zeros
from .tensor.matrix import matmul
from .tensor.random import gaussian_random, uniform_random, uniform_random_batch_size_like
from .tensor.shapes import reshape, shape
from .tensor.variables import assign, cast, create_tensor

__all__ = ["Categorical", "MultivariateNormalDiag", "Normal", "Uniform"]


def _check_type(value: Any, name: str, where: str, kinds: tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"The type of '{name}' in {where} must be {wanted}, but received {type(value)}.")


class Distribution:
    """The base class of distributions (`fluid.layers.distributions.Distribution`)."""

    _NUMBERS: tuple[type, ...] = (float, np.ndarray, Variable, list)

    def sample(self, shape: Sequence[int], seed: int = 0) -> Variable:
        """Draw numbers."""
        raise NotImplementedError

    def entropy(self) -> Variable:
        """The entropy, in nats."""
        raise NotImplementedError

    def kl_divergence(self, other: Any) -> Variable:
        """The Kullback-Leibler divergence from `other`, in nats."""
        raise NotImplementedError

    def log_prob(self, value: Variable) -> Variable:
        """The logarithm of the density at `value`."""
        raise NotImplementedError

    def _parameters(self, **given: Any) -> list[Variable]:
        """The arguments as Variables: numbers and arrays broadcast to one shape, Variables unchanged."""
        where = type(self).__name__
        for name, value in given.items():
            _check_type(value, name, where, self._NUMBERS)
        values = list(given.values())
        self.all_arg_is_float = all(isinstance(value, float) for value in values)
        self.batch_size_unknown = isinstance(values[0], Variable)
        if any(isinstance(value, Variable) for value in values):
            if not all(isinstance(value, Variable) for value in values):
                raise ArgumentError("if one argument is Variable, all arguments should be Variable")
            return values
        arrays = [
            np.full(1, value, "float32") if isinstance(value, float) else np.asarray(value)
            for value in values
        ]
        if any(array.dtype != np.float32 for array in arrays):
            callsite.warn(
                "data type of argument only support float32, your argument will be convert to float32."
            )
        made = []
        for array in np.broadcast_arrays(*(array.astype("float32") for array in arrays)):
            made.append(create_tensor(dtype="float32"))
            assign(np.ascontiguousarray(array), made[-1])
        return made


class _Located(Distribution):
    """A location-scale family: draws from a standard distribution, scaled and shifted."""

    def _stretch(self, zero: Variable) -> Variable:
        raise NotImplementedError

    def _plain(self, shape: list[int], zero: Variable | None, seed: int) -> Variable:
        raise NotImplementedError

    def _drawn(self, shape_: Sequence[int], seed: int, low: Variable, high: Variable) -> Variable:
        _check_type(shape_, "shape", "sample", (list,))
        _check_type(seed, "seed", "sample", (int,))
        wanted, batch = list(shape_), list((low + high).shape)
        if self.batch_size_unknown:
            zero = fill_constant_batch_size_like(low + high, batch + wanted, low.dtype, 0.0)
            drawn = self._plain([], zero, seed) * self._stretch(zero) + low
            return reshape(drawn, wanted + batch)
        drawn = self._plain(wanted + batch, None, seed)
        out: Variable = drawn * self._stretch(zeros(wanted + batch, dtype=low.dtype)) + low
        return reshape(out, wanted) if self.all_arg_is_float else out


class Uniform(_Located):
    """Numbers between `low` and `high` (`fluid.layers.Uniform`).

    Args:
        low, high: the ends: floats, float32 arrays or lists, which are broadcast, or Variables [batch, ...].

    Raises:
        TypeError: for anything else. ValueError: for a Variable beside a number.
    """

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = self._parameters(low=low, high=high)

    def _plain(self, shape: list[int], zero: Variable | None, seed: int) -> Variable:
        if zero is not None:
            return uniform_random_batch_size_like(zero, zero.shape, min=0.0, max=1.0, seed=seed)
        return uniform_random(shape, seed=seed)

    def _stretch(self, zero: Variable) -> Variable:
        if self.batch_size_unknown:
            return zero + self.high - self.low
        return zero + (self.high - self.low)

    def sample(self, shape: Sequence[int], seed: int = 0) -> Variable:
        """Draw numbers, [*shape, *batch]; `seed` not 0: the same ones in each run.

        As in Fluid numbers from ends that are no Variables lie between 2 low - high and high.
        """
        return self._drawn(shape, seed, self.low, self.high)

    def log_prob(self, value: Variable) -> Variable:
        """The logarithm of the density at `value`: minus infinity outside."""
        check_variable(value, "value", "log_prob")
        above, below = less_than(self.low, value), less_than(value, self.high)
        inside = cast(above, dtype=value.dtype) * cast(below, dtype=value.dtype)
        return log(inside) - log(self.high - self.low)

    def entropy(self) -> Variable:
        """The entropy, log(high - low)."""
        return log(self.high - self.low)


class Normal(_Located):
    """Normal distributions (`fluid.layers.Normal`).

    Args:
        loc, scale: mean and standard deviation: floats, float32 arrays or lists, which are broadcast, or Variables
            [batch, ...].

    Raises:
        TypeError: for anything else. ValueError: for a Variable beside a number.
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = self._parameters(loc=loc, scale=scale)

    def _plain(self, shape_: list[int], zero: Variable | None, seed: int) -> Variable:
        wanted = shape_ if zero is None else shape(zero)
        return gaussian_random(wanted, mean=0.0, std=1.0, seed=seed)

    def _stretch(self, zero: Variable) -> Variable:
        return zero + self.scale

    def sample(self, shape: Sequence[int], seed: int = 0) -> Variable:
        """Draw numbers, [*shape, *batch]; `seed` not 0: the same ones in each run."""
        return self._drawn(shape, seed, self.loc, self.scale)

    def entropy(self) -> Variable:
        """The entropy, 1/2 + log(2 pi) / 2 + log(scale)."""
        batch = list((self.loc + self.scale).shape)
        zero = fill_constant_batch_size_like(self.loc + self.scale, batch, self.loc.dtype, 0.0)
        return log(self.scale + zero) + (0.5 + 0.5 * math.log(2 * math.pi))

    def log_prob(self, value: Variable) -> Variable:
        """The logarithm of the density at `value`."""
        check_variable(value, "value", "log_prob")
        variance = self.scale * self.scale
        log_scale = log(self.scale)
        found: Variable = -1.0 * ((value - self.loc) * (value - self.loc)) / (2.0 * variance)
        return found - log_scale - math.log(math.sqrt(2.0 * math.pi))

    def kl_divergence(self, other: Normal) -> Variable:
        """The Kullback-Leibler divergence from another Normal."""
        _check_type(other, "other", "kl_divergence", (Normal,))
        ratio = self.scale / other.scale
        ratio = ratio * ratio
        distance = (self.loc - other.loc) / other.scale
        distance = distance * distance
        return 0.5 * (ratio + distance - 1.0 - log(ratio))


class Categorical(Distribution):
    """Choices of one of several classes (`fluid.layers.Categorical`).

    Args:
        logits: scores [batch, classes] of which the softmax is taken: a Variable, a float32 array or a list.
    """

    _NUMBERS = (np.ndarray, Variable, list)

    def __init__(self, logits: Any) -> None:
        (self.logits,) = self._parameters(logits=logits)

    def entropy(self) -> Variable:
        """The entropy, [batch, 1]."""
        logits = self.logits - reduce_max(self.logits, dim=-1, keep_dim=True)
        exponentials = exp(logits)
        total = reduce_sum(exponentials, dim=-1, keep_dim=True)
        shares = exponentials / total
        return -1.0 * reduce_sum(shares * (logits - log(total)), dim=-1, keep_dim=True)

    def kl_divergence(self, other: Categorical) -> Variable:
        """The Kullback-Leibler divergence from another Categorical, [batch, 1]."""
        _check_type(other, "other", "kl_divergence", (Categorical,))
        logits = self.logits - reduce_max(self.logits, dim=-1, keep_dim=True)
        others = other.logits - reduce_max(other.logits, dim=-1, keep_dim=True)
        exponentials, other_exponentials = exp(logits), exp(others)
        total = reduce_sum(exponentials, dim=-1, keep_dim=True)
        other_total = reduce_sum(other_exponentials, dim=-1, keep_dim=True)
        shares = exponentials / total
        log_ratio = logits - log(total) - others + log(other_total)
        return reduce_sum(shares * log_ratio, dim=-1, keep_dim=True)


class MultivariateNormalDiag(Distribution):
    """Normal distributions of vectors with independent elements (`fluid.layers.MultivariateNormalDiag`).

    Args:
        loc: the mean, [n].
        scale: a diagonal matrix [n, n] of variances. Both are Variables, or float32 arrays or lists, which are
            broadcast.
    """

    _NUMBERS = (np.ndarray, Variable, list)

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = self._parameters(loc=loc, scale=scale)

    @staticmethod
    def _ones(value: Variable) -> tuple[Variable, Variable]:
        """A matrix of ones, and a unit matrix."""
        size = list(value.shape)
        return ones(shape=size, dtype=value.dtype), diag(ones(shape=[size[0]], dtype=value.dtype))

    def _det(self, value: Variable) -> Variable:
        """The determinant of a diagonal matrix."""
        whole, unit = self._ones(value)
        return reduce_prod(value + whole - unit)

    def _inv(self, value: Variable) -> Variable:
        """The inverse of a diagonal matrix."""
        whole, unit = self._ones(value)
        return elementwise_pow(value, whole - 2 * unit)

    def entropy(self) -> Variable:
        """The entropy of the whole vector, [1]."""
        constant = self.scale.shape[0] * (1.0 + math.log(2 * math.pi))
        return 0.5 * (constant + log(self._det(self.scale)))

    def kl_divergence(self, other: MultivariateNormalDiag) -> Variable:
        """The Kullback-Leibler divergence from another MultivariateNormalDiag."""
        _check_type(other, "other", "kl_divergence", (MultivariateNormalDiag,))
        trace = reduce_sum(self._inv(other.scale) * self.scale)
        leads = matmul(other.loc - self.loc, self._inv(other.scale))
        mahalanobis = matmul(leads, other.loc - self.loc)
        logs = log(self._det(other.scale)) - log(self._det(self.scale))
        return 0.5 * (trace + mahalanobis - self.scale.shape[0] + logs)
