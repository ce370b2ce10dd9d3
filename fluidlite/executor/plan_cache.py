"""`PlanCache`: runs a program for one set of feeds and fetches, by cached plans, segments, or the interpreter.

The results of a step are arrays or tensors, as `run_and_fetch`, `fetches_of` and `as_results` make them. Startup
programs and single operators, which most likely run once, get no plan (`run_once`): compiling one would take longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backend import to_host
from ..backend.cupy_ import faults
from ..base import flags
from ..base.arrays import convertible
from ..base.reports import profiling
from ..framework import Operator, Program
from ..ops.registry import GRAD
from .compile import compile_plan
from .failures import DataDependentShape, GuardFailure, Unsupported
from .feeding import Feed, as_feed, expanded, placed
from .interpreter.interpreter import Interpreter
from .interpreter.segmented import SegmentedExecutor
from .interpreter.segments import ProgramSegments
from .ir.request import Request
from .ir.step_plan import StepPlan
from .lod_tensor import LoDTensor, LoDTensorArray
from .scope import Scope

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice


PLANS_KEPT = 32
"""The number of cached plans for one set of feeds and fetches."""


class PlanCache:
    """The plans of one program for one set of feed names and fetches, the most recently used first.

    Args:
        program: the program to run, or its version for several processes.
        names: the fetches.
        device: the GPU; None for the host.
        check_finite: whether results with NaN or infinities are refused.
        fed: the feeds that are persistable variables, each with whether the program writes it.
    """

    def __init__(
        self,
        program: Program,
        names: tuple[str, ...],
        device: CudaDevice | None,
        check_finite: bool,
        fed: Mapping[str, bool],
    ) -> None:
        self.program, self.fed = program, fed
        self._names, self._device, self._check_finite = names, device, check_finite
        self.plans: list[StepPlan] = []
        self.runs = 0
        self._blocks: ProgramSegments | None = None  # for steps that no plan can run
        self._refused: str | None = None
        self._started = ""  # the description of the first step, if it initialised variables

    def run(self, feed: Mapping[str, Any], scope: Scope, return_numpy: bool) -> list[Any]:
        """Run one step on a user's feed; returns the fetched values."""
        self.runs += 1
        plan = self.plans[0] if self.plans and not flags.interprets else None
        if plan is not None and plan.lock.acquire(blocking=False):
            try:
                if plan.ready(self.program) and plan.accepts_raw(feed):
                    return run_and_fetch(plan, return_numpy)
            except GuardFailure:
                pass  # segments name what is missing
            except MemoryError:
                self._drop(plan)  # which frees its memory
                raise
            finally:
                plan.lock.release()
        return self._run_checked(as_feed(self.program, feed), scope, return_numpy)

    def _run_checked(self, feed: Feed, scope: Scope, return_numpy: bool) -> list[Any]:
        on_host, first = self._device is None, not feed and self.runs == 1
        if flags.engine() != "plan" or (not on_host and (first or self._check_finite)):
            return self._interpreted(feed, scope, return_numpy)
        if first and initialises(self.program, scope):
            return self._initialise(scope, return_numpy)
        if self._refused is None or self.plans:
            arrays = expanded(placed(feed, None) if on_host else feed)
            found = self._planned(arrays, return_numpy)
            if found is None and self._refused is None and self._plan(arrays, scope):
                found = self._planned(arrays, return_numpy)
            if found is not None:
                return found
        if not on_host:
            return self._interpreted(feed, scope, return_numpy)
        if self._blocks is None:
            self._blocks = ProgramSegments(self.program, self._names, check_finite=self._check_finite)
        run = SegmentedExecutor(self._blocks, scope, feed)
        run.run()
        return fetches_of(run, self._names, return_numpy)

    def _initialise(self, scope: Scope, return_numpy: bool) -> list[Any]:
        """Run a startup program without a plan."""
        run = run_once(self.program, scope, fetches=self._names, check_finite=self._check_finite)
        counts = Counter(op.type for op in self.program.global_block().ops)
        self._started = f"without a plan: {', '.join(f'{count} {kind}' for kind, count in counts.items())}"
        return fetches_of(run, self._names, return_numpy)

    def _interpreted(self, feed: Feed, scope: Scope, return_numpy: bool) -> list[Any]:
        run = Interpreter(self.program, scope, feed, self._device, self._check_finite)
        run.run()
        return fetches_of(run, self._names, return_numpy)

    def _planned(self, arrays: Mapping[str, Any], return_numpy: bool) -> list[Any] | None:
        """Run one step by the first cached plan that accepts these arrays; None if there is none."""
        for plan in self.plans:
            if plan.feed_names != list(arrays):
                continue
            if not plan.lock.acquire():
                continue
            try:
                if not plan.ready(self.program) or not plan.accepts(list(arrays.values())):
                    continue
                found = run_and_fetch(plan, return_numpy)
            except GuardFailure:
                continue
            except MemoryError:
                self._drop(plan)
                raise
            finally:
                plan.lock.release()
            if self.plans[0] is not plan:
                self.plans = [plan, *(kept for kept in self.plans if kept is not plan)]
            return found
        return None

    def _plan(self, arrays: Mapping[str, Any], scope: Scope) -> bool:
        """Compile the program for feeds like `arrays`; False if that fails."""
        request = Request(self.program, scope, arrays, self._names, device=self._device)
        if self._device is None:
            request = replace(request, check_finite=self._check_finite)
        try:
            self.plans = [compile_plan(request), *self.plans[: PLANS_KEPT - 1]]
            return True
        except Unsupported as reason:
            # The first runs may initialise variables that later plans need. Under a profiler, refusals are not kept.
            lasts = self.runs > 2 or isinstance(reason, DataDependentShape)
            if lasts and not reason.retryable and profiling.active is None:
                self._refused = str(reason)
            return False

    def _drop(self, plan: StepPlan) -> None:
        self.plans = [kept for kept in self.plans if kept is not plan]

    def describe(self) -> list[str]:
        """How the program has run, for `Executor.describe`."""
        lines = [self._started] if self._started else []
        lines += [plan.describe() for plan in self.plans]
        if self._blocks is not None:
            reason = "no cached plan accepts some steps" if self.plans else "it may become one plan"
            lines += [f"run in segments: {self._refused or reason}", self._blocks.describe()]
        elif not lines:
            lines.append(f"run by the interpreter: {self._refused or 'it has run once'}")
        return lines


