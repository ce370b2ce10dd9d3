"""Type promotion of integer tensors with Python floats: Paddle 2.0 gives floats, where Fluid 1.8 raises or rounds.

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


def _with_fraction(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method`, with an integer tensor converted to floats if the other operand is a Python float."""

    @functools.wraps(method)
    def call(self: Tensor, other: Any) -> Any:
        if _is_fraction(other) and _is_whole(self):
            self = self.astype(get_default_dtype())
        return method(self, other)

    return call


def _dividing(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method`, a division, with an integer tensor always converted to floats."""

    @functools.wraps(method)
    def call(self: Tensor, other: Any) -> Any:
        return method(self.astype(get_default_dtype()) if _is_whole(self) else self, other)

    return call


def _scaling(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method(self, scale, bias)`, by which sums and products with numbers are computed, with promotion to floats.

    Scales of 1.0 and -1.0 and a bias of 0.0 do not promote: they may be defaults as well as the user's."""

    @functools.wraps(method)
    def call(self: Tensor, scale: Any, bias: Any) -> Any:
        fraction = (_is_fraction(scale) and abs(scale) != 1.0) or (_is_fraction(bias) and bias != 0.0)
        if fraction and _is_whole(self):
            self = self.astype(get_default_dtype())
        return method(self, scale, bias)

    return call


def attach() -> None:
    """Give eager tensors the promotion of Paddle 2.0, outside of Fluid's dygraph mode."""
    for name in _COMPARING:
        setattr(Tensor, name, _with_fraction(getattr(Tensor, name)))
    for name in ("__truediv__", "__rtruediv__"):
        setattr(Tensor, name, _dividing(getattr(Tensor, name)))
    Tensor._scaled = _scaling(Tensor._scaled)  # type: ignore[method-assign]
