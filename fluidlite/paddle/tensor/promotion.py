"""Arithmetic of whole tensors with fractions: Paddle 2.0 makes floats of it, where Fluid 1.8 raises or rounds.

Both have the same tensors here. What is computed under `fluid.dygraph.guard` or `enable_dygraph` follows Fluid.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager import Tensor
from ...framework import mode
from ..dtypes import get_default_dtype

_COMPARING = "__pow__ __rpow__ __mod__ __floordiv__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__".split()


def _is_whole(x: Any) -> bool:
    return x.array.dtype.kind in "iub" and not mode.in_dygraph_mode()


def _is_fraction(value: Any) -> bool:
    return isinstance(value, (float, np.floating))


def _beside_fraction(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method`, with a whole tensor as floats beside a Python float."""

    @functools.wraps(method)
    def call(self: Tensor, other: Any) -> Any:
        if _is_fraction(other) and _is_whole(self):
            self = self.astype(get_default_dtype())
        return method(self, other)

    return call


def _dividing(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method`, a division, with a whole tensor as floats whatever it meets."""

    @functools.wraps(method)
    def call(self: Tensor, other: Any) -> Any:
        return method(self.astype(get_default_dtype()) if _is_whole(self) else self, other)

    return call


def _scaling(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method(self, scale, bias)`, which sums and products with numbers are, with a whole tensor as floats beside a
    Python float. That 1.0, -1.0 and 0.0, with which there is nothing to do, are the user's cannot be seen."""

    @functools.wraps(method)
    def call(self: Tensor, scale: Any, bias: Any) -> Any:
        fraction = (_is_fraction(scale) and abs(scale) != 1.0) or (_is_fraction(bias) and bias != 0.0)
        if fraction and _is_whole(self):
            self = self.astype(get_default_dtype())
        return method(self, scale, bias)

    return call


def attach() -> None:
    """Have eager tensors do as Paddle 2.0 says, outside of the dygraph mode of Fluid."""
    for name in _COMPARING:
        setattr(Tensor, name, _beside_fraction(getattr(Tensor, name)))
    for name in ("__truediv__", "__rtruediv__"):
        setattr(Tensor, name, _dividing(getattr(Tensor, name)))
    Tensor._scaled = _scaling(Tensor._scaled)  # type: ignore[method-assign]
