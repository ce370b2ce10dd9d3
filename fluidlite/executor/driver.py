"""Runs programs that decide while they run: their blocks are cut into pieces, most of which are plans.

Operators whose results have sizes that only the data know, and those that run blocks, are pieces of their own; what
stands between two of them is a `Plan`. A piece is made when it is reached for the first time, by then all sizes are
known; it is kept, together with others for the same place, for all steps that it fits.

    block:   mul  elementwise_add | sequence_expand | sequence_conv ... while | ... adam
    pieces:  a plan                 one operator      a plan          runs its block   a plan
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..base import profiling
from ..base.lod import Lod
from ..base.selected_rows import SelectedRows
from ..framework import Block, Operator, Program
from ..ops.registry import EMPTY, LEVEL, grad_name
from ..ops.rows import parts
from .environment import Environment
from .feeding import Feed
from .interpret import Interpreter
from .looping import LoopPlan
from .plan import Plan
from .planning import CannotPlan, live, takes_no_part, works_alone
from .scope import Scope

PIECES_KEPT = 16
"""How many plans are kept for one place in a block."""


class Piece:
    """Operators of a block from one position up to `end`, as a plan; or one operator that runs on its own.

    `inputs`: what the plan is fed from the environment, with the number of levels of detail, None for SelectedRows;
    `outputs`: what is put there; `reason`: why an operator runs on its own, none if it may be in a plan the next time.
    """

    __slots__ = ("end", "inputs", "op", "outputs", "plan", "reason")

    def __init__(
        self,
        end: int,
        plan: Plan | None = None,
        inputs: Sequence[tuple[str, int | None]] = (),
        outputs: Sequence[str] = (),
        op: Operator | None = None,
        reason: str = "",
    ) -> None:
        self.end = end
        self.plan = plan
        self.inputs = inputs
        self.outputs = outputs
        self.op = op
        self.reason = reason


class Pieces:
    """The pieces of one block: by position, those made so far, the one used last in front."""

    def __init__(self, block: Block, ops: list[Operator], wanted: Iterable[str]) -> None:
        self.block = block
        self.ops = ops
        self.made: dict[int, list[Piece]] = {}
        self.loops: list[Piece] = []  # the whole block, with as many turns as there are
        self.no_loop = ""  # why the block's turns are taken one by one
        self.alone = [works_alone(op) for op in ops]
        self._wanted = frozenset(wanted)
        # Where each variable is read last.
        self._last: dict[str, int] = {}
        for at, op in enumerate(ops):
            for name in op.reads():
                self._last[name] = at

    def stretch(self, begin: int) -> int:
        """The position behind the last operator that may be in one plan with the one at `begin`."""
        end = begin
        while end < len(self.ops) and not self.alone[end]:
            end += 1
        return end

    def needed(self, begin: int, end: int) -> list[str]:
        """What the operators from `begin` to `end` write and others read, in this block or elsewhere."""
        written = dict.fromkeys(name for op in self.ops[begin:end] for name in op.output_arg_names)
        return [name for name in written if name in self._wanted or self._last.get(name, -1) >= end]

    def keep(self, begin: int, piece: Piece) -> None:
        self.made[begin] = [piece, *self.made.get(begin, [])[: PIECES_KEPT - 1]]


class Blocks:
    """The pieces of all blocks of a program, for one scope and one set of fetches."""

    def __init__(self, program: Program, fetches: Sequence[str]) -> None:
        self.program = program
        self.fetches = fetches
        self._pieces: dict[int, Pieces] = {}
        self._mentions: defaultdict[str, set[int]] = defaultdict(set)
        for block in program.blocks:
            for op in block.ops:
                names = list(_mentioned(op))
                if op.sub_blocks():  # which may leave gradients of what it names in the block
                    names += [grad_name(name) for name in names]
                for name in names:
                    self._mentions[name].add(block.idx)

    def of(self, block: Block) -> Pieces:
        """The pieces of a block; for the global one, of the operators that matter for the fetches."""
        found = self._pieces.get(block.idx)
        if found is None:
            wanted = {name for name, blocks in self._mentions.items() if blocks != {block.idx}}
            wanted.update(self.fetches if block.idx == 0 else ())
            wanted.update(name for op in block.ops for name in op.output_arg_names if name not in block.vars)
            ops = live(block.ops, wanted) if block.idx == 0 else block.ops
            ops = [op for op in ops if not takes_no_part(op)]
            found = self._pieces[block.idx] = Pieces(block, ops, wanted)
        return found

    def describe(self) -> str:
        """What each block was cut into, a line for each instruction."""
        lines = []
        for index, pieces in sorted(self._pieces.items()):
            lines.append(f"block {index}:" + (f" turn by turn: {pieces.no_loop}" if pieces.no_loop else ""))
            lines += [line for loop in pieces.loops for line in _text(loop)]
            for begin, made in sorted(pieces.made.items()):
                for piece in made:
                    if piece.plan is not None:
                        lines += _text(piece)
                    else:
                        lines.append(f"  {pieces.ops[begin].type} on its own: {piece.reason}")
        return "\n".join(lines)


class Driver(Interpreter):
    """One run of a program in pieces; see the module's text."""

    def __init__(self, blocks: Blocks, scope: Scope, feed: Feed) -> None:
        super().__init__(blocks.program, scope, feed)
        self._blocks = blocks

    def run(self, ops: list[Operator] | None = None) -> None:
        assert ops is None
        self.run_block(self.program.global_block(), self.environment)

    def run_block(self, block: Block, environment: Environment) -> None:
        pieces = self._blocks.of(block)
        at, end = 0, len(pieces.ops)
        while at < end:
            at = self._run_piece(pieces, at, environment)

    def _run_piece(self, pieces: Pieces, at: int, environment: Environment) -> int:
        """Run what stands at a position of a block; returns the position behind it."""
        made = pieces.made.get(at, ())
        for number, piece in enumerate(made):
            if piece.op is not None:
                self._run_alone(piece.op, environment)
                return piece.end
            if self._run_plan(piece, environment):
                if number:
                    pieces.made[at] = [piece, *(other for other in made if other is not piece)]
                return piece.end
        piece = self._make(pieces, at, environment)
        if piece.op is None or piece.reason:
            pieces.keep(at, piece)
        if piece.op is not None:
            self._run_alone(piece.op, environment)
        elif not self._run_plan(piece, environment):
            raise AssertionError("a plan takes the arrays that it was made for")
        return piece.end

    def loop(self, op: Operator, environment: Environment) -> bool:
        """All turns of a `while` whose first one is due; False if they have to be taken one by one."""
        pieces = self._blocks.of(op.attrs["sub_block"])
        if pieces.no_loop or profiling.active is not None:  # which wants the time of each operator
            return False
        for piece in pieces.loops:
            if self._run_plan(piece, environment):
                return True
        try:
            piece = self._looping(pieces, op, environment)
        except CannotPlan as refusal:
            if not refusal.passing:
                pieces.no_loop = str(refusal)
            return False
        pieces.loops = [piece, *pieces.loops[: PIECES_KEPT - 1]]
        return self._run_plan(piece, environment)

    def _looping(self, pieces: Pieces, op: Operator, environment: Environment) -> Piece:
        """The turns of a loop, fit for what the environment holds now."""
        block, ops = pieces.block, pieces.ops
        if any(pieces.alone) or not ops:
            raise CannotPlan("it runs blocks, or works on what is no tensor")
        results = []
        for name in dict.fromkeys(name for each in ops for name in each.output_arg_names):
            if name == EMPTY or name in block.vars or _lasts(block, name):
                continue
            if block._find_var_recursive(name) is None:
                raise CannotPlan(f"nobody declares variable {name!r}")
            results.append(name)
        inputs = _inputs(ops, environment)
        if any(levels is None for _, levels in inputs):
            raise CannotPlan("it reads SelectedRows")
        feed = _feed(inputs, environment)
        plan = LoopPlan(self.program, self.scope, feed, results, op.inputs["Condition"][0], ops, block)
        return Piece(len(ops), plan, inputs, results)

    def _run_alone(self, op: Operator, environment: Environment) -> None:
        if profiling.active is None or op.definition.control:
            self.run_op(op, environment)
        else:
            self._run_recorded(op, environment)

    def _run_plan(self, piece: Piece, environment: Environment) -> bool:
        """Run a piece that is a plan; False if it does not fit what its inputs hold now."""
        arrays = _gathered(piece.inputs, environment)
        plan = piece.plan
        assert plan is not None
        if arrays is None:
            return False
        with plan.lock:
            if not plan.ready(self.program):
                return False
            if not plan.accepts(plan.own(arrays) if isinstance(plan, LoopPlan) else arrays):
                return False
            plan.run()
            found = plan.fetch()
        _put(piece, plan, found, environment)
        return True

    def _make(self, pieces: Pieces, at: int, environment: Environment) -> Piece:
        """A piece for what stands at a position, fit for what the environment holds now."""
        end = pieces.stretch(at)
        reason = "it runs blocks or works on what is no tensor"
        while end > at:
            try:
                return self._planned(pieces, at, end, environment)
            except CannotPlan as refusal:
                reason = str(refusal)
                end = _position(pieces.ops, refusal.op, at, end)
                if end == at and refusal.passing:
                    return Piece(at + 1, op=pieces.ops[at])
        return Piece(at + 1, op=pieces.ops[at], reason=reason)

    def _planned(self, pieces: Pieces, begin: int, end: int, environment: Environment) -> Piece:
        ops = pieces.ops[begin:end]
        inputs = _inputs(ops, environment)
        feed = _feed(inputs, environment)
        outputs = [name for name in pieces.needed(begin, end) if not _lasts(pieces.block, name)]
        plan = Plan(self.program, self.scope, feed, outputs, ops, pieces.block)
        sparse = [name for name in outputs if name in plan.meta.sparse]
        if sparse:
            wanted = [part for name in outputs for part in (parts(name) if name in sparse else (name,))]
            plan = Plan(self.program, self.scope, feed, wanted, ops, pieces.block)
            outputs = wanted
        return Piece(end, plan, inputs, outputs)


