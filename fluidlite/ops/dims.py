"""Shapes that operators take from attributes, or from variables when the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.sizes import whole
from ..base.sizes.shapes import product
from .registry import OpView


def declared(op: OpView) -> list[int]:
    """The shape that `shape`, `ShapeTensor` or `ShapeTensorList` give `op`; -1 for sizes known only in a run."""
    shape = [int(n) for n in op.attr("shape")]
    if op.has("ShapeTensor"):
        known = op.value("ShapeTensor")
        if known is not None:
            return whole(known.reshape(-1))
        rank = product(op.shape("ShapeTensor"))
        return shape if len(shape) == rank else [-1] * max(rank, 1)
    if op.has("ShapeTensorList"):
        count = op.count("ShapeTensorList")
        shape += [-1] * (count - len(shape))
        for axis in range(count):
            known = op.value("ShapeTensorList", axis)
            if known is not None:
                (shape[axis],) = whole(known.reshape(-1))
        return shape
    if any(n < 0 for n in shape):
        raise op.fail(f"every number of shape must be 0 or more, got {shape}")
    return shape


def actual(shape: Sequence[int], tensor: Any, tensors: Sequence[Any]) -> list[int]:
    """The shape when the operator runs: from `tensor`, from the one-element `tensors`, or the attribute."""
    if tensor is not None:
        return [int(n) for n in tensor.reshape(-1).tolist()]
    if tensors:
        return [int(n.reshape(-1)[0]) for n in tensors]
    return [int(n) for n in shape]
