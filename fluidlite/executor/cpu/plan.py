"""`Plan`: compiled operators for the CPU, valid for all sizes that its guards admit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby

import numpy as np

from ..._ext import engine
from ...base.reports import profiling
from ...base.sizes import current
from ...ops.native import native_error
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import Call, OpDef
from .. import failures
from ..control_flow.array_ops import MAY_MISS
from ..failures import GuardFailure
from ..ir import jumps
from ..ir.request import Request
from ..ir.step_plan import StepPlan
from ..lod_tensor import LoDTensor
from .assembly import Assembly
from .code import Code, is_call

RELEASE_FROM = 1 << 18
"""Bytes of temporaries from which a plan releases the GIL."""


class Plan(StepPlan):
    """Runs the code of an assembled engine; temporaries share one arena.

    Args:
        changed_early: persistable variables to restore if a guard fails; None if a step cannot be rolled back.
        ends_early: whether the code ends after a data-dependent size, for a recompilation with its value.
    """

    def __init__(
        self,
        request: Request,
        code: Code,
        assembly: Assembly,
        changed_early: list[str] | None,
        ends_early: bool,
    ) -> None:
        super().__init__(request, code.meta)
        self.instructions, self.engine = code.instructions, assembly.engine
        self.ops = [each.op for each in code.instructions]
        self.is_native = [isinstance(each.action, (Call, OpDef)) for each in code.instructions]
        self.code, self.assembly = code, assembly
        self._changed_early, self._rolls_back = changed_early or [], changed_early is not None
        self._ends_early = ends_early
        self._written: dict[str, np.ndarray] = {}
        self._changed = code.persistable_results(code.instructions)
        self._bind_first()
        self.fetched, self.levels = code.fetches, code.levels
        self.has_levels = any(self.levels)
        fetched, early = [assembly.entry(name) for name in code.fetches], request.early or 0
        self._first = fetched[:early]
        self.engine.set_fetches(fetched[early:])
        self._late = [
            (name, *assembly.entry(name)) for name, like in request.late.items() if code.meta.has(like)
        ]
        if request.body is None:  # a scan binds the feeds of its bodies
            entries = [assembly.entry(name) for name in self.feed_names]
            # The signature of `accepts`; the last arrays are writable.
            self.engine.set_signature(entries, range(len(entries) - self.followed, len(entries)))
        self._rank_sizes = [assembly.size(size) for size in code.ranked.sizes]

    def bind_scope(self) -> bool:
        """Bind the current arrays of the scope's variables."""
        tensors = self._tensors()
        if tensors is None:
            return False
        for name, tensor in tensors.items():
            if type(tensor.array) is not np.ndarray:
                tensor.on(None)
            self.engine.bind(self.assembly.slot(name), tensor.own())
        self.code.buffers.forget()
        self._written = {name: tensors[name].array for name in tensors if name in self._changed}
        self.engine.set_written([*self._written.values()])
        return True

    def accepts(self, arrays: list[np.ndarray]) -> bool:
        """Bind the arrays of the feeds, with copies of those that share memory with variables that the plan writes."""
        if self.assembly.loops or self.code.ranked.names:
            return self._accepts_ranked(arrays)
        return self._accepts(arrays)

    def _accepts_ranked(self, arrays: list[np.ndarray]) -> bool:
        """`accepts` for plans that sort sequences by length or have scans."""
        # Scans have no spans for the operators of their bodies, which profiles show.
        if len(arrays) != len(self.feed_names) or profiling.active is not None:
            return self.engine.bind_arrays(())
        measured = self.code.ranked.measured(arrays)
        if measured is None or not all(map(self._is_size, self._rank_sizes, measured[0])):
            return self.engine.bind_arrays(())
        if not self._accepts(arrays):
            return False
        for name, array in zip(self.code.ranked.names, measured[1], strict=True):
            self.engine.bind(self.assembly.slot(name), array)
        return self.engine.loops_fit() or self.engine.bind_arrays(())

    def _is_size(self, wanted: tuple[int, int], found: int) -> bool:
        """Set the register of a size to `found`; False if the size is another constant, or less than 2."""
        register, number = wanted
        if register < 0:
            return number == found
        if found >= 2:
            self.engine.set_root(register, found)
        return found >= 2

    def _accepts(self, arrays: list[np.ndarray]) -> bool:
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

    def release_gil(self, release: bool) -> None:
        self.engine.release_gil = release

    def run(self, begin: int = 0, end: int = -1) -> None:
        """Run one step, or its instructions from `begin` to `end`, on what is bound.

        Errors name the operator and the user's line. Raises GuardFailure, after a rollback of persistable variables, if
        a guard fails.
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
            problem: Exception = GuardFailure(
                "the plan ends at a data-dependent size", sizes=self._sizes_until(len(self.ops))
            )
        except engine.KernelFailure as failure:
            problem = self.failed(failure)
        for array, copy in before if isinstance(problem, GuardFailure) else ():
            np.copyto(array, copy)
        raise problem

    def failed(self, failure: engine.KernelFailure, rolls_back: bool | None = None) -> Exception:
        """The exception for a failure of a native instruction. `rolls_back`: whether the step can be rolled back."""
        rolls_back = self._rolls_back if rolls_back is None else rolls_back
        if failure.turn is not None:
            number, index, inner = failure.turn
            bodies = self.assembly.loops[failure.index].bodies
            if number < len(bodies):
                is_local = engine.KernelFailure(index, failure.code, failure.err, inner)
                return bodies[number].plan.failed(is_local, rolls_back)  # type: ignore[no-any-return]
        if failure.code == engine.UNFIT:
            last = failure.err if is_call(self.instructions[failure.index], RESOLVE_SIZES) else None
            return GuardFailure("other data-dependent sizes", sizes=self._sizes_until(failure.index, last))
        op = self.ops[failure.index]
        if op.definition is jumps.ASSERT_DEFINED:
            name = op.inputs["X"][0].partition(jumps.UNDEFINED)[0]
            reason = f"variable {name!r} has no value where a branch is not taken"
            return GuardFailure(reason) if rolls_back else failures.in_operator(op, ValueError(reason))
        if op.definition in MAY_MISS and failure.code == engine.OUT_OF_RANGE:
            if rolls_back:
                return GuardFailure("a tensor array has no element of the planned type at an index")
            number, _, count = failure.err[:3]
            reason = f"the tensor array has {count} elements, and none that fits at index {number}"
            return failures.in_operator(op, ValueError(reason))
        inputs = {slot: f" {names}" for slot, names in op.inputs.items() if names}
        return failures.in_operator(op, native_error(op.type, inputs, failure.code, failure.err))

    def _sizes_until(self, at: int, last: Sequence[int] | None = None) -> dict[str, int]:
        """The data-dependent sizes resolved up to an instruction, by label; `last`: its own, if they failed a guard."""
        resolved: dict[str, int] = {}
        registers = self.assembly.registers
        actions = (each.action for each in self.instructions[: at + 1])
        calls = [action for action in actions if isinstance(action, Call) and action.kernel == RESOLVE_SIZES]
        for labels, action in zip(self.meta.size_labels, calls, strict=False):
            sizes = [registers.values.get(registers.integer(n)) for n in action.ints[1::2]]
            resolved.update(
                zip(labels, last if last is not None and action is calls[-1] else sizes, strict=False)
            )
        return resolved

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
        """Each operator, or fused ones, with its first and last instruction."""
        runs: list[tuple[str, int, int]] = []
        for _, run in groupby(enumerate(self.instructions), key=lambda item: item[1].ops):
            found = list(run)
            runs.append((found[0][1].name, found[0][0], found[-1][0]))
        return runs

    def fetch(self) -> list[np.ndarray]:
        return self.engine.fetch_all()

    def height(self, name: str) -> int:
        """The number of rows of the table of SelectedRows."""
        return current(self.meta.shapes[name][0])

    def fetch_tensors(self) -> list[LoDTensor]:
        found = self.fetch()
        offsets = iter(found[len(self.levels) :])
        return [
            LoDTensor.wrap(array, tuple([next(offsets) for _ in levels]))
            for array, levels in zip(found, self.levels, strict=False)
        ]

    def run_first(self) -> list[np.ndarray]:
        self.release_gil(self.engine.arena_bytes >= RELEASE_FROM)
        self.run(0, self.code.cut)
        return [self.engine.fetch(slot, shape, dtype) for slot, dtype, shape in self._first]

    def run_second(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """See `StepPlan`; the arrays have the sizes of the first half.

        Raises ValueError for an array of another shape or dtype.
        """
        engine = self.engine
        for (name, slot, dtype, shape), array in zip(self._late, arrays, strict=True):
            wanted = tuple([n if n >= 0 else engine.sizes.get(-1 - n) for n in shape])
            if array.shape != wanted or array.dtype != dtype:
                raise ValueError(
                    f"variable {name!r} is {dtype} {list(wanted)} after this forward pass, got an array of "
                    f"{array.dtype} {list(array.shape)}"
                )
            engine.bind(slot, array)
        if self.code.cut < len(self.ops):
            self.run(self.code.cut)
        return engine.fetch_all()

    def snapshot(self) -> np.ndarray:
        return self.engine.arena.copy()

    def restore(self, snapshot: np.ndarray) -> None:
        np.copyto(self.engine.arena, snapshot)

    def describe(self) -> str:
        count = f"{len(self.ops)} instruction{'s' if len(self.ops) != 1 else ''}"
        lines = [f"{count} on the CPU for {self._for_feeds()}"]
        if self.meta.sizes.guards:
            lines.append(f"  where {', '.join(map(str, self.meta.sizes.guards.values()))}")
        if any(count > 0 for count in self.code.saved.values()):
            saved = ", ".join(f"{name} {count}" for name, count in self.code.saved.items() if count > 0)
            lines.append(f"  instructions saved by passes: {saved}")
        lines += [f"  {note}" for note in self.code.notes]
        loops = self.assembly.loops
        for at, (each, native) in enumerate(zip(self.instructions, self.is_native, strict=True)):
            lines.append(f"  {each.describe()}; {'native' if native else 'reference'}")
            for body in loops[at].bodies if at in loops else ():
                lines += [f"    {line}" for line in body.describe().splitlines()]
        return "\n".join(lines)
