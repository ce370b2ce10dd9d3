"""`Plan`: operators as a flat list of instructions for the engine, for all sizes that its guards admit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np

from ..._ext import engine
from ...base.dtypes import to_numpy
from ...base.reports import profiling, progress
from ...base.sizes import Real, Size, current, current_shape
from ...framework import Block, Operator, Program
from ...ops.op_view import FIND
from ...ops.registry import Call, OpDef, OpView
from .. import failures
from ..plan import marks
from ..plan.analysis import Analysis, analysed
from ..plan.elements import CLEAR, ELEMENTS, MAY_MISS, ON_ELEMENTS, TURN
from ..plan.finite import LOOK
from ..plan.found import Sought
from ..plan.fusion import fuse
from ..plan.instructions import Instruction, lifetimes
from ..plan.ranks import RankedFeeds
from ..plan.refusals import CannotPlan, Missed
from ..plan.step_plan import StepPlan
from ..plan.turn_ops import RANK, TURNS, Layout, LoopForm
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from . import fusion as native_fusion
from . import memory
from .lowering import Lowering
from .packing import packed_in_line
from .reference import Reference
from .registers import Registers

HARMLESS = (*marks.MARKS, marks.FULL, RANK, LOOK, *ON_ELEMENTS)
"""Operators that may be run again, though they do something besides computing."""

MOST_UNDONE = 1 << 20
"""Of persistable variables that change before all sizes are known at most so many bytes are copied in each step."""


def _is_call(instruction: Instruction, kernel: str) -> bool:
    return isinstance(instruction.action, Call) and instruction.action.kernel == kernel


class Plan(StepPlan):
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

    can_undo_turns = False
    """Whether what the turn of a loop finds is as it was until that ends."""

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
        analysis = analysed(
            lambda empty: Analysis(block, scope, dict(feed), fetches, ops, empty=empty, **how)
        )
        super().__init__(program, scope, analysis)
        self._failure = engine.KernelFailure
        self._ends_early = analysis.cut
        self._later = list(how.get("later") or ())
        self._ranked = RankedFeeds(self.meta.ranking, self.feed_names, self.meta)
        self._fed = frozenset([*self.feed_names, *self._later, *self._ranked.names])
        self._elements = {
            name + ELEMENTS: engine.Elements()
            for op, _ in analysis.steps
            if op.definition in (CLEAR, TURN)
            for name in op.attrs["arrays"]
        }
        self._registers = Registers(self.meta.sizes)
        self._storages: dict[str, memory.Storage] = {}
        self._slots: dict[str, int] = {}
        fetches = analysis.fetches
        self.levels = [self.meta.lod(name) for name in fetches]
        self.has_levels = any(self.levels)
        fetches = [*fetches, *(name for levels in self.levels for name in levels)]
        self.instructions = instructions = self._lower(analysis.steps, fetches)
        self._changed = {name for op, _ in analysis.steps for name in op.output_arg_names}
        self._again = True  # whether a step that asks for what is not there can be run in another way
        self._undone: list[Any] = []  # arrays that are as they were if sizes do not fit
        self._changed_early = self._before_finding(instructions)
        self._allocate(instructions, fetches)
        self._emit(instructions)
        self._bind_first()
        self.fetched = list(fetches)
        self.engine.set_fetches([self._entry(name) for name in fetches])
        self._sign()
        self._values = [
            (self.feed_names.index(name), k, n, self._registers.integer(n) if isinstance(n, Size) else -1)
            for name, numbers in self.meta.valued.items()
            for k, n in enumerate(numbers.flat)
        ]
        self._rank_sizes = [self._size(size) for size in self._ranked.sizes]
        self._registers.add_guards()
        self._settle()
        if (self._loops or self._ranked.names) and not self.accepts(list(feed.values())):
            raise CannotPlan("turns of a loop have sizes that no plan for them is made for")

    def _size(self, size: Any) -> tuple[int, int]:
        """The register of a size, -1 for one that stays, and that."""
        return (self._registers.integer(size) if isinstance(size, Size) else -1), current(size)

    def _entry(self, name: str) -> tuple[int, np.dtype, tuple[int, ...]]:
        """Slot, element type and shape of a variable, as the engine takes them."""
        return (
            self._slot(name),
            to_numpy(self.meta.dtypes[name]),
            self._registers.shape(self.meta.shapes[name]),
        )

    def _settle(self) -> None:
        """Find places for the temporaries of the sizes at hand."""
        sharing: dict[int, tuple[memory.Storage, list[int]]] = {}
        for name, storage in self._storages.items():
            sharing.setdefault(id(storage), (storage, []))[1].append(self._slots[name])
        try:
            for storage, slots in sharing.values():
                register = self._registers.integer(storage.bytes)
                self.engine.add_storage(storage.first, storage.last, register, slots)
            fits = self.engine.settle()
        except (MemoryError, ValueError, OverflowError) as error:
            largest = max(self._storages, key=self._bytes_now, default="")
            raise MemoryError(
                f"this program needs more memory than there is: variable {largest!r} "
                f"{list(current_shape(self.meta.shapes[largest]))} alone takes {self._bytes_now(largest)} bytes"
            ) from error
        assert fits, "a plan holds for the sizes that it is made for"

    def _sign(self, followed: int = 0) -> None:
        """Tell the engine which arrays `accepts` will be given; the last, `followed` many, are written to."""
        self.engine.set_signature(
            [self._entry(name) for name in self.feed_names],
            range(len(self.feed_names) - followed, len(self.feed_names)),
        )

    def follow(self, names: Sequence[str]) -> None:
        self.feed_names = [*self.feed_names, *names]
        self.followed = len(names)
        self._sign(len(names))

    def _lower(self, steps: list[tuple[Operator, OpView]], fetches: Sequence[str]) -> list[Instruction]:
        """The instructions, fused."""
        apart = fetches if self.results_apart else ()
        self._lowering = lowering = Lowering(self.meta, apart)
        self._roots = lowering.aliases
        made = lowering.instructions(steps, self._referred)
        self._saved: Counter[str] = Counter()
        made = self._packed(self._fused(made, {*fetches, *self._persistables(made)}))
        if self.can_undo_turns:
            return made
        return memory.made_in_place(
            made, self._roots, lambda name: name not in apart and self._temporary(name)
        )

    def _referred(self, op: Operator, sought: Sought | None) -> Sequence[Callable[[], None]]:
        return Reference(op, self._array, self._lowering.levels).steps(sought)

    def _fused(self, instructions: list[Instruction], needed: Iterable[str]) -> list[Instruction]:
        needed = list(needed)
        for name, each in native_fusion.passes().items():
            before = len(instructions)
            instructions = fuse(instructions, needed, [each], self._roots)
            self._saved[name] += before - len(instructions)
        return instructions

    def _before_finding(self, instructions: Sequence[Instruction]) -> list[str]:
        """The persistable variables changed before all sizes are known; CannotPlan if what happens cannot be undone."""
        ends = [at for at, each in enumerate(instructions) if _is_call(each, FIND)]
        asking = MAY_MISS if ends else MAY_MISS[:2]
        asks = [at for at, each in enumerate(instructions) if each.op.definition in asking]
        # Whether such a loop has a body for each turn is known when it is reached.
        asks += [
            at for at, each in enumerate(instructions) if ends and at > ends[0] and _is_call(each, TURNS)
        ]
        last = max([*ends[-1:], *asks], default=0)
        begun: list[int] = []
        for at, each in enumerate(instructions):  # what is in a loop comes before the next turn
            if each.action in marks.BEGINS:
                begun.append(at)
            elif each.action in marks.ENDS and begun.pop() < last < at and each.action is marks.AGAIN:
                last = at
        early = instructions[:last]
        for op in {id(op): op for each in early for op in each.ops}.values():
            definition = op.definition
            if definition.random or (definition.host and definition not in HARMLESS):
                if not ends:
                    self._again = False
                    return []
                raise CannotPlan(f"sizes are found behind operator {op.type}, which cannot be undone", op)
        names = sorted(self._persistables(early))
        if sum(self._bytes_now(name) for name in names) > MOST_UNDONE:
            raise CannotPlan(
                f"sizes are found when {names[0]!r} and other persistable variables have changed"
            )
        return names

    def _packed(self, instructions: list[Instruction]) -> list[Instruction]:
        """The instructions with matrices packed that many products share."""
        return packed_in_line(instructions, self.meta, self._root)

    def _root(self, name: str) -> str:
        """The variable whose memory `name` lives in."""
        return self._roots.get(name, name)

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

    def _bytes_now(self, name: str) -> int:
        return current(self.meta.bytes(name)) if name in self.meta.shapes else 0

    def _slot(self, name: str) -> int:
        return self._slots.setdefault(self._root(name), len(self._slots))

    def _emit(self, instructions: list[Instruction]) -> None:
        """Give the engine its instructions, the memory of temporaries, and constants."""
        for name in (
            *self.feed_names,
            *self._later,
            *self._ranked.names,
            *self.meta.persistable,
            *self.meta.known,
            *self._storages,
            *self._elements,
        ):
            self._slot(name)
        self.ops = [each.op for each in instructions]
        self.is_native = [isinstance(each.action, (Call, OpDef)) for each in instructions]
        branches: list[int] = []  # where those begin that have not ended
        self._loops: dict[int, LoopForm] = {}  # by position, those whose turns are plans of their own
        self.engine = engine.Engine(len(self._slots), self._registers.found)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._views: dict[str, np.ndarray] = {}
        self._generation = -1
        for at, instruction in enumerate(progress.over(instructions, "instructions of the plan")):
            op, action = instruction.op, instruction.action
            if _is_call(instruction, TURNS):
                self._add_loop(at, op.attrs["form"], action)
            elif _is_call(instruction, FIND):
                pairs = zip(action.ints[::2], action.ints[1::2], strict=True)
                integer = self._registers.integer
                self.engine.add_find(
                    self._slot(instruction.reads[0]),
                    [(integer(place), integer(size)) for place, size in pairs],
                )
            elif isinstance(action, Call):
                slots = [-1 if name is None else self._slot(name) for name in action.operands]
                ints, floats = [current(n) for n in action.ints], [float(current(x)) for x in action.floats]
                self.engine.add(self._verified(op, action), slots, ints, floats)
                for position, number in enumerate(action.ints):
                    if isinstance(number, Size):
                        self.engine.vary(at, position, self._registers.integer(number))
                for position, real in enumerate(action.floats):
                    if isinstance(real, (Size, Real)):
                        self.engine.vary(at, position, self._registers.real(real), True)
            elif action in marks.BEGINS:
                branches.append(self.engine.add_jump(self._slot(op.inputs["Cond"][0])))
            elif action in marks.ENDS:
                begin = branches.pop()
                self.engine.add_jump()
                self.engine.set_target(begin, at + 1)
                self.engine.set_target(at, begin if action is marks.AGAIN else at + 1)
            elif not isinstance(action, OpDef):
                self.engine.add_python(action)
                for name in instruction.touches:
                    self._shapes[name] = self._registers.shape(self.meta.shapes[name])
        for name, array in self.meta.known.items():
            self.engine.bind(self._slots[name], array)
        for name, elements in self._elements.items():
            self.engine.set_pointer(self._slots[name], elements.address)

    def _add_loop(self, at: int, form: LoopForm, call: Call) -> None:
        """Give the engine a loop whose turns are plans of their own."""
        layout = Layout(form)
        moving, read, made = layout.moving(engine.LOOP_KINDS)
        bodies = [body.connections(layout, read, made) for body in form.bodies]
        slots = [-1 if name is None else self._slot(name) for name in call.operands]
        ints = [current(n) for n in call.ints]
        self.engine.add_loop(slots, ints, form.back, moving, layout.sums, bodies)
        for position, number in enumerate(call.ints):
            if isinstance(number, Size):
                self.engine.vary(at, position, self._registers.integer(number))
        self._loops[at] = form

    def _verified(self, op: Operator, call: Call) -> int:
        """The address of a kernel that has been given what it takes; OperatorError otherwise."""
        from ..._ext import kernels

        sizes = [0 if name is None else self.meta.bytes(name) for name in call.operands]
        try:
            kernels.check(
                call.kernel, [name is not None for name in call.operands], call.ints, call.floats, sizes
            )
        except ValueError as error:
            raise failures.in_operator(op, error) from error
        return kernels.address(call.kernel)

    def bind_scope(self) -> bool:
        """Point at the scope's variables as they are now."""
        tensors = self._tensors()
        if tensors is None:
            return False
        for name, tensor in tensors.items():
            tensor.on(None)
            self.engine.bind(self._slots[name], tensor.own())
        self._views.clear()
        self.engine.set_written([tensors[name].array for name in tensors if name in self._changed])
        self._undone = [tensors[name].array for name in self._changed_early]
        return True

    def accepts(self, arrays: list[np.ndarray]) -> bool:
        """Bind the arrays of the feeds; what is only read and shares memory with what the plan writes is copied."""
        if self._loops or self._ranked.names:
            return self._accepts_ranked(arrays)
        return self._accepts(arrays)

    def _accepts_ranked(self, arrays: list[np.ndarray]) -> bool:
        """`accepts` where sequences are ranked, and turns of loops have sizes of their own."""
        # The profiler wants the time of each operator.
        if len(arrays) != len(self.feed_names) or profiling.active is not None:
            return self.engine.bind_arrays(())
        measured = self._ranked.measured(arrays)
        if measured is None or not all(map(self._is_size, self._rank_sizes, measured[0])):
            return self.engine.bind_arrays(())
        if not self._accepts(arrays):
            return False
        for name, array in zip(self._ranked.names, measured[1], strict=True):
            self.engine.bind(self._slot(name), array)
        return self.engine.loops_fit() or self.engine.bind_arrays(())

    def _is_size(self, wanted: tuple[int, int], found: int) -> bool:
        """Have a size be what has been found; False if it has to be another one."""
        register, number = wanted
        if register < 0:
            return number == found
        if found >= 2:
            self.engine.set_root(register, found)
        return found >= 2

    def _accepts(self, arrays: list[np.ndarray]) -> bool:
        if not all(self._holds(arrays[at], *number) for at, *number in self._values):
            return self.engine.bind_arrays(())
        if self.engine.bind_arrays(arrays):
            return True
        read = len(arrays) - self.followed
        shared = [k for k, array in enumerate(arrays[:read]) if self.engine.shares(array)]
        if not shared:
            return False
        arrays = list(arrays)
        for k in shared:
            arrays[k] = arrays[k].copy()
        return self.engine.bind_arrays(arrays)

    def _holds(self, array: np.ndarray, place: int, number: Any, register: int) -> bool:
        """Have a size be what an element of a feed says; False if that is no such size."""
        if place >= array.size or array.dtype.kind != "i":
            return False
        return self._is_size((register, number), array.item(place))

    def release_gil(self, release: bool) -> None:
        self.engine.release_gil = release

    def run(self, begin: int = 0, end: int = -1) -> None:
        """Run one step, or its instructions from `begin` to `end`, on what is bound; errors name the operator and the
        user's line.
        """
        recorder = profiling.active
        before = [(array, array.copy()) for array in self._undone] if self._undone else ()
        try:
            if recorder is None:
                self.engine.run(begin, end)
            else:
                self._run_recorded(recorder, begin, end)
            if not self._ends_early:
                return
            problem: Exception = Missed("it ends where sizes are found", sizes=self._found_by(len(self.ops)))
        except self._failure as failure:
            problem = self._failed(failure)
        for array, copy in before if isinstance(problem, Missed) else ():
            np.copyto(array, copy)
        raise problem

    def _failed(self, failure: engine.KernelFailure) -> Exception:
        """What is to be raised when a native instruction fails."""
        if failure.turn is not None:
            number, index = failure.turn
            bodies = self._loops[failure.index].bodies
            if number < len(bodies):
                return bodies[number]._failed(self._failure(index, failure.code, failure.err))  # type: ignore[no-any-return]
        if failure.code == engine.UNFIT:
            last = failure.err if _is_call(self.instructions[failure.index], FIND) else None
            return Missed("it finds other sizes", sizes=self._found_by(failure.index, last))
        op = self.ops[failure.index]
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
        if any(self._saved.values()):
            saved = ", ".join(f"{name} {count}" for name, count in self._saved.items() if count)
            lines.append(f"  instructions saved by passes: {saved}")
        for at, (each, native) in enumerate(zip(self.instructions, self.is_native, strict=True)):
            lines.append(f"  {each.describe()}; {'native' if native else 'reference'}")
            for body in self._loops[at].bodies if at in self._loops else ():
                lines += [f"    {line}" for line in body.describe().splitlines()]
        return "\n".join(lines)

    def _array(self, name: str) -> np.ndarray:
        """The elements of a variable, whatever memory it lives in; valid for this step."""
        if self._generation != self.engine.generation:
            self._views.clear()
            self._generation = self.engine.generation
        found = self._views.get(name)
        if found is None:
            slot, dtype = self._slots[self._root(name)], to_numpy(self.meta.dtypes[name])
            found = self.engine.array(slot, dtype, self._shapes[name])
            if self._root(name) not in self._fed and not self.meta.finding:
                self._views[name] = found
        return found
