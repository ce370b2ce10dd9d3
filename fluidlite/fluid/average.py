"""`fluid.average`: the weighted average of results."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import callsite, missing

__all__ = ["WeightedAverage"]


class WeightedAverage:
    """The average of values, each with a weight (`fluid.average.WeightedAverage`).

    Warns that `fluid.metrics` has newer ways, as Fluid does.
    """

    numerator: Any
    denominator: Any

    def __init__(self) -> None:
        callsite.warn(
            "The WeightedAverage is deprecated, please use fluid.metrics.Accuracy instead.", Warning
        )
        self.reset()

    def reset(self) -> None:
        """Forget all values."""
        self.numerator = self.denominator = None

    def add(self, value: Any, weight: Any) -> None:
        """Add a number or an array of any shape, which counts `weight` times; arrays keep their shape.

        Raises ValueError for other values, and for a weight that is not one number.
        """
        if not (_is_number(value) or isinstance(value, np.ndarray)):
            raise ValueError(f"The 'value' must be a number(int, float) or a numpy ndarray, got {value!r}")
        if not _is_number(weight):
            raise ValueError(f"The 'weight' must be a number(int, float), got {weight!r}")
        if self.numerator is None:
            self.numerator, self.denominator = value * weight, weight
        else:
            self.numerator = self.numerator + value * weight
            self.denominator = self.denominator + weight

    def eval(self) -> Any:
        """The average so far: a number, or an array of the shape of the values; ValueError if nothing was added."""
        if self.numerator is None:
            raise ValueError("There is no data to be averaged in WeightedAverage.")
        return self.numerator / self.denominator


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) or (
        isinstance(value, np.ndarray) and value.shape == (1,)
    )


__getattr__ = missing.reporter(__name__)
