"""Rank tables, arrays of steps and counters outside of loops; see `ragged_scan.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...framework import Operator
from ...framework.gradients.versions import counts
from ...ops.registry import grad_name
from ..failures import Unsupported
from ..ir.inference import in_place_of
from ..ir.ranks import ranked
from .rank_ops import IN_ORDER, IN_STEPS, RANK, ROWS, SEQUENCES
from .scan_lowering import ALIAS, BATCHED


class Number(NamedTuple):
    """The value of a counter: a constant, plus the number of steps of `table` if there is one."""

    value: int
    table: str = ""


class Array:
    """A tensor array: `elements` by index, or, as `whole`, those of all steps of a table from index `start` on."""

    def __init__(self) -> None:
        self.elements: dict[int, str] = {}
        self.whole = self.table = ""
        self.start = 0

    @property
    def empty(self) -> bool:
        return not self.elements and not self.whole

    def has_all(self, start: int, table: str) -> bool:
        """True if the array holds the steps of a table from index `start` on, and nothing else."""
        return not self.elements and bool(self.whole) and (self.start, self.table) == (start, table)


class RankedArrays:
    """Tracks the rank tables, counters and arrays of a block, and lowers the operators on them."""

    def __init__(self) -> None:
        self._numbers: dict[str, Number] = {}
        self._lengths: dict[str, str] = {}  # variable with a number of steps -> the table
        self._conditions: dict[str, tuple[str, Number, str]] = {}  # comparison -> counter, its value, table
        self._tables: dict[str, str] = {}
        self._arrays: dict[str, Array] = {}

    def _note(self, op: Operator) -> None:
        """Track counters, and what they are compared with."""
        for name in op.writes():
            self._lengths.pop(name, None)
            self._conditions.pop(name, None)
            if not counts(op):
                self._numbers.pop(name, None)
        if op.type == "fill_constant" and list(op.attr("shape")) == [1] and not op.input_arg_names:
            value = float(op.attr("value"))
            if value.is_integer():
                self._numbers[op.outputs["Out"][0]] = Number(int(value))
        elif counts(op):
            (name,) = op.inputs["X"]
            known_number = self._numbers.pop(name, None)
            if known_number is not None and float(op.attr("step")).is_integer():
                value = known_number.value + int(op.attr("step"))
                self._numbers[name] = Number(value, known_number.table)
        elif op.definition.planning.pattern == "limit":
            (counter,), (limit,) = op.inputs["X"], op.inputs["Y"]
            if counter in self._numbers and limit in self._lengths:
                number = self._numbers[counter]
                self._conditions[op.outputs["Out"][0]] = counter, number, self._lengths[limit]

    def _rank(self, op: Operator) -> Iterator[Operator]:
        (out,) = op.outputs["Out"]
        self._tables[out] = table = f"{out}.{len(self._tables)}{BATCHED}{op.block.idx}"
        yield in_place_of(op, RANK, dict(op.inputs), {}, {"level": op.attr("level"), "table": table})

    def _table(self, op: Operator) -> str:
        found = self._tables.get(op.inputs["RankTable"][0])
        if found is None:
            raise Unsupported("the rank table is not made by this plan", op)
        return found

    def _longest(self, op: Operator) -> Iterator[Operator]:
        (out,) = op.outputs["Out"]
        table = self._lengths[out] = self._table(op)
        yield in_place_of(op, ALIAS, {"X": [ranked(table, "count")]}, {"Out": [out]}, {})

    def _in_order(self, op: Operator) -> Iterator[Operator]:
        table, back = self._table(op), op.type.endswith("_grad")
        inputs = {"X": op.inputs["X"], "Index": [ranked(table, "back" if back else "order")]}
        yield in_place_of(op, IN_ORDER, inputs, dict(op.outputs), {"table": table, "gradient": back})

    def _split(self, op: Operator) -> Iterator[Operator]:
        (out,), table = op.outputs["Out"], self._table(op)
        array = self._arrays.setdefault(out, Array())
        if not op.attr("accumulate"):
            array = self._arrays[out] = Array()
        if not array.empty:
            raise Unsupported("the gradient of an array has elements already", op)
        array.whole, array.table, array.start = f"{out}{BATCHED}{op.block.idx}", table, 0
        inputs = {"X": op.inputs["X"], "Index": [ranked(table, "items")]}
        attrs = {"table": table, "gradient": bool(op.attr("accumulate"))}
        yield in_place_of(op, IN_STEPS, inputs, {"Out": [array.whole]}, attrs)

    def _join(self, op: Operator) -> Iterator[Operator]:
        (source,), table = op.inputs["X"], self._table(op)
        array = self._arrays.get(source, Array())
        if array.empty and op.inputs.get("X_W"):
            yield in_place_of(op, "fill_zeros_like", {"X": op.inputs["X_W"]}, dict(op.outputs), {})
            return
        if not array.has_all(0, table):
            raise Unsupported("the array does not hold the steps of the sequences of the rank table", op)
        inputs = {"X": [array.whole], "Index": [ranked(table, "places")], "Like": op.inputs.get("X_W") or []}
        yield in_place_of(op, SEQUENCES, inputs, dict(op.outputs), {"table": table})

    def _index(self, op: Operator) -> int:
        number = self._numbers.get(op.inputs["I"][0])
        if number is None or number.table or number.value < 0:
            raise Unsupported("the index of an array is data-dependent", op)
        return number.value

    def _read(self, op: Operator) -> Iterator[Operator]:
        (source,), (out,), index = op.inputs["X"], op.outputs["Out"], self._index(op)
        array, like = self._arrays.get(source, Array()), op.inputs.get("X_W") or []
        if index in array.elements:
            element = array.elements[index]
            if not like:
                yield in_place_of(op, ALIAS, {"X": [element]}, {"Out": [out]}, {})
                return
            del array.elements[index]  # its rows are those of sequences that are not empty
            inputs = {"X": like, grad_name("Out"): [element]}
            yield in_place_of(op, "shrink_rnn_memory_grad", inputs, {grad_name("X"): [out]}, {})
        elif array.whole and array.start == index and not like:
            inputs = {"X": [array.whole], "Index": [ranked(array.table, "first")]}
            yield in_place_of(op, ROWS, inputs, {"Out": [out]}, {})
        elif array.empty and like:
            yield in_place_of(op, "fill_zeros_like", {"X": like}, {"Out": [out]}, {})
        else:
            raise Unsupported("the element of an array that is read is data-dependent", op)

    def _write(self, op: Operator) -> Iterator[Operator]:
        (source,), (out,), index = op.inputs["X"], op.outputs["Out"], self._index(op)
        array = self._arrays.setdefault(out, Array())
        if op.attr("accumulate") or array.whole or index > len(array.elements):
            raise Unsupported("the array has elements already, or none before the index", op)
        array.elements[index] = f"{out}.{index}{BATCHED}{op.block.idx}"
        yield in_place_of(op, ALIAS, {"X": [source]}, {"Out": [array.elements[index]]}, {})


ARRAY_LOWERINGS: dict[str, Callable[[RankedArrays, Operator], Iterator[Operator]]] = {
    "lod_rank_table": RankedArrays._rank,
    "max_sequence_len": RankedArrays._longest,
    "reorder_lod_tensor_by_rank": RankedArrays._in_order,
    "reorder_lod_tensor_by_rank_grad": RankedArrays._in_order,
    "lod_tensor_to_array": RankedArrays._split,
    "array_to_lod_tensor": RankedArrays._join,
    "read_from_array": RankedArrays._read,
    "write_to_array": RankedArrays._write,
}
"""The method that lowers an operator, by its type."""
