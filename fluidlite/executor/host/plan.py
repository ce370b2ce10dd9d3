"""`Plan`: operators as a flat list of instructions for the engine, for all sizes that its guards admit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np

from ..._ext import engine
from ...base.reports import profiling
from ...base.sizes import current
from ...framework import Block, Operator, Program
from ...ops.op_view import FIND
from ...ops.registry import Call, OpView
from .. import failures
from ..plan import marks
from ..plan.analysis import Analysis
from ..plan.elements import MAY_MISS, ON_ELEMENTS
from ..plan.finite import LOOK
from ..plan.fusion import fuse
from ..plan.instructions import Instruction, lifetimes, outermost_loops
from ..plan.rank_ops import RANK
from ..plan.refusals import CannotPlan, Missed
from ..plan.turn_ops import LOOP, TURNS
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from . import fusion as native_fusion
from . import memory
from .channel_blocks import ChannelBlocks
from .engine_plan import EnginePlan, is_call
from .lowering import Lowering
from .packing import packed_in_line

HARMLESS = (*marks.MARKS, marks.THERE, marks.NONEMPTY, RANK, LOOK, *ON_ELEMENTS)
"""Operators that may be run again, though they do something besides computing."""

MOST_UNDONE = 1 << 20
"""Of persistable variables that change before all sizes are known at most so many bytes are copied in each step."""


def _all_of(instruction: Instruction) -> Iterable[Operator]:
    """The operators of an instruction, and those of turns that it takes."""
    op = instruction.op
    return (*instruction.ops, *op.attrs["form"].ops) if op.definition is LOOP else instruction.ops


class Plan(EnginePlan):
    """Runs operators of one block on feeds of any sizes that fit; temporaries share one arena.

    Args:
        program: what the plan is made for; it holds as long as the program does not change.
        scope: where the persistable variables are.
        feed: arrays like those to come, as `feeding.expanded` gives them; persistable variables are as they are now.
        fetches: what to copy out.
        ops: the operators, by default those of the global block.
        block: where their variables are declared, by default the global block.
        how: what else `Analysis` takes, where sizes vary by default. `accepts` does not take what comes `later`.

    Raises CannotPlan from the constructor when an operator has to run on its own, EnforceNotMet when something it reads
    is neither fed, computed nor initialised.
    """

    branches = True
    """Whether blocks of branches may stand in line with other operators."""

    results_apart = False
    """Whether what is fetched has memory of its own."""

    _cut = 0

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feed: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        ops: Sequence[Operator] | None = None,
        block: Block | None = None,
        **how: Any,
    ) -> None:
        from .bodies import LoopBody

        how = {
            "varying": True,
            "branches": self.branches,
            "make_body": partial(LoopBody, program, scope),
            **how,
        }
        block = block or program.global_block()
        analysis = Analysis(block, scope, dict(feed), fetches, ops, **how)
        super().__init__(program, scope, analysis, how.get("later") or ())
        self._ends_early = analysis.cut
        fetches = analysis.fetches
        self.levels = [self.meta.lod(name) for name in fetches]
        self.has_levels = any(self.levels)
        fetches = [*fetches, *(name for levels in self.levels for name in levels)]
        self.instructions = instructions = self._lower(analysis.steps, fetches)
        self._changed_early = self._before_finding(instructions)
        self._allocate(instructions, fetches)
        self._set_up(instructions, fetches)
        if (self._loops or self._ranked.names) and not self._takes(feed):
            raise CannotPlan("turns of a loop have sizes that no plan for them is made for")

    def _takes(self, feed: Mapping[str, np.ndarray]) -> bool:
        """Whether there are turns of all loops for what the plan is made for."""
        return self.accepts(list(feed.values()))

    def _lower(self, steps: list[tuple[Operator, OpView]], fetches: Sequence[str]) -> list[Instruction]:
        """The instructions, fused."""
        apart = fetches if self.results_apart else ()
        self._lowering = lowering = Lowering(self.meta, apart)
        self._roots = lowering.aliases
        made = lowering.instructions(steps, self._array)
        self._saved: Counter[str] = Counter()
        made = self._fused(made, {*fetches, *self._persistables(made)})
        return memory.made_in_place(
            made, self._roots, lambda name: name not in apart and self._temporary(name)
        )

    def _fused(self, instructions: list[Instruction], needed: Iterable[str]) -> list[Instruction]:
        needed = list(needed)
        apart = self.results_apart  # then others know variables by their names as well
        in_blocks = ChannelBlocks(self.meta, lambda name: not apart and self._temporary(name))
        for name, each in native_fusion.passes(in_blocks).items():
            before = len(instructions)
            instructions = fuse(instructions, needed, [each], self._roots)
            self._saved[name] += before - len(instructions)
        # Not the pass, which asks this plan: both would stay until the collector comes by.
        self._blocks = str(in_blocks) if in_blocks.blocked else ""
        return self._packed(instructions)

    def _before_finding(self, instructions: Sequence[Instruction]) -> list[str]:
        """The persistable variables changed before all sizes are known; CannotPlan if what happens cannot be undone."""
        ends = [at for at, each in enumerate(instructions) if is_call(each, FIND)]
        asking = (marks.THERE, *(MAY_MISS if ends else MAY_MISS[:2]))
        asks = [
            at for at, each in enumerate(instructions) if any(op.definition in asking for op in _all_of(each))
        ]
        # Whether such a loop has a body for each turn is known when it is reached.
        asks += [at for at, each in enumerate(instructions) if ends and at > ends[0] and is_call(each, TURNS)]
        last = max([*ends[-1:], *asks], default=0)
        for begin, end in outermost_loops(instructions):  # what is in a loop comes before the next turn
            if begin < last < end:
                last = end
        early = instructions[:last]
        for at, op in [(at, op) for at, each in enumerate(early) for op in _all_of(each)]:
            definition = op.definition
            if definition.effects.random or (definition.effects.host and definition not in HARMLESS):
                if not ends:
                    self._again = False
                    return []
                finding = next((instructions[end].op for end in ends if end > at), op)
                raise CannotPlan(
                    f"sizes are found behind operator {op.type}, which cannot be undone", finding
                )
        names = sorted(self._persistables(early))
        if sum(self._bytes_now(name) for name in names) > MOST_UNDONE:
            raise CannotPlan(
                f"sizes are found when {names[0]!r} and other persistable variables have changed"
            )
        return names

    def _packed(self, instructions: list[Instruction]) -> list[Instruction]:
        """The instructions with matrices packed that many products share."""
        return packed_in_line(instructions, self.meta, self._root)

    def _allocate(self, instructions: list[Instruction], fetches: Sequence[str]) -> None:
        """Places in the arena for temporaries."""
        for name, (first, last) in lifetimes(instructions, self._roots, fetches).items():
            if self._temporary(name):
                self._storages[name] = memory.Storage(self.meta.bytes(name), [name], first, last)
        memory.share_in_place(instructions, self._storages, self._roots)

    def _temporary(self, name: str) -> bool:
        if name in self.meta.known or name in self._fed or name in self._elements:
            return False
        return not self.meta.is_persistable(name)

    def release_gil(self, release: bool) -> None:
        self.engine.release_gil = release

    def run(self, begin: int = 0, end: int = -1) -> None:
        """Run one step, or its instructions from `begin` to `end`, on what is bound; errors name the operator and the
        user's line.
        """
        recorder = profiling.active
        early = self._changed_early
        before = [(array, array.copy()) for array in map(self._written.__getitem__, early)] if early else ()
        try:
            if recorder is None:
                self.engine.run(begin, end)
            else:
                self._run_recorded(recorder, begin, end)
            if not self._ends_early:
                return
            problem: Exception = Missed("it ends where sizes are found", sizes=self._found_by(len(self.ops)))
        except engine.KernelFailure as failure:
            problem = self._failed(failure)
        for array, copy in before if isinstance(problem, Missed) else ():
            np.copyto(array, copy)
        raise problem

    def _failed(self, failure: engine.KernelFailure) -> Exception:
        """What is to be raised when a native instruction fails."""
        if failure.turn is not None:
            number, index, inner = failure.turn
            bodies = self._loops[failure.index].bodies
            if number < len(bodies):
                return bodies[number]._failed(engine.KernelFailure(index, failure.code, failure.err, inner))  # type: ignore[no-any-return]
        if failure.code == engine.UNFIT:
            last = failure.err if is_call(self.instructions[failure.index], FIND) else None
            return Missed("it finds other sizes", sizes=self._found_by(failure.index, last))
        op = self.ops[failure.index]
        if op.definition is marks.THERE:
            name = op.inputs["X"][0].partition(marks.UNSET)[0]
            reason = f"variable {name!r} has no value where a branch is not taken"
            return Missed(reason) if self._again else failures.in_operator(op, ValueError(reason))
        if op.definition in MAY_MISS and failure.code == engine.OUT_OF_RANGE:
            if self._again:
                return Missed("it asks for elements of an array that are not there")
            number, _, count = failure.err[:3]
            reason = f"the tensor array has {count} elements, and none that fits at index {number}"
            return failures.in_operator(op, ValueError(reason))
        return failures.in_operator(op, failures.native(op, failure.code, failure.err))

    def _found_by(self, at: int, last: Sequence[int] | None = None) -> dict[str, int]:
        """What has been found up to an instruction, by name; `last`: what that one has found, which does not fit."""
        known: dict[str, int] = {}
        actions = (each.action for each in self.instructions[: at + 1])
        finds = [action for action in actions if isinstance(action, Call) and action.kernel == FIND]
        for labels, action in zip(self.meta.finding, finds, strict=False):
            sizes = [self._registers.found.get(self._registers.integer(n)) for n in action.ints[1::2]]
            known.update(
                zip(labels, last if last is not None and action is finds[-1] else sizes, strict=False)
            )
        return known

    def _run_recorded(self, recorder: profiling.Recorder, begin: int, end: int) -> None:
        """`run` with the time of each operator recorded; the instructions of one operator are one span."""
        engine = self.engine
        engine.profile(True)
        try:
            engine.run(begin, end)
        finally:
            since = time.perf_counter_ns()
            spans = engine.spans()
            engine.profile(False)
            for name, first, last in self._named_runs:
                if spans[first][0]:
                    recorder.add(name, spans[first][0], max(spans[first : last + 1])[1])
            recorder.leave_out(since)

    @cached_property
    def _named_runs(self) -> list[tuple[str, int, int]]:
        """Each operator, or those that are joined, with its first and last instruction."""
        runs: list[tuple[str, int, int]] = []
        for _, run in groupby(enumerate(self.instructions), key=lambda item: item[1].ops):
            found = list(run)
            runs.append((found[0][1].name, found[0][0], found[-1][0]))
        return runs

    def fetch(self) -> list[np.ndarray]:
        return self.engine.fetch_all()

    def height(self, name: str) -> int:
        """The height of the table that SelectedRows are about."""
        return current(self.meta.shapes[name][0])

    def fetch_tensors(self) -> list[LoDTensor]:
        found = self.fetch()
        offsets = iter(found[len(self.levels) :])
        return [
            LoDTensor.wrap(array, tuple([next(offsets) for _ in levels]))
            for array, levels in zip(found, self.levels, strict=False)
        ]

    def describe(self) -> str:
        count = f"{len(self.ops)} instruction{'s' if len(self.ops) != 1 else ''}"
        lines = [f"{count} on the CPU for {self._for_feeds()}"]
        if self.meta.sizes.guards:
            lines.append(f"  where {', '.join(map(str, self.meta.sizes.guards.values()))}")
        if any(count > 0 for count in self._saved.values()):
            saved = ", ".join(f"{name} {count}" for name, count in self._saved.items() if count > 0)
            lines.append(f"  instructions saved by passes: {saved}")
        if self._blocks:
            lines.append(f"  {self._blocks}")
        for at, (each, native) in enumerate(zip(self.instructions, self.is_native, strict=True)):
            lines.append(f"  {each.describe()}; {'native' if native else 'reference'}")
            for body in self._loops[at].bodies if at in self._loops else ():
                lines += [f"    {line}" for line in body.describe().splitlines()]
        return "\n".join(lines)
