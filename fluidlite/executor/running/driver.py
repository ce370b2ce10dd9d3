"""Runs programs that decide while they run: their blocks are cut into pieces, most of which are plans.

Operators whose results have sizes that only the data know, and those that run blocks, are pieces of their own; what
stands between two of them is a `Plan`. A piece is made when it is reached for the first time, by then all sizes are
known; it is kept, together with others for the same place, for all steps that it fits.

    block:   mul  elementwise_add | sequence_expand | sequence_conv ... while | ... adam
    pieces:  a plan                 one operator      a plan          runs its block   a plan
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.errors import EnforceNotMet
from ...base.reports import profiling
from ...framework import Block, Operator
from ...framework.gradients.blocks import kept_names
from ...ops.tensor.selected_rows import parts
from ..blocks.environment import Environment
from ..blocks.looping import LoopPiece, LoopPlan, like
from ..blocks.pieces import PIECES_KEPT, Blocks, Piece, Pieces, Ranges, Single, feed_of, inputs_of
from ..host.plan import Plan
from ..plan.branching import in_line, keeps_turns
from ..plan.branching import results as written
from ..plan.found import sizes_of
from ..plan.refusals import CannotPlan, Missed
from ..plan.shapes import is_no_tensor
from ..tensors.scope import Scope
from .feeding import Feed
from .interpret import Interpreter

FEW = 8
"""What has more elements is not looked at for sizes."""

PLANS_A_TURN = 8
"""How many plans are made until one fits the sizes that a turn finds."""


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
            if piece.run(self, environment):
                if number:
                    pieces.made[at] = [piece, *(other for other in made if other is not piece)]
                return piece.end
        piece = self._make(pieces, at, environment)
        if isinstance(piece, Piece) or piece.reason:
            pieces.keep(at, piece)
        if not piece.run(self, environment):
            raise AssertionError("a plan takes the arrays that it was made for")
        return piece.end

    def loop(self, op: Operator, environment: Environment) -> bool | None:
        """All turns of a `while` of which one is due; False if they have to be taken one by one, None if that one has
        to be."""
        pieces = self._blocks.of(op.attrs["sub_block"])
        if pieces.no_loop or profiling.active is not None:  # which wants the time of each operator
            return False
        # Where turns find sizes, and a plan does not fit what one finds, another plan begins with that turn.
        sizes: dict[str, int] = {}
        untried, made = list(pieces.loops), 0
        while True:
            try:
                if not untried:
                    if made == PLANS_A_TURN:
                        raise CannotPlan("no plan fits the sizes that its turns find")
                    untried, made = [self._looping(pieces, op, environment, sizes)], made + 1
                    pieces.loops = [*untried, *pieces.loops[: PIECES_KEPT - 1]]
                if untried.pop(0).run(self, environment):
                    return True
            except Missed as missed:
                if missed.turns:
                    sizes, untried, made = {}, list(pieces.loops), 0
                elif missed.sizes is None:
                    return None
                else:
                    sizes.update(missed.sizes)
            except (CannotPlan, EnforceNotMet) as refusal:  # the second is told by the turn, if it is true
                if not pieces.loops and not getattr(refusal, "passing", False):
                    pieces.no_loop = str(refusal)
                return False

    def _looping(
        self,
        pieces: Pieces,
        op: Operator,
        environment: Environment,
        sizes: Mapping[str, int],
    ) -> LoopPiece:
        """The turns of a loop, fit for what the environment holds now, and for sizes as they have been found."""
        if kept_names(op) is not None:
            raise CannotPlan("its gradient stands in another piece")
        if not in_line(op, True) or any(map(keeps_turns, pieces.ops)):
            raise CannotPlan("it runs blocks, or works on what is no tensor")
        results = [name for name in written(op) if not is_no_tensor(op, name)]
        if undeclared := [name for name in results if op.block._find_var_recursive(name) is None]:
            raise CannotPlan(f"nobody declares {undeclared}")
        inputs = inputs_of([op], environment)

        def alike(array: str, index: str) -> Any:
            return like(environment.find(array), environment.find(index))

        feed = feed_of(inputs, environment)
        what = self.program, self.scope, feed, results, op
        how: dict[str, Any] = {"finds": sizes, "like": alike, "watched": self.watched}
        try:
            plan = LoopPlan(*what, **how)
        except (CannotPlan, EnforceNotMet):
            counts = [name for name, array in feed.items() if name not in results and _counts(array)]
            if not counts:
                raise
            plan = LoopPlan(*what, **how, values=counts)
        return LoopPiece(1, plan, inputs, results)

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
        ops = pieces.ops[begin:end]
        pieces.check_whole(begin, end)
        inputs = inputs_of(ops, environment)
        feed = feed_of(inputs, environment)
        outputs = [
            name
            for name in pieces.needed(begin, end)
            if not pieces.block._is_persistable(name) and not is_no_tensor(ops[0], name)
        ]

        def plan_of(outputs: Sequence[str]) -> Plan:
            return Plan(self.program, self.scope, feed, outputs, ops, pieces.block, watched=self.watched)

        plan = plan_of(outputs)
        if sparse := plan.meta.sparse.keys() & outputs:
            outputs = [part for name in outputs for part in (parts(name) if name in sparse else (name,))]
            plan = plan_of(outputs)
        declared = pieces.block.vars
        here = {name for name in outputs if name in declared and not declared[name].persistable}
        return Piece(end, plan, inputs, outputs, here)


def _counts(array: np.ndarray) -> bool:
    """Whether an array may hold sizes."""
    return array.dtype.kind == "i" and 0 < array.size <= FEW


def _position(pieces: Pieces, op: Operator | None, begin: int, end: int) -> int:
    """Where the operator stands that ended a plan; renamed copies of it share its attributes.

    If that cannot be said, it is one of those that others stand in the place of.
    """
    places = range(begin, end)
    found = (at for at in places if op is not None and pieces.ops[at].attrs is op.attrs)
    return next(found, next((at for at in places if pieces.alone_at(at)), begin))
