"""Takes all turns of a loop: what `Driver.turns` does."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...base.errors import EnforceNotMet
from ...framework import Operator
from ..blocks.environment import Environment
from ..blocks.pieces import PIECES_KEPT, Piece, feed_of, gathered, inputs_of
from ..host.plan import Plan
from ..plan.forking import watch
from ..plan.shapes import CannotPlan
from ..plan.stages import Stages, stages
from .form import Carried, Taken, Turns
from .plan import TurnsPlan, tables
from .stacks import Alternating, Packed, Prefix, Shifted, Stack, alike, bounds_of, listed, same_rows

if TYPE_CHECKING:
    from ..running.driver import Driver


class TurnPlans:
    """The plans for the turns of one block that have been made so far, with what is given and wanted in one way."""

    def __init__(self, turns: Turns) -> None:
        self.lock = threading.Lock()
        self.version = turns.block.program._version
        watch(self)
        self.refused = ""
        self.stages: Stages | None = None
        self._before: list[Piece] = []
        self._after: list[Piece] = []
        self._plans: list[tuple[TurnsPlan, list[tuple[str, int | None]]]] = []
        self._apart = True
        self._worked = False
        self._sort(turns)

    def _sort(self, turns: Turns) -> None:
        known = {name for name, (source, _) in turns.shortened.items() if source in turns.given}
        carried = {name: each.after for name, each in turns.carried.items()}
        carried |= {
            name: turns.carried[source].after
            for name, (source, _) in turns.shortened.items()
            if source in turns.carried
        }
        try:
            self.stages = stages(
                turns.block, turns.ops, {*turns.given, *known}, carried, turns.wanted, turns.sums, self._apart
            )
        except CannotPlan as refusal:
            self.refused = str(refusal)
            return
        sorted_ = self.stages
        assert sorted_ is not None
        self.reads_before, self.reads_after = _reads(sorted_.before), _reads(sorted_.after)
        early = (name for name in sorted_.early if name not in sorted_.totals)
        moving = {*turns.given, *known, *early, *turns.carried, *turns.shortened}
        self.moving = [name for name in _reads(sorted_.turn) if name in moving]
        # What is looked at after the turns. That of something carried is what the turns before have left.
        kept = {*map(sorted_.name, turns.wanted), *self.reads_after}
        kept.update(source for name, (source, _) in turns.shortened.items() if name in kept)
        self.kept = kept | {sorted_.name(each.after) for name, each in turns.carried.items() if name in kept}

    def take(self, run: Driver, turns: Turns, environment: Environment) -> Taken | None:
        """All turns; None, with nothing done, if they have to be taken one by one."""
        if self.refused:
            return None
        with self.lock:
            try:
                taken = _Taking(self, run, turns, environment).take()
            except CannotPlan as refusal:
                self.refused = "" if refusal.passing or self._worked else str(refusal)
                return None
            self._worked = True
            return taken

    def apart(self, turns: Turns) -> None:
        """Have all operators run in the turns from now on."""
        self._apart = False
        self._before, self._after, self._plans = [], [], []
        self._sort(turns)

    def describe(self) -> list[str]:
        """Lines about the plans."""
        lines = []
        for title, pieces in (("before all turns", self._before), ("after all turns", self._after)):
            lines += [line for piece in pieces for line in (f"  {title}:", *piece.describe())]
        return lines + [f"  {line}" for plan, _ in self._plans for line in plan.describe().splitlines()]


class _Taking:
    """One run of all turns."""

    def __init__(self, plans: TurnPlans, run: Driver, turns: Turns, environment: Environment) -> None:
        assert plans.stages is not None
        self.plans = plans
        self.run = run
        self.turns = turns
        self.environment = environment
        self.stacks: dict[str, Stack] = dict(turns.given)
        for name, (source, rows) in turns.shortened.items():
            if source in turns.given:
                self.stacks[name] = Prefix(turns.given[source], rows)
        self.sums: dict[str, np.ndarray] = {}
        self.bound: set[TurnsPlan] = set()  # whose feeds are those of this run

    def take(self) -> Taken:
        plans, turns = self.plans, self.turns
        assert plans.stages is not None
        try:
            if plans.stages.before:
                self._stage(plans._before, plans.stages.before, plans.reads_before, plans.stages.early)
            segments = self._prepared()
        except EnforceNotMet as error:  # is told when the operator's turn has come
            raise CannotPlan(str(error), passing=True) from None
        later = {*plans.stages.late}
        found = {n: self._stack(n) for n in turns.wanted if plans.stages.name(n) not in later}
        self._alike(plans.reads_after)
        for plan, arrays, addresses, values in segments:
            if plan not in self.bound and not plan.accepts(arrays):
                raise AssertionError("a plan takes the arrays that it has taken before")
            plan.take_turns(arrays, addresses, values, self.sums)
        if plans.stages.after:
            self._stage(plans._after, plans.stages.after, plans.reads_after, plans.stages.late)
        found |= {n: self._stack(n) for n in turns.wanted if n not in found}
        sums = {name: self.sums[plans.stages.name(name)] for name in turns.sums if self._added(name)}
        end = turns.place(turns.count - 1)
        last = {name: self.stacks[self._after(each)].element(end) for name, each in turns.carried.items()}
        return Taken(found, sums, last)

    def _added(self, name: str) -> bool:
        assert self.plans.stages is not None
        return self.plans.stages.name(name) in self.sums

    def _stack(self, name: str) -> Stack:
        """The values that a variable has had in all turns."""
        assert self.plans.stages is not None
        found = self.stacks.get(self.plans.stages.name(name))
        if found is None:
            same = listed([self.environment.find(self.plans.stages.name(name))] * self.turns.count)
            if same is None:
                raise CannotPlan(f"variable {name!r} is no array")
            found = same
        return found

    def _stage(
        self, pieces: list[Piece], ops: Sequence[Operator], reads: Sequence[str], wanted: Sequence[str]
    ) -> None:
        """Run operators on the rows of all turns."""
        assert self.plans.stages is not None
        like = self._alike(reads)
        assert like is not None
        inside = Environment(self.turns.block, self.environment)
        for name in reads:
            if name in self.stacks:
                inside.keep(name, self.stacks[name].packed())
        for piece in pieces:
            if piece.run(self.run.program, inside):
                break
        else:
            self._run_new(pieces, ops, wanted, inside)
        for name in wanted:
            array = inside.values[name]
            if name in self.plans.stages.totals:
                self.sums[name] = array
            else:
                self.stacks[name] = Packed(array, like.rows, like.bounds)

    def _alike(self, reads: Sequence[str]) -> Stack | None:
        """Something with the rows that everything has of what is read of all turns; CannotPlan if they differ."""
        found: Stack | None = None
        for name in reads:
            stack = self.stacks.get(name)
            if found is not None and stack is not None and not alike(found, stack):
                self.plans.apart(self.turns)
                raise CannotPlan("what it reads has other rows", passing=True)
            found = found or stack
        return found

    def _run_new(
        self, pieces: list[Piece], ops: Sequence[Operator], wanted: Sequence[str], inside: Environment
    ) -> None:
        inputs = inputs_of(ops, inside)
        try:
            plan = Plan(
                self.run.program, self.run.scope, feed_of(inputs, inside), wanted, ops, self.turns.block
            )
            if plan.has_levels or plan.meta.sparse:
                raise CannotPlan("it makes sequences or SelectedRows")
            piece = Piece(len(ops), plan, inputs, wanted, here=wanted)
        except CannotPlan:
            for op in ops:
                self.run.run_op(op, inside)
            return
        if not piece.run(self.run.program, inside):
            raise AssertionError("a plan takes the arrays that it was made for")
        pieces[:] = [piece, *pieces[: PIECES_KEPT - 1]]

    # The turns themselves.

    def _prepared(self) -> list[tuple[TurnsPlan, list[np.ndarray], np.ndarray, np.ndarray]]:
        """Plans for one turn after the other, with what they are given; nothing has been done yet."""
        turns = self.turns
        assert self.plans.stages is not None
        found = {name: self._expected(name) for name in self.plans.moving}
        inside = Environment(turns.block, self.environment)
        made: dict[str, Stack] = {}
        if self.plans.stages.turn:
            plan, arrays = self._plan(self._at(inside, found, self._probe(found)))
            made = self._memory(plan, found)
        for name, each in turns.carried.items():
            after = made.get(self._after(each), self.stacks.get(self._after(each)))
            if after is None or after.tail != each.first.shape[1:] or after.dtype != each.first.dtype:
                raise CannotPlan(f"variable {name!r} has another shape or type after a turn")
            self.stacks[name] = Shifted(each.first, after, turns.back)
        for name, (source, rows) in turns.shortened.items():
            if source in turns.carried:
                self.stacks[name] = Prefix(self.stacks[source], rows)
        self.stacks.update(made)
        if not self.plans.stages.turn:
            return []
        stacks = {name: self.stacks[name] for name in found}
        addresses, values = tables(
            turns.count, [*stacks.values()], [*made.values()], [*self.totals()], turns.back
        )
        segments = []
        turn = 0
        while turn < turns.count:
            for name, stack in stacks.items():
                inside.keep(name, stack.element(turns.place(turn)))
            plan, arrays, count = self._fitting(inside, addresses[turn:], values[turn:])
            segments.append((plan, arrays, addresses[turn : turn + count], values[turn : turn + count]))
            turn += count
        return segments

    def totals(self) -> list[np.ndarray]:
        """Memory for what is added up by the turns."""
        assert self.plans.stages is not None
        return [self.sums[name] for name in self.plans.stages.sums]

    def _after(self, each: Carried) -> str:
        assert self.plans.stages is not None
        return self.plans.stages.name(each.after)

    def _expected(self, name: str) -> tuple[Stack | None, Carried | None, np.ndarray | None]:
        """What is known of a variable before the turns: its values, or what it is carried from and its rows."""
        if name in self.stacks:
            return self.stacks[name], None, self.stacks[name].rows
        if name in self.turns.carried:
            return None, self.turns.carried[name], self.turns.carried[name].rows
        source, rows = self.turns.shortened[name]
        return None, self.turns.carried[source], rows

    def _probe(self, found: Mapping[str, tuple[Stack | None, Carried | None, np.ndarray | None]]) -> int:
        """The place of the turn that the first plan is made for: one with many rows, since single ones are special."""
        rows = [known for _, _, known in found.values()]
        known = [each for each in rows if each is not None]
        if len(known) < len(rows) or not known:
            return self.turns.place(0)
        return int(np.argmax(sum(known[1:], known[0])))

    def _at(
        self,
        inside: Environment,
        found: Mapping[str, tuple[Stack | None, Carried | None, np.ndarray | None]],
        place: int,
    ) -> Environment:
        """Arrays of the shapes that one turn finds."""
        for name, (stack, carried, rows) in found.items():
            if stack is not None:
                value = stack.element(place)
            else:
                assert carried is not None
                count = len(carried.first) if rows is None else int(rows[place])
                value = np.empty((count, *carried.first.shape[1:]), carried.first.dtype)
            inside.keep(name, value)
        return inside

    def _plan(self, inside: Environment) -> tuple[TurnsPlan, list[np.ndarray]]:
        """A plan for one turn, bound to what that finds."""
        for number, (plan, inputs) in enumerate(self.plans._plans):
            arrays = self._accepted(plan, inputs, inside)
            if arrays is not None:
                if number:
                    self.plans._plans.insert(0, self.plans._plans.pop(number))
                return plan, arrays
        return self._new_plan(inside)

    def _new_plan(self, inside: Environment) -> tuple[TurnsPlan, list[np.ndarray]]:
        sorted_ = self.plans.stages
        assert sorted_ is not None
        inputs = inputs_of(sorted_.turn, inside)
        if any(levels for _, levels in inputs) or any(levels is None for _, levels in inputs):
            raise CannotPlan("it reads sequences or SelectedRows")
        feed = feed_of(inputs, inside)
        plan = TurnsPlan(
            self.run.program, self.run.scope, feed, self.plans.moving, sorted_.made, sorted_.sums, sorted_.turn,
            self.turns.block,
        )  # fmt: skip
        self.plans._plans[:] = [(plan, inputs), *self.plans._plans[: PIECES_KEPT - 1]]
        arrays = list(feed.values())
        if not plan.accepts(arrays):
            raise AssertionError("a plan takes the arrays that it was made for")
        self.bound.add(plan)
        return plan, arrays

    def _memory(
        self, plan: TurnsPlan, found: Mapping[str, tuple[Stack | None, Carried | None, np.ndarray | None]]
    ) -> dict[str, Stack]:
        """Memory for what the turns make."""
        sorted_ = self.plans.stages
        assert sorted_ is not None
        made: dict[str, Stack] = {}
        kept = self.plans.kept
        for name in sorted_.made:
            shape, dtype, like = plan.memory_for(name)
            rows = found[like][2] if like else None
            if rows is None:
                rows = same_rows(self.turns.count, shape[0])
            if name in kept:
                bounds = self.stacks[like].bounds if like in self.stacks else bounds_of(rows)
                made[name] = Packed(np.empty((int(bounds[-1]), *shape[1:]), dtype), rows, bounds)
            else:
                made[name] = Alternating(rows, shape[1:], dtype)
        for name in sorted_.sums:
            shape, dtype, _ = plan.memory_for(name)
            self.sums[name] = np.zeros(shape, dtype)
        return made

    def _fitting(
        self, inside: Environment, addresses: np.ndarray, values: np.ndarray
    ) -> tuple[TurnsPlan, list[np.ndarray], int]:
        """A plan that can take the first of these turns, with its feeds, and how many of the others it can take."""
        for plan, inputs in list(self.plans._plans):
            arrays = self._accepted(plan, inputs, inside)
            if arrays is not None and (count := plan.engine.fitting(addresses, values)):
                return plan, arrays, count
        plan, arrays = self._new_plan(inside)
        count = plan.engine.fitting(addresses, values)
        if not count:
            raise CannotPlan("what a turn makes has another shape than in the turns before")
        return plan, arrays, count

    def _accepted(
        self, plan: TurnsPlan, inputs: list[tuple[str, int | None]], inside: Environment
    ) -> list[np.ndarray] | None:
        """What a plan is fed, if it takes that."""
        arrays = gathered(inputs, inside)
        if arrays is None or not plan.ready(self.run.program):
            return None
        if plan.accepts(arrays):
            self.bound.add(plan)
            return arrays
        self.bound.discard(plan)
        return None


def _reads(ops: Sequence[Operator]) -> list[str]:
    """What operators read, each once."""
    return list(dict.fromkeys(name for op in ops for name in op.reads()))


__all__ = ["TurnPlans"]
