"""Tensor arrays in a loop that the engine runs: what is read and written while it turns is memory of the engine's.

`read_from_array` and `write_to_array` become operators that go by the name of that memory. Elements have one size and
come in order; where a loop asks for another one, nothing of what it has done counts, and its turns are taken one by
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._ext.engine import Elements
from ..base.dtypes import VarType
from ..base.sizes import is_fixed
from ..base.tensor_array import TensorArray
from ..framework import Block, Operator
from ..ops.native import itemsize, numel
from ..ops.registry import Call, OpDef, OpView
from .environment import Environment
from .planning import CannotPlan, in_place_of

ELEMENT = "@ELEMENT"
"""Stands behind the name of an array that is read: an element, for its shape."""

ELEMENTS = "@ELEMENTS"
"""Stands behind the name of an array: its elements, as kernels have them."""


class Missed(Exception):
    """A turn reads or writes an element of an array that the engine does not have room for."""


def _check(op: OpView, slot: str) -> None:
    if op.dtype("I") != VarType.INT64 or not is_fixed(op.shape("I")) or numel(op, "I") != 1:
        raise CannotPlan(f"the index {op.name('I')!r} of an array is no int64 of one element")
    if op.lod(slot):
        raise CannotPlan("elements of an array have sequences")


def _infer_read(op: OpView) -> None:
    _check(op, "Like")
    op.set("Out", op.shape("Like"), op.dtype("Like"))


def _native(op: OpView, kernel: str, slot: str) -> Call:
    count = numel(op, slot) * itemsize(op, slot)
    return Call(kernel, [op.attr("array") + ELEMENTS, op.name("I"), op.name(slot)], [count])


def _by_hand(xp: Any, **slots: Any) -> Any:
    raise NotImplementedError("elements of arrays are read and written by native kernels")


READ = OpDef(
    "read_element",
    inputs=("I", "Like#"),
    attrs={"array": ""},
    infer=_infer_read,
    kernel=_by_hand,
    native=lambda op: _native(op, "element_read", "Out"),
    lod_from=None,
    doc="The element at index I of an array whose elements are like Like.",
)
WRITE = OpDef(
    "write_element",
    inputs=("X", "I"),
    outputs=(),
    attrs={"array": ""},
    infer=lambda op: _check(op, "X"),
    kernel=_by_hand,
    native=lambda op: _native(op, "element_write", "X"),
    host=True,
    doc="Puts X at index I of an array.",
)


def on_array(op: Operator) -> bool:
    """Whether an operator reads or writes an element, as forward operators do."""
    if op.definition.role == "read":
        return not op.inputs.get(op.definition.takes_out)
    return op.definition.role == "write" and not op.attr("accumulate")


def on_elements(block: Block, ops: Sequence[Operator]) -> list[Operator]:
    """The operators of a loop's block, those on arrays of the blocks around it in the way that the engine runs them."""
    made = []
    for op in ops:
        if not on_array(op):
            made.append(op)
            continue
        reads = op.definition.role == "read"
        (array,) = op.inputs["X"] if reads else op.outputs["Out"]
        if array in block.vars:
            raise CannotPlan("an array is another one in each turn")
        if reads:
            like = {"I": op.inputs["I"], "Like": [array + ELEMENT]}
            made.append(in_place_of(op, READ, like, {"Out": op.outputs["Out"]}, {"array": array}))
        else:
            made.append(
                in_place_of(op, WRITE, {"X": op.inputs["X"], "I": op.inputs["I"]}, {}, {"array": array})
            )
    return made


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


def begin(elements: Elements, size: int, array: Any) -> None:
    """Have the engine find the elements of an array that there are."""
    there = array.arrays if isinstance(array, TensorArray) else []
    elements.begin(size, [None if each is None else np.ascontiguousarray(each) for each in there])


def leave(
    elements: Elements, name: str, dtype: np.dtype, shape: Sequence[int], environment: Environment
) -> None:
    """Put what has been written into the array of that name."""
    first, whole = elements.first, elements.take(dtype, shape)
    if not len(whole):
        return
    array = environment.find(name)
    if not isinstance(array, TensorArray):
        array = TensorArray()
    if shape and not len(array) and not first:
        bounds = range(0, shape[0] * len(whole) + 1, shape[0]) if shape[0] else [0] * (len(whole) + 1)
        array = TensorArray.cut(whole.reshape(-1, *shape[1:]), bounds)
    else:
        array.put(first, list(whole))
    environment.put(name, array)


__all__ = [
    "ELEMENTS",
    "READ",
    "WRITE",
    "Missed",
    "arrays_in",
    "begin",
    "leave",
    "on_elements",
    "with_samples",
]
