"""What every plan begins with, on whatever device: the operators that matter, exact shapes, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.errors import EnforceNotMet
from ...base.reports import progress
from ...framework import Block, Operator
from ...ops.registry import OpView
from .. import failures
from ..tensors.scope import Scope
from . import branching, finite, float16, marks, predication, sparse, stepping, turning
from .elements import GET
from .in_line import InLine
from .meta import ExactMeta
from .refusals import CannotPlan, Unfound
from .shapes import NO_TENSORS, Versions, fold, in_place_of, infer, live, takes_no_part

Step = tuple[Operator, OpView]
Arrays = dict[str, np.ndarray]


class Analysis:
    """Operators of one block for feeds of exact shapes.

    `steps`: what has to run, in order, with exact shapes; operators whose results are known now are left out.
    `fetches`: the variables to copy out, one for each of those asked for (the last steps make SelectedRows dense).
    `cut`: whether steps end where a size is found, as what comes later is refused if sizes are as they were guessed.
    `meta`: shapes and dtypes, constants (`known`) and the variables that are read or written of those that are
    `persistable`.

    Args:
        feed: what is fed, as `feeding.expanded` gives it.
        ops: the operators, by default those of the global block.
        later: what is fed when part of the operators has run; of each the variable that it has shape and type of.
        branches: whether the target can jump past the blocks of branches; without jumps, small blocks are predicated.
        watched: whether the results of all operators are looked at, in their order (`finite.py`).
        how: what else `ExactMeta` takes.

    Raises CannotPlan when an operator needs to be run on its own, EnforceNotMet when something it reads is neither fed,
    computed nor initialised.
    """

    def __init__(
        self,
        block: Block,
        scope: Scope,
        feed: Arrays,
        fetches: Sequence[str],
        ops: Sequence[Operator] | None = None,
        later: Mapping[str, str] | None = None,
        branches: bool = False,
        watched: bool = False,
        **how: Any,
    ) -> None:
        self.feed_names = list(feed)
        self._native = branches
        self._watch = finite.Watch(block) if watched else None
        self.meta = ExactMeta(block, scope, feed, later, **how)
        everything = block.ops if ops is None else ops
        versions = Versions(self.meta.is_persistable, [*self.feed_names, *(later or ())])
        self._check_fed(everything)
        if any(var.persistable and var.type in NO_TENSORS for var in block.program.list_vars()):
            raise CannotPlan("the scope keeps arrays or rank tables")
        mattering = list(everything)
        # Those with jumps have been found to matter.
        if not watched and not any(op.definition in marks.BEGINS for op in mattering):
            mattering = live(mattering, sparse.wholes(fetches))
        self.unset: dict[str, Operator] = {}  # what holds nothing where a branch is not taken
        self._in_turns = self.cut = False
        kept: Iterable[Operator] = mattering
        if branches:
            kept = self._in_line(mattering, fetches)
        elif not watched:
            kept = predication.predicated(mattering)
        self.steps = self._analyse([versions.renamed(op) for op in kept if not takes_no_part(op)])
        fetches = () if self.cut else fetches
        for name in fetches:
            if name in self.unset:
                raise CannotPlan(
                    f"variable {name!r} has no value where a branch is not taken", self.unset[name]
                )
        self.fetches = self._fetches([versions.latest.get(name, name) for name in fetches])

    def _in_line(self, ops: Sequence[Operator], fetches: Sequence[str]) -> list[Operator]:
        """Operators with the blocks of branches and loops in their places.

        An array is a name for its elements, or else memory of the engine's.
        """
        try:
            return self._lines(ops, fetches, self._watch is not None)
        except CannotPlan as refusal:
            if not any(op.type in branching.ON_ARRAYS for op in branching.everywhere(ops)):
                raise
            try:
                return self._lines(ops, fetches, True)
            except CannotPlan:
                raise refusal from None

    def _lines(self, ops: Sequence[Operator], fetches: Sequence[str], arrays: bool) -> list[Operator]:
        perhaps = {name for op in ops for name in branching.read_before(op) if self.meta.has(name)}
        steps = stepping.Stepping()
        loops = turning.Turning(ops, steps)
        # Turns of which all results are looked at are taken one by one, as they come.
        turned = (steps, loops) if self._watch is None else ()
        lines = InLine({*self.meta.shapes, *perhaps}, arrays, *turned)
        if turned and not arrays:
            ops = [*loops.of(ops)]
        made = [*lines.of(ops)]
        made = lines.begun(made, lines.touched + lines.tapes)
        read = {*fetches}.union(*(op.reads() for op in made))
        made = [op for op in made if op.definition is not GET or op.outputs["Out"][0] in read]
        self.unset, self._in_turns = lines.unset, steps.any or loops.any
        return live(made, sparse.wholes(fetches)) if loops.any else made

    def _check_fed(self, ops: Sequence[Operator]) -> None:
        """Raise NotFed if an operator, needed or not, reads what is to be fed and was not, nor written before."""
        written: set[str] = set()
        for op in ops:
            for name in branching.reads(op):
                var = op.block._find_var_recursive(name)
                if var is not None and var.is_data and name not in written and not self.meta.has(name):
                    raise failures.missing_value(op, name, self.feed_names)
            written.update(op.writes())

    def _analyse(self, ops: list[Operator]) -> list[Step]:
        """Exact shapes of everything; constants are computed and their operators left out."""
        writes = Counter(name for op in ops for name in op.writes())
        once = {n for op in ops for n in op.writes() if writes[n] == 1 and not op.block._is_persistable(n)}
        steps: list[Step] = []
        around: list[Operator] = []  # the branches and loops that an operator is in
        begun: list[int] = []  # and how many had found sizes when they began
        known = finding = 0  # how many steps there are up to the last that finds sizes, and how many do
        for op in progress.over(ops, "shapes of the program"):
            if op.definition in marks.BEGINS:
                around.append(op)
                begun.append(len(self.meta.finding))
            try:
                if around and not self.meta.sparse.keys().isdisjoint(op.reads()):
                    raise CannotPlan("a branch looks at SelectedRows")
                found = len(self.meta.finding)
                for ready in self._ready(op, bool(around)):
                    steps += self._step(ready, once, writes)
                if self._watch is not None:
                    steps += self._watch.behind(op, self.meta)
                if len(self.meta.finding) > found and any(each.definition is marks.BEGIN for each in around):
                    raise CannotPlan(f"operator {op.type} finds sizes in a branch")
            except (CannotPlan, EnforceNotMet) as refusal:
                if known:
                    self.cut = True
                    return steps[:known]
                if not around and self._in_turns and isinstance(refusal, EnforceNotMet):
                    raise CannotPlan(
                        str(refusal)
                    ) from None  # what is wrong in a turn is told when it is taken
                if not around:
                    raise
                # What is wrong in a branch is told when it is taken.
                kind = Unfound if isinstance(refusal, Unfound) else CannotPlan
                raise kind(str(refusal), around[0], getattr(refusal, "passing", False)) from None
            if op.definition in marks.ENDS:
                first = around.pop()
                if len(self.meta.finding) > begun.pop():
                    settle = in_place_of(first, marks.SETTLE, {"X": first.inputs["Cond"]}, {}, {})
                    steps += self._step(settle, once, writes)
            if not around and len(self.meta.finding) > finding:
                known, finding = len(steps), len(self.meta.finding)
        return steps

    def _ready(self, op: Operator, in_branch: bool) -> Iterable[Operator]:
        """What to run for `op`: mostly itself. What a branch casts is not there when another one is taken."""
        meta = self.meta
        for one in sparse.densified(op, meta) if meta.sparse else (op,):
            for name in one.reads():
                meta.has(name, one)  # it knows the type from now on
            if meta.halves and self._native and not in_branch:
                yield from float16.widened(one, meta, self.feed_names)
            else:
                yield one

    def _step(self, op: Operator, once: set[str], writes: Counter[str]) -> list[Step]:
        view = infer(op, self.meta, self.feed_names)
        if self.meta.sparse:
            sparse.check_written_once(op, self.meta, writes)
        return [] if fold(op, view, self.meta, once) else [(op, view)]

    def _fetches(self, fetches: Sequence[str]) -> list[str]:
        for name in fetches:
            if not self.meta.has(name):
                var = self.meta.block._find_var_recursive(name)
                if var is not None and var.type == VarType.LOD_TENSOR_ARRAY:
                    raise CannotPlan(f"{name} is fetched, an array of tensors")
                if var is not None and var.type == VarType.LOD_TENSOR:
                    raise CannotPlan(f"{name} is fetched, which may have no value")
                raise failures.unknown_fetch(name, self.meta.block.vars)
        sparse.check([op for op, _ in self.steps], fetches)
        for name in fetches:
            if name in self.meta.sparse and not self.meta.has(sparse.dense_name(name)):
                self.steps += self._step(sparse.dense(self.steps[-1][0], name), set(), Counter())
        return [sparse.dense_name(name) if name in self.meta.sparse else name for name in fetches]
