"""`RaggedScans`: loops over the steps of ranked sequences, as `DynamicRNN` makes them, as scans.

    lod_rank_table(x) -> table           rank(x)                            computed when the offsets are fed
    lod_tensor_to_array(x) -> a          in_steps(x) -> a@VW                the rows of all steps, step by step
    write_to_array(h, 0) -> states
    while: read a, states                mul(a@VW, w) -> b@VW1              loop fission: once, for all rows
           mul(a, w) -> b                scan(b@VW1, init h) -> new@VW1     the rest of the body, once per step
           ...
           write new -> states, out
    array_to_lod_tensor(out) -> y        sequences(new@VW1) -> y

An array becomes a variable with the rows of all its elements, or one variable for each constant index. The gradient
reads the residuals under their names after lowering.

`CountedLoop` says how a block goes through arrays, if a counter says at which elements:

    word = read_from_array(words, i)        an element per iteration: a stacked input
    state = read_from_array(states, i)      written by the iteration before: loop-carried
    ...
    write_to_array(out, i) -> outs          an element per iteration: a stacked output
    increment(i)
    write_to_array(new, i) -> states
    less_than(i, n) -> cond                 trip count: as long as i is less than n
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...framework import Block, Operator
from ...framework.gradients.blocks import names_read
from ...framework.gradients.versions import changes_nothing, counts
from ...ops.registry import EMPTY, grad_name
from ..failures import Unsupported
from ..ir.inference import in_place_of, is_noop, is_unplannable
from ..ir.ranks import ranked
from .blocks import everywhere, is_inlinable, read_before, reads, results
from .rank_ops import IN_ORDER, IN_STEPS, RANK, ROWS, SEQUENCES
from .recurrent import Scans
from .scan_lowering import ALIAS, BATCHED, Ragged, ScanLowering


class Access(NamedTuple):
    """An array element that an iteration reads or writes: that of its step or, if `follows`, of the next one.

    `like`: for a gradient that is taken out of the array, the variable that has its shape.
    """

    variable: str
    array: str
    follows: bool
    like: str = ""


class Shortened(NamedTuple):
    """The first rows of a variable: those of sequences of a rank table that have the step."""

    variable: str
    source: str
    table: str


class CountedLoop:
    """The block of a loop with one counter, as `DynamicRNN` makes it, or of its gradient.

    `counter`: is one more after an iteration, in a gradient one less; `limit`: what it is compared with; `reads`,
    `writes`, `shortened`: the uses of arrays and rank tables; `carried`: array of a loop-carried variable -> what an
    iteration writes to it; `ops`: the other operators; `outer`: outer variables that these read and then replace.
    `forward`: the block that this one is the gradient of; its variables are local to an iteration as well.

    Raises Unsupported if the block does anything else with arrays.
    """

    def __init__(self, op: Operator, forward: Block | None = None) -> None:
        self._op, self._block = op, op.attrs["sub_block"]
        self._own = {*self._block.vars, *(forward.vars if forward is not None else ())}
        self.ops: list[Operator] = []
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.shortened: list[Shortened] = []
        self.limit = ""
        ops = [each for each in self._block.ops if not changes_nothing(each)]
        indices = {name for each in ops for name in each.inputs.get("I", ())} - self._own
        self.counter = next((n for each in ops if counts(each) for n in each.writes() if n in indices), "")
        condition = "" if forward is not None else op.inputs["Condition"][0]
        self._sort(ops, condition, forward is not None)
        arrays = {access.array for access in self.reads}
        self.carried = {each.array: each.variable for each in self.writes if each.array in arrays}
        self._check(condition, forward is not None)
        self.outer = self._replaced()

    def _refusal(self, reason: str) -> Unsupported:
        return Unsupported(reason, self._op)

    def _sort(self, ops: list[Operator], condition: str, gradient: bool) -> None:
        """Sort the operators by what they do with counter, arrays and rank tables."""
        counted = False
        written = {name for op in ops for name in op.writes()}
        for op in ops:
            role = op.definition.planning.pattern
            on_counter = self.counter in op.inputs.get("I", ())
            follows = counted != gradient
            if counts(op) and op.inputs["X"] == [self.counter]:
                if counted or op.attr("step") != (-1 if gradient else 1):
                    raise self._refusal("its counter does not change by one")
                counted = True
            elif role == "read" and on_counter:
                like = (op.inputs.get(op.definition.effects.consumes) or [""])[0]
                self.reads.append(Access(op.outputs["Out"][0], op.inputs["X"][0], follows, like))
            elif role == "write" and on_counter:
                self.writes.append(Access(op.inputs["X"][0], op.outputs["Out"][0], follows))
            elif role == "shorten" and on_counter and not follows:
                (table,) = op.inputs["RankTable"]
                self.shortened.append(Shortened(op.outputs["Out"][0], op.inputs["X"][0], table))
            elif role == "limit" and op.inputs["X"] == [self.counter] and op.outputs["Out"] == [condition]:
                (self.limit,) = op.inputs["Y"]
                if not counted or self.limit in written:
                    raise self._refusal("its trip count does not follow from a counter")
            elif is_unplannable(op) and not is_inlinable(op, True):
                raise self._refusal(f"operator {op.type} has sub-blocks or non-tensor variables")
            else:
                self.ops.append(op)
                if not {each.variable for each in self.writes}.isdisjoint(op.writes()):
                    raise self._refusal("it overwrites a variable that was written to an array")
        if not counted or not (self.limit or gradient):
            raise self._refusal("its trip count does not follow from a counter")

    def _check(self, condition: str, gradient: bool) -> None:
        read = {name for op in self.ops for name in reads(op)}
        written = {name for op in self.ops for name in op.writes()}
        if not read.union(written, (each.variable for each in self.writes)).isdisjoint(
            (condition, self.counter)
        ):
            raise self._refusal("it computes with its counter or its condition")
        if any(map(self._block._is_persistable, written)):
            raise self._refusal("it changes persistable variables")
        found = [each.variable for each in self.reads] + [each.variable for each in self.shortened]
        sources = [each.source for each in self.shortened]
        if len(found) != len({*found}) or not written.isdisjoint([*found, *sources]):
            raise self._refusal("it overwrites a variable that was read from an array")
        taken = [each.array for each in self.reads if each.like or gradient]
        if len(self.writes) != len({each.array for each in self.writes}) or len(taken) != len({*taken}):
            raise self._refusal("it writes, or takes out, several elements of an array in an iteration")
        # Forward, an iteration reads elements of its step and writes those of the next; backward vice versa.
        here, there = (self.writes, self.reads) if gradient else (self.reads, self.writes)
        matching = [each for each in there if each.array in self.carried or not gradient]
        if any(each.follows for each in here) or any(
            each.follows != (each.array in self.carried) for each in matching
        ):
            raise self._refusal("it reads an array that it writes at another element than the previous one")

    def _replaced(self) -> list[str]:
        found: list[str] = []
        seen: set[str] = set()
        for op in self.ops:
            seen.update((*reads(op), *read_before(op)))
            for name in results(op):
                if name == EMPTY or name in (*self._own, *found) or self._block._is_persistable(name):
                    continue
                if name not in seen:
                    raise self._refusal(f"the value of {name!r} from the last iteration is needed")
                found.append(name)
        return found


@dataclass
class Array:
    """A tensor array: its `elements` by index, or, as `whole`, those of all steps of a rank table."""

    elements: dict[int, str] = field(default_factory=dict)
    whole: str = ""
    table: str = ""

    @property
    def empty(self) -> bool:
        return not self.elements and not self.whole

    def steps_of(self, table: str) -> str:
        """`whole` if that are the steps of this table and the array holds nothing else; else ""."""
        return self.whole if self.table == table and not self.elements else ""


class RaggedScans:
    """Lowers loops over ranked sequences, and the operators on their rank tables and arrays.

    `any`: whether there have been some.
    """

    def __init__(self, ops: Sequence[Operator], scans: Scans) -> None:
        self.any = False
        self._scans = scans
        self._gradients = {
            op.inputs["StepScopes"][0]: op for op in everywhere(ops) if op.type == "while_grad"
        }
        self._tables: dict[str, str] = {}
        self._arrays: dict[str, Array] = {}
        # Variable -> an integer constant; the rank table of which it is the number of steps; or, for the comparison of
        # a zero with that, a pair of both.
        self._facts: dict[str, Any] = {}

    def of(self, ops: Iterable[Operator]) -> Iterator[Operator]:
        for op in ops:
            lower = _LOWERINGS.get(op.type)
            if lower is None or is_inlinable(op):
                if is_unplannable(op) and not (is_inlinable(op) or is_noop(op)):
                    # It may change arrays and counters in ways that are not tracked.
                    raise Unsupported(f"operator {op.type} has sub-blocks or non-tensor variables", op)
                self._note(op)
                yield op
            else:
                self.any = True
                yield from lower(self, op)

    def _note(self, op: Operator) -> None:
        """Track constants, and what they are compared with."""
        fact: Any = None
        if op.type == "fill_constant" and list(op.attr("shape")) == [1] and not op.input_arg_names:
            value = float(op.attr("value"))
            fact = int(value) if value.is_integer() else None
        elif op.definition.planning.pattern == "limit":
            counter, limit = (self._facts.get(op.inputs[slot][0]) for slot in "XY")
            fact = (counter, limit) if counter == 0 and isinstance(limit, str) else None
        for name in op.writes():
            self._facts[name] = fact

    def _array(self, name: str) -> Array:
        return self._arrays.setdefault(name, Array())

    # Rank tables and arrays outside of loops.

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
        table = self._facts[out] = self._table(op)
        yield in_place_of(op, ALIAS, {"X": [ranked(table, "count")]}, {"Out": [out]}, {})

    def _in_order(self, op: Operator) -> Iterator[Operator]:
        table, back = self._table(op), op.type.endswith("_grad")
        inputs = {"X": op.inputs["X"], "Index": [ranked(table, "back" if back else "order")]}
        yield in_place_of(op, IN_ORDER, inputs, dict(op.outputs), {"table": table, "gradient": back})

    def _split(self, op: Operator) -> Iterator[Operator]:
        (out,), table, adds = op.outputs["Out"], self._table(op), bool(op.attr("accumulate"))
        if adds and not self._array(out).empty:
            raise Unsupported("the gradient of an array has elements already", op)
        array = self._arrays[out] = Array(whole=f"{out}{BATCHED}{op.block.idx}", table=table)
        inputs = {"X": op.inputs["X"], "Index": [ranked(table, "items")]}
        yield in_place_of(op, IN_STEPS, inputs, {"Out": [array.whole]}, {"table": table, "gradient": adds})

    def _join(self, op: Operator) -> Iterator[Operator]:
        (source,), table = op.inputs["X"], self._table(op)
        array, like = self._array(source), op.inputs.get("X_W") or []
        if array.empty and like:
            yield in_place_of(op, "fill_zeros_like", {"X": like}, dict(op.outputs), {})
            return
        if not array.steps_of(table):
            raise Unsupported("the array does not hold the steps of the sequences of the rank table", op)
        inputs = {"X": [array.whole], "Index": [ranked(table, "places")], "Like": like}
        yield in_place_of(op, SEQUENCES, inputs, dict(op.outputs), {"table": table})

    def _index(self, op: Operator) -> int:
        found = self._facts.get(op.inputs["I"][0])
        if type(found) is not int or found < 0:
            raise Unsupported("the index of an array is data-dependent", op)
        return found

    def _read(self, op: Operator) -> Iterator[Operator]:
        (source,), (out,), index = op.inputs["X"], op.outputs["Out"], self._index(op)
        array, like = self._array(source), op.inputs.get("X_W") or []
        if index in array.elements and like:
            # Its rows are those of sequences that are not empty.
            inputs = {"X": like, grad_name("Out"): [array.elements.pop(index)]}
            yield in_place_of(op, "shrink_rnn_memory_grad", inputs, {grad_name("X"): [out]}, {})
        elif index in array.elements:
            yield in_place_of(op, ALIAS, {"X": [array.elements[index]]}, {"Out": [out]}, {})
        elif array.empty and like:
            yield in_place_of(op, "fill_zeros_like", {"X": like}, {"Out": [out]}, {})
        elif index == 0 and array.whole and not like:
            inputs = {"X": [array.whole], "Index": [ranked(array.table, "first")]}
            yield in_place_of(op, ROWS, inputs, {"Out": [out]}, {})
        else:
            raise Unsupported("the element of an array that is read is data-dependent", op)

    def _write(self, op: Operator) -> Iterator[Operator]:
        (source,), (out,), index = op.inputs["X"], op.outputs["Out"], self._index(op)
        array = self._array(out)
        if op.attr("accumulate") or array.whole or index > len(array.elements):
            raise Unsupported("the array has elements already, or none before the index", op)
        array.elements[index] = f"{out}.{index}{BATCHED}{op.block.idx}"
        yield in_place_of(op, ALIAS, {"X": [source]}, {"Out": [array.elements[index]]}, {})

    # Loops.

    def _while(self, op: Operator) -> Iterator[Operator]:
        counted = CountedLoop(op)
        (condition,), counter = op.inputs["Condition"], counted.counter
        runs = self._facts.get(condition)
        if runs is None or self._facts.get(counter) != 0 or runs != (0, self._facts.get(counted.limit)):
            raise Unsupported("its trip count is not the number of steps of ranked sequences", op)
        table = runs[1]
        loop = ScanLowering(op, counted.ops, self._scans, table=table)
        for read in counted.reads:
            array, after = self._array(read.array), counted.carried.get(read.array)
            if after is None:
                self._read_steps(loop, read.variable, array)
            elif array.whole or [*array.elements] != [0]:
                raise Unsupported(
                    "the array of a loop-carried variable has more than its initial element", op
                )
            else:
                loop.carry(read.variable, after, array.elements[0], "")
        self._shorten(loop, counted)
        for name in counted.outer:
            loop.carry(name, name, name, "")
        written = {access.array: access.variable for access in counted.writes}
        for name in written:
            if name not in counted.carried and not self._array(name).empty:
                raise Unsupported("an array is not written from its end on", op)
        scopes = op.outputs.get("StepScopes", ())
        gradient = self._gradients.get(next(iter(scopes), ""))
        shapes = _only_shapes(gradient.attrs["sub_block"]) if gradient is not None else ()
        loop.run(written.values(), counted.outer, shapes=shapes)
        yield from loop.made
        for name, variable in written.items():
            self._array(name).whole, self._array(name).table = loop.all_rows(variable), table
        for name in counted.outer:
            yield in_place_of(op, ALIAS, {"X": [loop.final(name)]}, {"Out": [name]}, {})
        yield self._counted(op, counter, table, "elementwise_add")
        yield in_place_of(op, "fill_zeros_like", {"X": [condition]}, {"Out": [condition]}, {})
        self._facts |= dict.fromkeys([condition, *counted.outer]) | {counter: table}
        self._scans.add(loop, scopes)

    def _while_grad(self, op: Operator) -> Iterator[Operator]:
        forward = self._scans.forward_of(op, op.inputs["StepScopes"][0])
        counted, table = CountedLoop(op, forward.block), forward.table
        if self._facts.get(counted.counter) != table:
            raise Unsupported("its counter does not begin where the forward loop ended", op)
        loop = forward.backward(op, counted.ops)
        arrays, states = self._arriving(op, counted)
        for read in counted.reads:
            after, array = counted.carried.get(read.array), self._array(arrays[read.array])
            if after is None and not array.empty and not read.follows:
                self._read_steps(loop, read.variable, array)
            elif not array.empty:
                raise Unsupported("the gradient of an array has several sources", op)
            elif after is None:
                loop.read_zeros(read.variable, read.like)
            else:
                loop.carry_gradient(read.variable, after, read.like)
        self._shorten(loop, counted)
        for name in counted.outer:
            loop.carry(name, name, states[name], "")
        made = {name for each in counted.ops for name in each.writes()}
        wanted = [pair for pair in zip(op.inputs["X"], op.outputs["X@GRAD"], strict=True) if pair[1] != EMPTY]
        sums = [
            grad
            for grad in (grad_name(n) for n, _ in wanted)
            if grad in made and grad not in {**arrays, **states}
        ]
        whole = [access for access in counted.writes if access.array not in counted.carried]
        finals = [*counted.outer, *counted.carried.values()]
        loop.run([access.variable for access in whole], finals, sums)
        yield from loop.made
        for read in counted.reads:
            self._arrays[arrays[read.array]] = Array()
        for name, variable in counted.carried.items():
            self._array(arrays[name]).elements[0] = loop.final(variable)
        for access in whole:
            self._arrays[arrays[access.array]] = Array(whole=loop.all_rows(access.variable), table=table)
        yield self._counted(op, counted.counter, table, "elementwise_sub")
        self._facts[counted.counter] = 0
        for name, out in wanted:
            inside = grad_name(name)
            if inside in arrays:
                self._arrays[out] = self._array(arrays[inside])
                continue
            source = (
                loop.final(inside) if inside in counted.outer else states.get(inside) or loop.total(inside)
            )
            if source is None:
                yield in_place_of(op, "fill_zeros_like", {"X": [name]}, {"Out": [out]}, {})
            elif source != out:
                yield in_place_of(op, ALIAS, {"X": [source]}, {"Out": [out]}, {})

    def _arriving(self, op: Operator, counted: CountedLoop) -> tuple[dict[str, str], dict[str, str]]:
        """The gradients of arrays, and of other variables that the loop replaces: name in the block -> outside."""
        used = {access.array for access in (*counted.reads, *counted.writes)}
        pairs = dict(zip(op.attrs["original_output_grad"], op.inputs.get("Out@GRAD", []), strict=True))
        arrays = {
            grad_name(n): out
            for n, out in zip(op.inputs["X"], op.outputs["X@GRAD"], strict=True)
            if out != EMPTY
        }
        arrays = {inside: out for inside, out in (arrays | pairs).items() if inside in used}
        states = {inside: out for inside, out in pairs.items() if inside not in used}
        for access in counted.writes:
            if access.array not in counted.carried and not self._array(arrays.get(access.array, "")).empty:
                raise Unsupported("the gradient of an array has elements already", op)
        if arrays.keys() != used or not {*counted.outer} <= states.keys():
            raise Unsupported("its gradients of outer variables are not loop-carried", op)
        return arrays, states

    def _read_steps(self, loop: ScanLowering, name: str, array: Array) -> None:
        """Have each iteration read its step of an array."""
        whole = array.steps_of(loop.table)
        if not whole:
            raise Unsupported(
                "an array that is read does not hold the steps of the ranked sequences", loop.op
            )
        loop.values[name] = Ragged(whole)

    def _shorten(self, loop: ScanLowering, counted: CountedLoop) -> None:
        for each in counted.shortened:
            if self._tables.get(each.table) != loop.table:
                raise Unsupported("it takes the first rows by another rank table", loop.op)
            loop.shorten(each.variable, each.source)

    def _counted(self, op: Operator, counter: str, table: str, kind: str) -> Operator:
        """The operator that sets a counter to its value after a loop."""
        inputs = {"X": [counter], "Y": [ranked(table, "count")]}
        return in_place_of(op, kind, inputs, {"Out": [counter]}, {"axis": -1})


def _only_shapes(block: Block) -> set[str]:
    """The variables of which the operators of a gradient's block read only the shape."""
    shapes: set[str] = set()
    elements = {name for op in block.ops for inner in op.sub_blocks() for name in names_read(inner)}
    for op in block.ops:
        for slot, names in op.inputs.items():
            only = slot in op.definition.shape_only or slot == op.definition.effects.consumes
            (shapes if only else elements).update(names)
    return shapes - elements


_LOWERINGS: dict[str, Callable[[RaggedScans, Operator], Iterator[Operator]]] = {
    "lod_rank_table": RaggedScans._rank,
    "max_sequence_len": RaggedScans._longest,
    "reorder_lod_tensor_by_rank": RaggedScans._in_order,
    "reorder_lod_tensor_by_rank_grad": RaggedScans._in_order,
    "lod_tensor_to_array": RaggedScans._split,
    "array_to_lod_tensor": RaggedScans._join,
    "read_from_array": RaggedScans._read,
    "write_to_array": RaggedScans._write,
    "while": RaggedScans._while,
    "while_grad": RaggedScans._while_grad,
}
"""The method that lowers an operator, by its type; other operators stay."""
