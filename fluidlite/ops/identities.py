"""Rules for `Planning.identity`, outputs with just the values of an input."""

from __future__ import annotations

from collections.abc import Callable

from ..base.sizes.shapes import same_shape
from .registry import OpView, grad_name

Copied = tuple[str, str]
_DX, _DOUT = grad_name("X"), grad_name("Out")


def always(out: str = "Out", source: str = "X") -> Callable[[OpView], Copied]:
    """Output `out` always has the values of input `source`."""
    return lambda op: (out, source)


def scaled_by_one(op: OpView) -> Copied | None:
    """Out has the values of X if the factor is 1 and the summand 0."""
    if op.has("ScaleTensor") or op.attr("scale") != 1 or op.attr("bias") != 0:
        return None
    return "Out", "X"


def of_a_sum(op: OpView) -> Copied | None:
    """The gradient of X has the values of Out@GRAD if the other summand is broadcast along leading axes."""
    if not op.name_or_none(_DX):
        return None
    x = op.shape("X")
    smaller = len(op.shape("Y")) < len(x) and op.attr("axis") != 0
    return (_DX, _DOUT) if smaller and same_shape(x, op.shape(_DOUT)) and -1 not in x[1:] else None
