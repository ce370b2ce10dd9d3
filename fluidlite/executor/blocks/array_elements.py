"""Tensor arrays in a loop that the engine runs: what is read and written while it turns is memory of the engine's.

`read_from_array` and `write_to_array` become operators that go by the name of that memory. Elements come in order.
Where all of an array have one size, and no sequences, that is known beforehand; otherwise each turn finds it (`FOUND`).
Where a loop asks for another element, or its plan is not for what it finds, nothing counts that has been done: in this
turn, if it began with `TURN`, or at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._ext.engine import Elements
from ...base.dtypes import VarType, to_vartype
from ...base.tensor_array import TensorArray
from ...framework import Block, Operator
from ...ops.registry import OpDef, Shape
from ..plan.elements import FOUND, READ, TURN, WRITE
from ..plan.found import Missed
from ..plan.shapes import CannotPlan, in_place_of
from .environment import Environment

ELEMENT = "@ELEMENT"
"""Stands behind the name of an array that is read: an element, for its shape."""


def on_array(op: Operator) -> bool:
    """Whether an operator reads or writes an element, as forward operators do."""
    if op.definition.role == "read":
        return not op.inputs.get(op.definition.takes_out)
    return op.definition.role == "write" and not op.attr("accumulate")


def on_elements(block: Block, ops: Sequence[Operator], around: Environment | None = None) -> list[Operator]:
    """The operators of a loop's block, those on arrays of the blocks around it in the way that the engine runs them.

    `around`: what the arrays hold, if their elements may have several sizes.
    """
    made = []
    for op in ops:
        if not on_array(op):
            made.append(op)
            continue
        reads = op.definition.role == "read"
        (array,) = op.inputs["X"] if reads else op.outputs["Out"]
        if array in block.vars:
            raise CannotPlan("an array is another one in each turn")
        if reads and around is not None:
            attrs = {"array": array, "like": _like(around.find(array), around.find(op.inputs["I"][0]))}
            made.append(in_place_of(op, FOUND, {"I": op.inputs["I"]}, {"Out": op.outputs["Out"]}, attrs))
        elif reads:
            like = {"I": op.inputs["I"], "Like": [array + ELEMENT]}
            made.append(in_place_of(op, READ, like, {"Out": op.outputs["Out"]}, {"array": array}))
        else:
            made.append(
                in_place_of(op, WRITE, {"X": op.inputs["X"], "I": op.inputs["I"]}, {}, {"array": array})
            )
    if around is not None:
        arrays = dict.fromkeys(op.attrs["array"] for op in made if op.definition in (FOUND, WRITE))
        made.insert(0, in_place_of(ops[0], TURN, {}, {}, {"arrays": list(arrays)}))
    return made


def _like(array: Any, index: Any) -> tuple[Shape, VarType, list[int]]:
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


def arrays_in(ops: Sequence[Operator], definition: OpDef) -> list[str]:
    """The arrays that operators read (READ) or write (WRITE)."""
    return list(dict.fromkeys(op.attrs["array"] for op in ops if op.definition is definition))


def sample(array: Any) -> np.ndarray:
    """An element of an array of which all have one shape and type, and no sequences."""
    if not isinstance(array, TensorArray):
        raise CannotPlan("what is read is no array", passing=True)
    found = [each for each in array.arrays if each is not None]
    if not found:
        raise CannotPlan("an array that is read has no element yet", passing=True)
    first = found[0]
    if any(array.lods) or any(each.shape != first.shape or each.dtype != first.dtype for each in found):
        raise CannotPlan("elements of an array have sequences, or several shapes or types")
    return first


def with_samples(names: Sequence[str], environment: Environment) -> Environment:
    """An environment that has an element of each of these arrays besides."""
    inside = Environment(None, environment)
    for name in names:
        inside.keep(name + ELEMENT, sample(environment.find(name)))
    return inside


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


def leave(elements: Elements, name: str, dtype: np.dtype, shape: Shape, environment: Environment) -> None:
    """Put what has been written into the array of that name; `shape` is that of an element."""
    if not elements.count:
        return
    first = elements.first
    whole, bounds, lods = elements.take(dtype, shape[1:])
    array = environment.find(name)
    if not isinstance(array, TensorArray):
        array = TensorArray()
    made = TensorArray.cut(whole, bounds, lods)
    if not shape:
        array.put(first, [each.reshape(()) for each in made.arrays])
    elif not len(array) and not first:
        array = made
    else:
        array.put(first, made.arrays, lods)
    environment.put(name, array)


__all__ = ["arrays_in", "begin", "leave", "on_elements", "with_samples"]
