"""Segments and fallback operators, and their caches by block and position.

Elements of tensor arrays are loaded before the plan of a segment runs, and stored afterwards (`separated`). So plans do
not depend on the sizes and LoD of other elements:

    read_from_array(words, i) -> word       load   words[i] -> word
    fc(word) -> new                         plan   fc(word) -> new; increment(i)
    increment(i)
    write_to_array(new, i) -> words         store  new -> words[i]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...base.lod import Lod
from ...base.selected_rows import SelectedRows
from ...base.tensor_array import TensorArray
from ...framework import Block, Operator, Program
from ...ops.registry import EMPTY, LEVEL, grad_name
from ...ops.tensor.gather import parts
from ..control_flow.blocks import (
    control,
    everywhere,
    is_inlinable,
    needs_lowering,
    read_before,
    reads,
    results,
)
from ..cpu.plan import Plan
from ..failures import Unsupported
from ..ir.inference import declared_type, in_place_of, is_non_tensor, is_noop, is_unplannable, live
from .frame import Frame

if TYPE_CHECKING:
    from .interpreter import Interpreter

SEGMENTS_KEPT = 16
"""The number of cached segments for one position of a block."""


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


class FallbackOp:
    """An operator that no plan can have; `reason`: why, "" if a later run may plan it."""

    def __init__(self, at: int, op: Operator, reason: str = "") -> None:
        self.end, self.op, self.reason = at + 1, op, reason

    def run(self, run: Interpreter, frame: Frame) -> bool:
        run.run_operator(self.op, frame)
        return True

    def describe(self) -> list[str]:
        way = "iteration by iteration" if control(self.op).kind in ("loop", "recurrent") else "on its own"
        return [f"  {self.op.type} {way}: {self.reason}"]


class Segment:
    """Operators of a block up to the position `end`, as a plan.

    Args:
        inputs: the feeds of the plan from the frame, with their numbers of LoD levels, None for SelectedRows.
        outputs: the fetches of the plan, which are stored in frames.
        accesses: the loads and stores of elements of tensor arrays.
    """

    def __init__(
        self,
        end: int,
        plan: Plan,
        inputs: Sequence[tuple[str, int | None]],
        outputs: Sequence[str],
        accesses: Accesses,
    ) -> None:
        self.end, self._plan, self._inputs, self._outputs = end, plan, inputs, outputs
        self._accesses = accesses

    def run(self, run: Interpreter, frame: Frame) -> bool:
        """Run the plan; False if it rejects the inputs, or this thread is already running it.

        Raises GuardFailure, with nothing stored, if a guard fails in the run.
        """
        if not all([load.run(frame) for load in self._accesses.loads]):
            return False
        plan, arrays = self._plan, input_arrays(self._inputs, frame)
        if arrays is None or not plan.lock.acquire():
            return False
        try:
            if not plan.ready(run.program) or not plan.accepts(arrays):
                return False
            plan.run()
            found = plan.fetch()
        finally:
            plan.lock.release()
        if plan.meta.sparse:
            found = self._put_rows(found, frame)
        at = len(self._outputs)
        for name, levels, array in zip(self._outputs, plan.levels, found, strict=False):
            lod: Lod = tuple(found[at : at + len(levels)])
            at += len(levels)
            if array is not None:
                frame.put(name, array, lod)
        for store in self._accesses.stores:
            store.run(run, frame)
        return True

    def _put_rows(self, found: list[Any], frame: Frame) -> list[Any]:
        """Store SelectedRows; returns the results with None in the place of their arrays."""
        plan, made = self._plan, dict(zip(self._outputs, found, strict=False))
        for name in plan.meta.sparse:
            rows, values = parts(name)
            if rows in made:
                frame.put(name, SelectedRows(made[rows], made[values], plan.height(name)).held())
                made[rows] = made[values] = None
        return [*made.values(), *found[len(self._outputs) :]]

    def describe(self) -> list[str]:
        return ["  " + line for line in self._plan.describe().splitlines()]


class BlockSegments:
    """The segments of one block: for each position those compiled so far, the most recently used first.

    `live_out`: variables that enclosing blocks, or fetches, read; `mentions`: variable -> the blocks that mention it.
    """

    def __init__(
        self,
        block: Block,
        ops: list[Operator],
        live_out: Iterable[str],
        fetches: Iterable[str],
        mentions: Mapping[str, set[int]],
    ) -> None:
        self.block = block
        self._mentions = mentions
        self._fetches = frozenset(fetches)
        self.ops = ops
        self.made: dict[int, list[Segment | FallbackOp]] = {}
        # By position the observed data-dependent sizes; None: plans may not have any.
        self.sizes: defaultdict[int, dict[str, int] | None] = defaultdict(dict)
        self._unplannable = [
            is_unplannable(op) and not is_inlinable(op) and not needs_lowering(op) for op in ops
        ]
        self._live_out = frozenset(live_out)
        # Variable -> position of its last read.
        self._last: dict[str, int] = {}
        for at, op in enumerate(ops):
            for name in op.reads():
                self._last[name] = at

    def end_of_segment(self, begin: int) -> int:
        """The end of the longest segment that may begin at `begin`."""
        end = begin
        while end < len(self.ops) and not self._unplannable[end]:
            end += 1
        return end

    def needed(self, begin: int, end: int) -> list[str]:
        """The live-out variables of the operators from `begin` to `end`."""
        ops = self.ops[begin:end]
        inside = {each.idx for op in ops for block in op.sub_blocks() for each in block.walk()}
        inside.add(self.block.idx)
        written = dict.fromkeys(name for op in ops for name in results(op))
        written.pop(EMPTY, None)
        return [
            name
            for name in written
            if name in self._live_out
            or self._last.get(name, -1) >= end
            or not inside.issuperset(self._mentions.get(name, ()))
        ]

    def accesses(self, begin: int, end: int) -> Accesses:
        """The operators from `begin` to `end`, with loads and stores of arrays that are also used outside.

        Raises Unsupported if they share other non-tensor values: rank tables, step scopes.
        """
        ops = self.ops[begin:end]
        non_tensors = {name for op in ops for name in _non_tensors(op)}
        if not non_tensors:
            return Accesses(ops, [], [])
        inside = {id(op) for op in everywhere(ops)}
        blocks = (block.ops for block in self.block.program.blocks if block is not self.block)
        others = (op for block in (self.ops, *blocks) for op in block if id(op) not in inside)
        shared = non_tensors & self._fetches
        shared |= {name for op in others for name in (*op.reads(), *op.writes()) if name in non_tensors}
        found = separated(ops, shared)
        for op in found.ops if shared else ():
            for name in _non_tensors(op) & shared:
                raise Unsupported(f"{name!r} is also used outside of this segment", op)
        return found

    def keep(self, begin: int, segment: Segment | FallbackOp) -> None:
        self.made[begin] = [segment, *self.made.get(begin, [])[: SEGMENTS_KEPT - 1]]


def _non_tensors(op: Operator) -> set[str]:
    """The non-tensor variables of an operator and its sub-blocks."""
    if not is_unplannable(op):
        return set()
    return {
        name
        for each in everywhere([op])
        for name in (*each.reads(), *each.writes())
        if is_non_tensor(each, name)
    }


class ProgramSegments:
    """The segments of all blocks of a program, for one scope and one set of fetches.

    `ops`: the operators of the global block to run, all by default; `check_finite`: whether all of these run, in order,
    and results with NaN or infinities are refused.
    """

    def __init__(
        self,
        program: Program,
        fetches: Sequence[str],
        ops: list[Operator] | None = None,
        check_finite: bool = False,
    ) -> None:
        self.program = program
        self.check_finite = check_finite
        self.fetches = fetches
        self._ops = ops
        self._segments: dict[int, BlockSegments] = {}

    @cached_property
    def _mentions(self) -> Mapping[str, set[int]]:
        """Variable -> the blocks whose operators mention it."""
        found: defaultdict[str, set[int]] = defaultdict(set)
        for block in self.program.blocks:
            for op in block.ops:
                names = list(_mentioned(op))
                if op.sub_blocks():  # its gradient's block may write gradients of these names
                    names += [grad_name(name) for name in names]
                for name in names:
                    found[name].add(block.idx)
        return found

    def of(self, block: Block) -> BlockSegments:
        """The segments of a block; the global block without dead code."""
        found = self._segments.get(block.idx)
        if found is None:
            mentioned = {name for name, blocks in self._mentions.items() if blocks != {block.idx}}
            fetches = self.fetches if block.idx == 0 else ()
            live_out = {*fetches}
            live_out.update(
                name for op in block.ops for name in op.output_arg_names if name not in block.vars
            )
            ops = block.ops if self._ops is None or block.idx else self._ops
            ops = live(ops, mentioned | live_out) if block.idx == 0 and not self.check_finite else ops
            ops = [op for op in ops if not is_noop(op)]
            found = self._segments[block.idx] = BlockSegments(block, ops, live_out, fetches, self._mentions)
        return found

    def describe(self) -> str:
        """The segments of each block, a line for each instruction."""
        lines = []
        for index, segments in sorted(self._segments.items()):
            lines.append(f"block {index}:")
            lines += [
                line
                for _, made in sorted(segments.made.items())
                for segment in made
                for line in segment.describe()
            ]
        return "\n".join(lines)


def frame_inputs(ops: Sequence[Operator], frame: Frame) -> list[tuple[str, int | None]]:
    """The values of a frame that operators read before they write them, with their LoD levels (None: SelectedRows)."""
    found: dict[str, int | None] = {}
    written: set[str] = set()
    for op in ops:
        for name in (*reads(op), *read_before(op)):
            if name in found or name in written or is_non_tensor(op, name):
                continue
            holder = frame.holder(name)
            if holder is not None:
                value = holder.values[name]
                found[name] = None if isinstance(value, SelectedRows) else len(holder.lods.get(name, ()))
        written.update(op.output_arg_names)
    return list(found.items())


def feed_from(inputs: Sequence[tuple[str, int | None]], frame: Frame) -> dict[str, np.ndarray]:
    """The feeds of a plan by their names in it; Unsupported if an input is no array."""
    arrays = input_arrays(inputs, frame)
    if arrays is None:
        raise Unsupported("an input is no array")
    names = [part for name, levels in inputs for part in (parts(name) if levels is None else (name,))]
    names += [f"{name}{LEVEL}{k}" for name, levels in inputs for k in range(levels or 0)]
    return dict(zip(names, arrays, strict=True))


def input_arrays(inputs: Sequence[tuple[str, int | None]], frame: Frame) -> list[np.ndarray] | None:
    """The feeds of a plan; None if one is not of the kind, or the LoD levels, that `inputs` say."""
    arrays: list[Any] = []
    offsets: list[np.ndarray] = []
    for name, levels in inputs:
        here = frame.holder(name)
        if here is None:
            return None
        value = here.values[name]
        if levels is None:
            if type(value) is not SelectedRows:
                return None
            arrays += [value.rows, value.values]
            continue
        lod: Lod = here.lods.get(name, ())
        if not isinstance(value, np.ndarray) or len(lod) != levels:
            return None
        arrays.append(value if value.flags.carray else np.ascontiguousarray(value))
        offsets += lod
    return arrays + offsets if offsets else arrays


def _mentioned(op: Operator) -> Iterable[str]:
    """All names in an operator that may be variables, those in attributes included."""
    yield from op.input_arg_names
    yield from op.output_arg_names
    for value in op.attrs.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, str))
