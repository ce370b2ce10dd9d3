"""Segments and fallback operators, and their caches by block and position."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...base.lod import Lod
from ...base.selected_rows import SelectedRows
from ...framework import Block, Operator, Program
from ...ops.registry import EMPTY, LEVEL, grad_name
from ...ops.tensor.selected_rows import parts
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
from ..ir.inference import is_non_tensor, is_noop, is_unplannable, live
from ..lod_tensor import LoDTensor
from ..scope import Scope
from .array_accesses import Accesses, separated
from .frame import Frame, Run

SEGMENTS_KEPT = 16
"""The number of cached segments for one position of a block."""


class FallbackOp:
    """An operator that no plan can have; `reason`: why, "" if a later run may plan it."""

    def __init__(self, at: int, op: Operator, reason: str = "") -> None:
        self.end, self.op, self.reason = at + 1, op, reason

    def run(self, run: Run, frame: Frame) -> bool:
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
        here: the outputs that the block declares, which the frame itself keeps.
        accesses: the loads and stores of elements of tensor arrays.
    """

    def __init__(
        self,
        end: int,
        plan: Plan,
        inputs: Sequence[tuple[str, int | None]],
        outputs: Sequence[str],
        here: Collection[str] = (),
        accesses: Accesses | None = None,
    ) -> None:
        self.end, self._plan, self._inputs, self._outputs = end, plan, inputs, outputs
        self._accesses = accesses
        # Of each output: the name, whether the frame itself keeps it, the number of LoD levels.
        self._targets = [
            (name, name in here, len(levels)) for name, levels in zip(outputs, plan.levels, strict=False)
        ]

    def run(self, run: Run, frame: Frame) -> bool:
        """Run the plan; False if it rejects the inputs, or this thread is already running it.

        Raises GuardFailure, with nothing stored, if a guard fails in the run.
        """
        accesses = self._accesses
        if accesses is not None and not all([load.run(frame) for load in accesses.loads]):
            return False
        plan, arrays = self._plan, input_arrays(self._inputs, frame)
        if arrays is None or not plan.lock.acquire():
            return False
        try:
            found = self._results(plan, arrays, frame) if plan.ready(run.program) else None
        finally:
            plan.lock.release()
        if found is None:
            return False
        self._put(found, frame)
        if accesses is not None:
            for store in accesses.stores:
                store.run(run, frame)
        return True

    def _put(self, found: list[Any], frame: Frame) -> None:
        """Store the results of the plan."""
        if self._plan.meta.sparse:
            found = self._put_rows(found, frame)
        at = len(self._outputs)
        for (name, here, levels), array in zip(self._targets, found, strict=False):
            lod: Lod = ()
            if levels:
                lod = tuple(found[at : at + levels])
                at += levels
            if array is None:
                continue
            if here:
                frame.keep(name, array, lod)
            else:
                frame.put(name, array, lod)

    def _results(self, plan: Plan, arrays: list[np.ndarray], frame: Frame) -> list[Any] | None:
        """The results of the plan for these arrays; None if it rejects them."""
        if not plan.accepts(arrays):
            return None
        plan.run()
        return plan.fetch()

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

    `live_out`: variables that other blocks, or fetches, read.
    """

    def __init__(
        self, block: Block, ops: list[Operator], live_out: Iterable[str], fetches: Iterable[str]
    ) -> None:
        self.block = block
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
        written = dict.fromkeys(name for op in self.ops[begin:end] for name in results(op))
        written.pop(EMPTY, None)
        return [name for name in written if name in self._live_out or self._last.get(name, -1) >= end]

    def accesses(self, begin: int, end: int) -> Accesses:
        """The operators from `begin` to `end`, with loads and stores of arrays that are also used outside.

        Raises Unsupported if they share other non-tensor values: rank tables, step scopes.
        """
        ops = self.ops[begin:end]
        non_tensors = {name for op in ops for name in _non_tensors(op)}
        if not non_tensors:
            return Accesses(ops, [], [])
        inside = {id(op) for op in everywhere(ops)}
        others = (op for block in self.block.program.blocks for op in block.ops if id(op) not in inside)
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


class Ranges:
    """The address ranges of host arrays."""

    def __init__(self, arrays: Iterable[Any]) -> None:
        found = [_bounds(array) for array in arrays if isinstance(array, np.ndarray)]
        self._begins = np.array([begin for begin, _ in found], "uint64")
        self._ends = np.array([end for _, end in found], "uint64")

    def shares(self, array: np.ndarray) -> bool:
        """True if the address range of an array overlaps one of these."""
        begin, end = _bounds(array)
        return bool(((self._begins < end) & (self._ends > begin)).any())


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """The first address of an array's elements, and the one after the last."""
    low = high = array.__array_interface__["data"][0]
    for size, stride in zip(array.shape, array.strides, strict=True):
        low += min(0, (size - 1) * stride)
        high += max(0, (size - 1) * stride)
    return low, high + array.itemsize


def written_memory(program: Program, scope: Scope) -> Ranges:
    """The address ranges of the scope's variables that a program writes."""
    names = {name for block in program.blocks for op in block.ops for name in op.writes()}
    held = [var.get() for var in map(scope.find_var, names) if var is not None]
    return Ranges([tensor.array for tensor in held if isinstance(tensor, LoDTensor)])


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
        self._written = -1, Ranges(())

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
            live_out = {name for name, blocks in self._mentions.items() if blocks != {block.idx}}
            fetches = self.fetches if block.idx == 0 else ()
            live_out.update(fetches)
            live_out.update(
                name for op in block.ops for name in op.output_arg_names if name not in block.vars
            )
            ops = block.ops if self._ops is None or block.idx else self._ops
            ops = live(ops, live_out) if block.idx == 0 and not self.check_finite else ops
            ops = [op for op in ops if not is_noop(op)]
            found = self._segments[block.idx] = BlockSegments(block, ops, live_out, fetches)
        return found

    def written(self, scope: Scope) -> Ranges:
        """`written_memory`, as it is now."""
        version, found = self._written
        if version != scope._cell.version:
            found = written_memory(self.program, scope)
            self._written = scope._cell.version, found
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
        here: Frame | None = frame
        while here is not None and name not in here.values:
            here = here.parent
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