def _text(piece: Piece) -> list[str]:
    assert piece.plan is not None
    return ["  " + line for line in piece.plan.describe().splitlines()]


def _mentioned(op: Operator) -> Iterable[str]:
    """All names that an operator may mean variables by."""
    yield from op.input_arg_names
    yield from op.output_arg_names
    for value in op.attrs.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, str))


def _lasts(block: Block, name: str) -> bool:
    var = block._find_var_recursive(name)
    return var is not None and var.persistable


def _inputs(ops: Sequence[Operator], environment: Environment) -> list[tuple[str, int | None]]:
    """What operators read of the values in an environment before they write it, each with its levels of detail."""
    found: dict[str, int | None] = {}
    written: set[str] = set()
    for op in ops:
        for name in op.reads():
            if name in found or name in written:
                continue
            holder = environment.holder(name)
            if holder is not None:
                value = holder.values[name]
                found[name] = None if isinstance(value, SelectedRows) else len(holder.lods.get(name, ()))
        written.update(op.output_arg_names)
    return list(found.items())


def _feed(inputs: Sequence[tuple[str, int | None]], environment: Environment) -> dict[str, np.ndarray]:
    """What a plan is fed, by the names that it has there; CannotPlan if something is no array."""
    arrays = _gathered(inputs, environment)
    if arrays is None:
        raise CannotPlan("it reads what is no array")
    names = [part for name, levels in inputs for part in (parts(name) if levels is None else (name,))]
    names += [f"{name}{LEVEL}{k}" for name, levels in inputs for k in range(levels or 0)]
    return dict(zip(names, arrays, strict=True))


