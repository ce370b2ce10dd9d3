"""Runs programs that decide while they run: their blocks are cut into pieces, most of which are plans.

Operators whose results have sizes that only the data know, and those that run blocks, are pieces of their own; what
stands between two of them is a `Plan`. A piece is made when it is reached for the first time, by then all sizes are
known; it is kept, together with others for the same place, for all steps that it fits.

    block:   mul  elementwise_add | sequence_expand | sequence_conv ... while | ... adam
    pieces:  a plan                 one operator      a plan          runs its block   a plan
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...framework import Block, Operator
from ...ops.tensor.selected_rows import parts
from ..compile import compile_for_cpu
from ..control_flow.branching import results
from ..cpu.plan import Plan
from ..feeding import Feed
from ..ir.data_dependent import sizes_of
from ..ir.errors import CannotPlan, Missed
from ..ir.inference import is_no_tensor
from ..ir.request import Request
from ..tensors.scope import Scope
from .frame import Environment
from .interpreter import Interpreter
from .segments import Blocks, Piece, Pieces, Ranges, Single, feed_of, inputs_of

TRIES = 4
"""How many plans are made for one run of a segment, until one is for the sizes that the data have."""


class Driver(Interpreter):
    """One run of a program in pieces; see the module's text."""

    def __init__(self, blocks: Blocks, scope: Scope, feed: Feed) -> None:
        self._blocks = blocks
        super().__init__(blocks.program, scope, feed, watched=blocks.watched)

    def _written(self) -> Ranges:
        return self._blocks.written(self.scope)

    def run(self, part: Blocks | None = None) -> None:
        self._blocks = part or self._blocks
        with np.errstate(all="ignore"):  # infinities and NaNs are results like any other
            self.run_block(self.program.global_block(), self.environment)

    def sizes_found(self) -> dict[str, int]:
        """The sizes of what operators have made that are run on their own, by what plans call them."""
        found: dict[str, int] = {}
        for made in self._blocks.of(self.program.global_block()).made.values():
            for name in (n for piece in made if isinstance(piece, Single) for n in piece.op.writes()):
                value = self.environment.find(name)
                if isinstance(value, np.ndarray):
                    found.update(sizes_of(name, value, self.environment.lod_of(name)))
        return found

    def run_block(self, block: Block, environment: Environment) -> None:
        pieces = self._blocks.of(block)
        at, end = 0, len(pieces.ops)
        while at < end:
            at = self._run_piece(pieces, at, environment)

    def _run_piece(self, pieces: Pieces, at: int, environment: Environment) -> int:
        """Run what stands at a position of a block; returns the position behind it."""
        try:
            return self._run_planned(pieces, at, environment)
        except Missed as missed:
            piece = Single(at, pieces.ops[at], str(missed))
            pieces.made[at] = [piece]
            piece.run(self, environment)
            return piece.end

    def _run_planned(self, pieces: Pieces, at: int, environment: Environment) -> int:
        made = pieces.made.get(at, ())
        for number, piece in enumerate(made):
            if self._fits(pieces, at, piece, environment):
                if number:
                    pieces.made[at] = [piece, *(other for other in made if other is not piece)]
                return piece.end
        for attempt in range(TRIES + 1):
            if attempt == TRIES:
                pieces.sizes[at] = None  # such operators run on their own here from now on
            piece = self._make(pieces, at, environment)
            if isinstance(piece, Piece) or piece.reason:
                pieces.keep(at, piece)
            if self._fits(pieces, at, piece, environment):
                return piece.end
        raise AssertionError("a plan takes the arrays that it was made for")

    def _fits(self, pieces: Pieces, at: int, piece: Piece | Single, environment: Environment) -> bool:
        """Run a piece; False if it is for other inputs, or for other sizes than the data have."""
        try:
            return piece.run(self, environment)
        except Missed as missed:
            if missed.sizes is None:
                raise
            pieces.sizes[at] = {**(pieces.sizes[at] or {}), **missed.sizes}
            return False

    def _make(self, pieces: Pieces, at: int, environment: Environment) -> Piece | Single:
        """A piece for what stands at a position, fit for what the environment holds now."""
        end = pieces.stretch(at)
        reason = "it runs blocks or works on what is no tensor"
        while end > at:
            try:
                return self._planned(pieces, at, end, environment)
            except CannotPlan as refusal:
                reason = str(refusal)
                end = _position(pieces, refusal.op, at, end)
                if end == at and refusal.passing:
                    return Single(at, pieces.ops[at])
        if pieces.alone_at(at):
            reason += "; it runs blocks or works on what is no tensor"
        return Single(at, pieces.ops[at], reason)

    def _planned(self, pieces: Pieces, begin: int, end: int, environment: Environment) -> Piece:
        accesses = pieces.accesses(begin, end)
        ops = accesses.ops
        for load in accesses.loads:
            if not load.run(environment):
                op = next(op for op in pieces.ops[begin:end] if load.out in op.writes())
                raise CannotPlan(f"array {load.array!r} has no element to read", op, passing=True)
        inputs = inputs_of(ops, environment)
        feed = feed_of(inputs, environment)
        made = {name for op in ops for name in results(op)}
        stored = [name for store in accesses.stores for name in (store.value, store.at)]
        outputs = [
            name
            for name in dict.fromkeys([*pieces.needed(begin, end), *stored])
            if name in made and not pieces.block._is_persistable(name) and not is_no_tensor(ops[0], name)
        ]

        def plan_of(outputs: Sequence[str]) -> Plan:
            return compile_for_cpu(
                Request(
                    self.program, self.scope, feed, outputs, ops, pieces.block,
                    check_finite=self.watched, sizes=pieces.sizes[begin],
                )
            )  # fmt: skip

        plan = plan_of(outputs)
        if sparse := plan.meta.sparse.keys() & outputs:
            outputs = [part for name in outputs for part in (parts(name) if name in sparse else (name,))]
            plan = plan_of(outputs)
        declared = pieces.block.vars
        here = {name for name in outputs if name in declared and not declared[name].persistable}
        return Piece(end, plan, inputs, outputs, here, accesses)


def _position(pieces: Pieces, op: Operator | None, begin: int, end: int) -> int:
    """Where the operator stands that ended a plan; renamed copies of it share its attributes.

    If that cannot be said, it is one of those that others stand in the place of.
    """
    places = range(begin, end)
    found = (at for at in places if op is not None and pieces.ops[at].attrs is op.attrs)
    return next(found, next((at for at in places if pieces.alone_at(at)), begin))
