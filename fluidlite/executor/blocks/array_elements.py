"""Tensor arrays in a loop that the engine runs: what is read and written while it turns is memory of the engine's.

See `plan/elements.py` (`FOUND`, `WRITE`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ext.engine import Elements
from ...base.dtypes import VarType, to_vartype
from ...base.tensor_array import TensorArray
from ...ops.registry import Shape
from ..plan.found import Missed
from ..plan.shapes import CannotPlan
from .environment import Environment


def like(array: Any, index: Any) -> tuple[Shape, VarType, list[int]]:
    """Shape, type and lengths of the offsets of the element of an array that is read next."""
    if not isinstance(array, TensorArray) or not len(array):
        raise CannotPlan("an array that is read has no element yet", passing=True)
    known = isinstance(index, np.ndarray) and index.size == 1 and 0 <= index.item() < len(array)
    at = int(index.item()) if known else len(array) - 1
    element = array.arrays[at]
    if element is None:
        raise CannotPlan("an array that is read has no element yet", passing=True)
    if not element.ndim:
        raise CannotPlan("elements of an array have no dimensions")
    return element.shape, to_vartype(element.dtype), [len(level) for level in array.lods[at]]


def begin(elements: Elements, array: Any, dtype: np.dtype, tail: tuple[int, ...]) -> None:
    """Have the engine find the elements of an array that there are.

    Raises Missed if they are of another type, or their rows have another shape.
    """
    if not isinstance(array, TensorArray):
        return elements.begin()
    if any(each is not None and (each.dtype != dtype or each.shape[1:] != tail) for each in array.arrays):
        raise Missed("elements of an array have another shape or type")
    elements.begin(
        [None if each is None else np.ascontiguousarray(each) for each in array.arrays], array.lods
    )


def leave(elements: Elements, name: str, dtype: np.dtype, tail: Shape, environment: Environment) -> None:
    """Put what has been written into the array of that name; `tail`: the shape of a row."""
    if not elements.count:
        return
    first = elements.first
    whole, bounds, lods = elements.take(dtype, tail)
    array = environment.find(name)
    if not isinstance(array, TensorArray):
        array = TensorArray()
    made = TensorArray.cut(whole, bounds, lods)
    if not len(array) and not first:
        array = made
    else:
        array.put(first, made.arrays, lods)
    environment.put(name, array)


__all__ = ["begin", "leave", "like"]