def _gathered(inputs: Sequence[tuple[str, int | None]], environment: Environment) -> list[np.ndarray] | None:
    """The arrays that a plan is fed; None if one is of another kind than it was."""
    arrays: list[Any] = []
    offsets: list[np.ndarray] = []
    for name, levels in inputs:
        holder = environment.holder(name)
        if holder is None:
            return None
        value = holder.values[name]
        if levels is None:
            if type(value) is not SelectedRows:
                return None
            arrays += [value.rows, value.values]
            continue
        lod: Lod = holder.lods.get(name, ())
        if not isinstance(value, np.ndarray) or len(lod) != levels:
            return None
        arrays.append(value if value.flags.carray else np.ascontiguousarray(value))
        offsets += lod
    return arrays + offsets


def _put(piece: Piece, plan: Plan, found: list[np.ndarray], environment: Environment) -> None:
    """Store what a plan has made."""
    offsets = iter(found[len(piece.outputs) :])
    made = dict(zip(piece.outputs, found, strict=False))
    levels = dict(zip(piece.outputs, plan.levels, strict=False))
    for name in plan.meta.sparse:
        rows, values = parts(name)
        if rows in made:
            environment.put(name, SelectedRows(made.pop(rows), made.pop(values), plan.height(name)))
    for name, array in made.items():
        environment.put(name, array, tuple([next(offsets) for _ in levels[name]]))


def _position(ops: Sequence[Operator], op: Operator | None, begin: int, end: int) -> int:
    """Where the operator stands that ended a plan; renamed copies of it share its attributes."""
    if op is not None:
        for at in range(begin, end):
            if ops[at].attrs is op.attrs:
                return at
    return begin