def run_and_fetch(plan: StepPlan, return_numpy: bool) -> list[Any]:
    """Run a plan with bound feeds; returns its fetches."""
    plan.run()
    recorder = profiling.active
    if return_numpy and not plan.has_levels:
        arrays = plan.fetch() if recorder is None else recorder.timed("fetch", plan.fetch)
        return [convertible(array) for array in arrays]
    tensors = plan.fetch_tensors() if recorder is None else recorder.timed("fetch", plan.fetch_tensors)
    return as_results(tensors, plan.fetched, return_numpy)


def fetches_of(run: Interpreter, names: tuple[str, ...], return_numpy: bool) -> list[Any]:
    """The fetches of a completed run of an interpreter."""
    recorder = profiling.active
    values = [
        run.fetch(n) if recorder is None else recorder.timed("fetch", partial(run.fetch, n)) for n in names
    ]
    results = as_results(values, names, return_numpy)
    if run.device is not None and results and return_numpy:
        faults.raise_pending(run.device)
    return results


def as_results(values: list[Any], names: Sequence[str], return_numpy: bool) -> list[Any]:
    """The values as `run` returns them: arrays, None for unset tensors, or tensors; lists of these for tensor arrays.

    Raises RuntimeError for sequences as arrays, except for gradients, many of which have no LoD in Fluid.
    """
    if not return_numpy:
        return values
    return [_as_result(value, GRAD in name) for value, name in zip(values, names, strict=False)]


def or_empty(value: Any) -> Any:
    """A fetched value as compiled programs merge it over places: an empty array in the place of none, as in Fluid."""
    if value is None:
        return np.empty(0, np.float32)
    if isinstance(value, LoDTensor) and value.array is None:
        return LoDTensor.wrap(np.empty(0, np.float32))
    return value


def _as_result(value: Any, plain: bool) -> Any:
    if isinstance(value, LoDTensorArray):
        return [_as_result(tensor, plain) for tensor in value]
    if value.array is None:
        return None
    if value.offsets and not plain:
        raise RuntimeError(
            "Some of your fetched tensors hold LoD information. They can not be completely cast to Python ndarray. "
            "Please set the parameter 'return_numpy' as 'False' to return LoDTensor itself directly."
        )
    return convertible(np.asarray(to_host(value.array)))


def initialises(program: Program, scope: Scope) -> bool:
    """True if a program initialises persistable variables."""
    block = program.global_block()
    for op in block.ops:
        for name in filter(block._is_persistable, op.output_arg_names):
            held = scope.find_var(name)
            if held is None or not held.is_set() or _without_inputs(op):
                return True
    return False


def _without_inputs(op: Operator) -> bool:
    """True if the results of an operator depend on its attributes alone."""
    definition = op.definition
    acts = definition.effects.control or definition.effects.host or definition.effects.updates
    return not (acts or definition.kernel is None or any(op.inputs.values()))


def run_once(
    program: Program,
    scope: Scope,
    ops: Iterable[Operator] | None = None,
    feed: Feed | None = None,
    fetches: Sequence[str] = (),
    device: CudaDevice | None = None,
    check_finite: bool = False,
) -> Interpreter:
    """Run operators of the global block, by default all, one by one; their sub-blocks run in segments."""
    if device is None and flags.engine() == "plan":
        run: Interpreter = SegmentedExecutor(
            ProgramSegments(program, fetches, check_finite=check_finite), scope, feed or {}
        )
    else:
        run = Interpreter(program, scope, feed or {}, device, check_finite)
    run.run_each(program.global_block().ops if ops is None else ops)
    return run
