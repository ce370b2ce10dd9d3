"""Elements of tensor arrays that a segment reads before its plan runs, and writes afterwards.

    read_from_array(words, i) -> word       load   words[i] -> word
    fc(word) -> new                         plan   fc(word) -> new; increment(i)
    increment(i)
    write_to_array(new, i) -> words         store  new -> words[i]

So plans do not depend on the sizes and LoD of the other elements.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...base.tensor_array import TensorArray
from ...framework import Operator
from ..failures import Unsupported
from ..ir.inference import declared_type, in_place_of
from .frame import Frame

if TYPE_CHECKING:
    from .interpreter import Interpreter

COPY = "@STORED"
"""The mark in the name of a copy, for a value that the segment overwrites before the store."""


class Load(NamedTuple):
    """The element of `array` at index `at` becomes the value of `out`, which has the element type `dtype`."""

    array: str
    at: str
    out: str
    dtype: np.dtype | None

    def run(self, frame: Frame) -> bool:
        """Load the element; False if there is none of this type."""
        array, index = frame.find(self.array), frame.find(self.at)
        if type(array) is not TensorArray or type(index) is not np.ndarray or index.size != 1:
            return False
        at = index.item()
        element = array.arrays[at] if 0 <= at < len(array) else None
        if element is None or element.dtype != self.dtype:
            return False
        frame.put(self.out, element, array.lods[at])
        return True


class Store(NamedTuple):
    """The value of `value` becomes the element of `array` at index `at`; `op`: the operator that writes it."""

    op: Operator
    array: str
    at: str
    value: str

    def run(self, run: Interpreter, frame: Frame) -> None:
        array, index, value = map(frame.find, (self.array, self.at, self.value))
        if type(array) is not TensorArray or type(index) is not np.ndarray or type(value) is not np.ndarray:
            run.run_operator(self.op, frame)
        elif index.size != 1 or index.item() < 0:
            run.run_operator(self.op, frame)  # which raises
        else:
            # The value may share memory with a variable of the scope or an array of the user.
            array.write(index.item(), value.copy(), frame.lod_of(self.value))


class Accesses(NamedTuple):
    """The operators of a segment, with the loads before and the stores after them."""

    ops: Sequence[Operator]
    loads: Sequence[Load]
    stores: Sequence[Store]


def separated(ops: Sequence[Operator], arrays: Collection[str]) -> Accesses:
    """The operators, with accesses to elements of these arrays turned into loads and stores.

    Raises Unsupported naming an operator that must begin another segment: it reads an element that this one may write,
    or at an index that this one computes.
    """
    loads: list[Load] = []
    stores: list[Store] = []
    rest: list[Operator] = []
    touched: set[str] = set()
    written: set[str] = set()
    stored: set[str] = set()
    for at, op in enumerate(ops):
        if op.type == "read_from_array" and op.inputs["X"][0] in arrays and not op.inputs.get("X_W"):
            (array,), (index,), (out,) = op.inputs["X"], op.inputs["I"], op.outputs["Out"]
            if array in stored or index in written or out in touched:
                raise Unsupported(f"an element of {array!r} cannot be loaded before this segment", op)
            loads.append(Load(array, index, out, declared_type(op, out)))
            touched.add(out)
        elif op.type == "write_to_array" and op.outputs["Out"][0] in arrays and not op.attr("accumulate"):
            (value,), (index,), (array,) = op.inputs["X"], op.inputs["I"], op.outputs["Out"]
            later = {name for other in ops[at + 1 :] for name in other.writes()}
            names = [name if name not in later else f"{name}{COPY}{at}" for name in (value, index)]
            for name, copy in zip((value, index), names, strict=True):
                if copy != name:
                    rest.append(in_place_of(op, "assign", {"X": [name]}, {"Out": [copy]}, {}))
            write = in_place_of(op, op.type, {"X": [names[0]], "I": [names[1]]}, op.outputs)
            stores.append(Store(write, array, names[1], names[0]))
            stored.add(array)
            touched.update((value, index))
        else:
            rest.append(op)
            touched.update((*op.reads(), *op.writes()))
            written.update(op.writes())
    return Accesses(rest, loads, stores)
