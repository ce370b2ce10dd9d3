"""One step of a program, and who runs it: a plan of all of it, plans of its pieces, or nobody but its operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ...backend import to_host
from ...backend.cupy_ import faults
from ...base import flags
from ...base.dtypes import VarType
from ...base.errors import EnforceNotMet
from ...base.one_element import convertible
from ...base.reports import profiling
from ...base.selected_rows import SelectedRows
from ...distributed import begin_step, is_parallel
from ...framework import Operator, Program
from ...framework.gradients.exchange import in_messages
from ...ops.registry import GRAD
from .. import failures
from ..blocks.pieces import Blocks
from ..host.plan import Plan
from ..host.two_phase import TwoPhasePlan
from ..plan.refusals import CannotPlan, Missed, Unfound
from ..plan.shapes import takes_no_part
from ..plan.step_plan import StepPlan, TwoPhases
from ..reading import readers
from ..tensors.lod_tensor import LoDTensorArray
from ..tensors.scope import Scope
from .driver import Driver
from .feeding import Feed, as_feed, expanded, placed
from .interpret import Interpreter
from .program_run import ProgramRun
from .startup import gives_first_values, run_once

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_VALUES = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)

PLANS_KEPT = 32
"""How many plans one program keeps for one set of feeds and fetches."""

TRIES = 4
"""How many plans are made in a step, until one is for the sizes that the step finds."""

LUCK = 8
"""In how many steps plans are made for sizes that these find, besides one for each step that another plan was for."""


class PlanCache:
    """The plans of one program, set of feeds and set of fetches, the one used last in front."""

    __slots__ = (
        "blocks",
        "fed",
        "luck",
        "plans",
        "program",
        "refused",
        "runs",
        "sizes",
        "started",
        "watched",
    )

    def __init__(self, program: Program, fed: Mapping[str, bool], watched: bool = False) -> None:
        self.program = program  # what is run in the place of the program
        self.fed = fed  # feeds that are persistable, and whether the program changes them
        self.watched = watched  # whether results with NaN or infinities are refused
        self.plans: list[StepPlan] = []
        self.blocks: Blocks | None = None  # where the program is run in pieces
        self.refused: str | None = None
        self.started = ""  # how the first values of variables were given
        self.runs = 0
        self.sizes: dict[str, int] | None = None  # what was found last, where steps find sizes
        self.luck = LUCK

    def add(self, plan: StepPlan) -> None:
        self.plans = [plan, *self.plans[: PLANS_KEPT - 1]]

    def missed(self, missed: Missed) -> None:
        """Note what a plan is not for."""
        self.sizes = {**(self.sizes or {}), **(missed.sizes or {})}

    def used(self, plan: StepPlan) -> None:
        """Put a plan in front."""
        if self.plans[:1] != [plan]:
            self.plans = [plan, *(kept for kept in self.plans if kept is not plan)]

    def drop(self, plan: StepPlan) -> None:
        """Let a plan go that found no memory, and the memory that it has got."""
        self.plans = [kept for kept in self.plans if kept is not plan]


def planned(
    program: Program,
    scope: Scope,
    feed: Mapping[str, Any],
    fetches: Sequence[str],
    device: CudaDevice | None,
    fixed: bool = False,
    sizes: Mapping[str, int] | None = None,
    watched: bool = False,
) -> StepPlan:
    """A plan of the whole program for feeds like `feed`; `device`: the GPU, None for the host.

    `fixed`: whether feeds are of just these shapes, and are used where they are, so that no CUDA graph can be made.
    `sizes`: what sizes have been found to be that steps find; None if they should not. `watched`: whether results with
    NaN or infinities are refused, on the host.
    Raises CannotPlan when the program cannot be one plan, EnforceNotMet when something it reads has no value.
    """
    if device is None:
        return Plan(program, scope, feed, fetches, varying=not fixed, finds=sizes, watched=watched)
    from ..device.plan import DevicePlan

    return DevicePlan(program, scope, feed, fetches, device, capture=not fixed)


def two_phase_plan(device: CudaDevice | None, watched: bool) -> Callable[..., TwoPhases]:
    """What makes plans whose backward operators run later; it takes the other arguments of `TwoPhasePlan`."""
    if device is None:
        return partial(TwoPhasePlan, watched=watched)
    from ..device.two_phase import DeviceTwoPhasePlan

    return partial(DeviceTwoPhasePlan, device=device)


def run_program(
    program: Program,
    feed: Mapping[str, Any],
    names: tuple[str, ...],
    scope: Scope,
    return_numpy: bool,
    device: CudaDevice | None = None,
    watched: bool = True,
) -> list[Any]:
    """One step of a program on one device (None: the host); `watched`: whether it heeds FLAGS_check_nan_inf."""
    begin_step()
    if program._has_readers():
        feed = readers.add_to(feed, program, device)
    watched = watched and flags.checks_finite()
    cache = _cache(program, scope, (tuple(feed), names), device, watched)
    cache.runs += 1
    program = cache.program
    if cache.fed:
        feed = _kept(program, feed, cache.fed, scope)
    plan = cache.plans[0] if cache.plans else None
    if plan is not None and plan.lock.acquire(blocking=False):
        try:
            if plan.ready(program) and plan.accepts_raw(feed):
                return _finish(plan, return_numpy)
        except Missed as missed:
            cache.missed(missed)
        except MemoryError:
            cache.drop(plan)
            raise
        finally:
            plan.lock.release()
    try:
        return _run_checked(program, as_feed(program, feed), names, scope, return_numpy, cache, device)
    except failures.NotFed as error:
        raise error.among(feed) from None


def run_before_reading(
    program: Program, feed: Mapping[str, Any], scope: Scope, device: CudaDevice | None
) -> None:
    """Run what stands before the reading of a batch that has not come: schedules count the end of an epoch too."""
    ops = program.global_block().ops
    first = next(k for k, op in enumerate(ops) if op.type == "read")
    before = [op for op in ops[:first] if not takes_no_part(op)]
    if before:
        run_each(program, scope, as_feed(program, feed), before, device)


def run_each(
    program: Program, scope: Scope, feed: Feed, ops: Sequence[Operator], device: CudaDevice | None
) -> ProgramRun:
    """Run operators of the global block on their own, once; plans would take longer to make."""
    watched = flags.checks_finite()
    if device is not None or flags.engine() != "plan":
        run = Interpreter(program, scope, feed, device, watched)
        run.run(ops)
        return run
    pieces = Driver(Blocks(program, (), watched=watched), scope, feed)
    pieces.run_each(ops)
    return pieces


def _run_checked(
    program: Program,
    checked: Feed,
    names: tuple[str, ...],
    scope: Scope,
    return_numpy: bool,
    cache: PlanCache,
    device: CudaDevice | None,
) -> list[Any]:
    first = not checked and cache.runs == 1
    watched = cache.watched
    if flags.engine() != "plan" or (device is not None and (first or watched)):
        return _finished(Interpreter(program, scope, checked, device, watched), names, return_numpy)
    if first and gives_first_values(program, scope):
        run, cache.started = run_once(program, scope, names, watched)
        return [] if run is None else _fetched(run, names, return_numpy)
    if cache.refused is None or cache.plans:
        arrays = expanded(checked if device is not None else placed(checked, None))
        found = _run_planned(program, arrays, return_numpy, cache)
        if found is not None:
            cache.luck = min(cache.luck + 1, LUCK)
            return found
        if cache.refused is None and cache.luck:
            found = _run_new_plan(program, scope, arrays, names, return_numpy, cache, device)
        if found is not None:
            return found
    if device is not None:
        return _finished(Interpreter(program, scope, checked, device), names, return_numpy)
    if cache.blocks is None:
        cache.blocks = Blocks(program, names, watched=watched)
    run = Driver(cache.blocks, scope, checked)
    found = _finished(run, names, return_numpy)
    if cache.sizes is not None and cache.refused is None and cache.luck:
        cache.sizes.update(run.sizes_found())
        _plan(cache, scope, arrays, names, device)
    return found


def _run_new_plan(
    program: Program,
    scope: Scope,
    arrays: Mapping[str, Any],
    names: Sequence[str],
    return_numpy: bool,
    cache: PlanCache,
    device: CudaDevice | None,
) -> list[Any] | None:
    """One step by a plan that is made for it; None if there is none. Where a plan finds other sizes than it is for, or
    ends there, another is made with these.
    """
    for turn in range(TRIES):
        sizes = None if cache.sizes is None else dict(cache.sizes)
        plan = _plan(cache, scope, arrays, names, device, True)
        if (cache.sizes is not None or plan is None) and not turn and profiling.active is None:
            cache.luck -= 1
        if plan is None:
            return None
        found = _run_planned(program, arrays, return_numpy, cache)
        if found is not None:
            return found
        if cache.sizes is not None:
            cache.drop(plan)
        if cache.sizes == sizes:
            return None
    return None


def _plan(
    cache: PlanCache,
    scope: Scope,
    arrays: Mapping[str, Any],
    names: Sequence[str],
    device: CudaDevice | None,
    guessed: bool = False,
) -> StepPlan | None:
    """A plan of the whole program for feeds like `arrays`, None if there is none; `guessed`: sizes may be others."""
    try:
        cache.add(planned(cache.program, scope, arrays, names, device, False, cache.sizes, cache.watched))
        return cache.plans[0]
    except CannotPlan as reason:
        if isinstance(reason, Unfound) and device is None and cache.sizes is None:
            cache.sizes = {}
            return _plan(cache, scope, arrays, names, device, guessed)
        # A first run may initialise what a second one can be planned with; profiles want no loops in plans.
        if not reason.passing and (cache.sizes is None or not guessed):
            cache.refused = str(reason) if cache.runs > 2 and profiling.active is None else None
    except EnforceNotMet:
        if cache.sizes is None:
            raise
        # Of sizes that were guessed: what is wrong with those of a step, its operators have told.
    return None


def _run_planned(
    program: Program, arrays: Mapping[str, Any], return_numpy: bool, cache: PlanCache
) -> list[Any] | None:
    """One step by the first plan that takes these arrays; None if there is none."""
    for plan in cache.plans:
        with plan.lock:
            if (
                plan.feed_names != list(arrays)
                or not plan.ready(program)
                or not plan.accepts(list(arrays.values()))
            ):
                continue
            cache.used(plan)
            try:
                return _finish(plan, return_numpy)
            except Missed as missed:
                cache.missed(missed)
            except MemoryError:
                cache.drop(plan)
                raise
    return None


def _cache(
    program: Program, scope: Scope, key: Any, device: CudaDevice | None = None, watched: bool = False
) -> PlanCache:
    by_scope: WeakKeyDictionary[Scope, dict[Any, PlanCache]] = program._plans
    caches = by_scope.get(scope)
    if caches is None:
        caches = by_scope[scope] = {}
    feeds, _ = key
    key = (program._version, key, device, watched)
    cache = caches.get(key)
    if cache is None:
        for stale in [k for k in caches if k[0] != program._version]:
            del caches[stale]
        kept = [v.name for v in program.global_block().vars.values() if v.persistable and v.type in _VALUES]
        cache = caches[key] = PlanCache(
            _in_messages(program, caches) if is_parallel() else program,
            {name: _changes(program, name) for name in feeds if name in kept},
            watched,
        )
        # In Fluid a run makes them all, also those that no operator writes: scripts set these by hand.
        for name in kept:
            if scope.find_var(name) is None:
                scope.var(name)
    return cache


def _in_messages(program: Program, caches: dict[Any, PlanCache]) -> Program:
    """The program for several processes; one for all feeds and fetches."""
    return next((cache.program for cache in caches.values()), None) or in_messages(program)


def _changes(program: Program, name: str) -> bool:
    ops = (op for block in program.blocks for op in block.ops)
    return any(name in op.output_arg_names and op.type != "read" for op in ops)


def _kept(
    program: Program, feed: Mapping[str, Any], changed: Mapping[str, bool], scope: Scope
) -> dict[str, Any]:
    """Put what is fed as persistable variables into the scope, as Fluid does; the feed without those that change."""
    for name, (value, lod) in as_feed(program, {name: feed[name] for name in changed}).items():
        if type(value) is SelectedRows:
            continue
        tensor = scope.var(name).get_tensor()
        tensor.set(value)
        tensor.hold_lod(lod)
    return {name: value for name, value in feed.items() if not changed.get(name)}


def _finish(plan: StepPlan, return_numpy: bool) -> list[Any]:
    plan.run()
    recorder = profiling.active
    if return_numpy and not plan.has_levels:
        arrays = plan.fetch() if recorder is None else recorder.timed("fetch", plan.fetch)
        return [convertible(array) for array in arrays]
    tensors = plan.fetch_tensors() if recorder is None else recorder.timed("fetch", plan.fetch_tensors)
    return as_results(tensors, plan.fetched, return_numpy)


def _finished(run: ProgramRun, names: tuple[str, ...], return_numpy: bool) -> list[Any]:
    """Carry out a run that is no single plan, and fetch."""
    run.run()
    return _fetched(run, names, return_numpy)


def _fetched(run: ProgramRun, names: tuple[str, ...], return_numpy: bool) -> list[Any]:
    """Fetch from a run that is no single plan."""
    recorder = profiling.active
    values = [
        run.fetch(n) if recorder is None else recorder.timed("fetch", partial(run.fetch, n)) for n in names
    ]
    results = as_results(values, names, return_numpy)
    if run.device is not None and results and return_numpy:
        faults.raise_pending(run.device)
    return results


def describe(program: Program, scope: Scope) -> str:
    """How a program has been run in a scope; see `Executor.describe`."""
    if not isinstance(program, Program):
        raise TypeError(f"describe takes a Program, got {type(program).__name__}")
    parts = []
    for (version, (feeds, fetches), *_), cache in (program._plans.get(scope) or {}).items():
        if version != program._version:
            continue
        parts.append(f"fed {list(feeds)}, fetched {list(fetches)}: {cache.runs} steps")
        parts += [cache.started] if cache.started else []
        parts += [plan.describe() for plan in cache.plans]
        if cache.blocks is not None:
            reason = "it may become one plan" if not cache.plans else "steps that none of these plans is for"
            parts.append(f"run in pieces: {cache.refused or reason}")
            parts.append(cache.blocks.describe())
        elif not cache.plans and not cache.started:
            parts.append(f"run by the interpreter: {cache.refused or 'it has run once'}")
    return "\n".join(parts) or "this program has not run in this scope"


def as_results(values: list[Any], names: Sequence[str], return_numpy: bool) -> list[Any]:
    """What `run` returns: arrays, or tensors; lists of them for tensor arrays. RuntimeError for sequences as arrays.

    Not for those of gradients: in Fluid many have none.
    """
    if not return_numpy:
        return values
    return [_as_result(value, GRAD in name) for value, name in zip(values, names, strict=False)]


def _as_result(value: Any, plain: bool) -> Any:
    if isinstance(value, LoDTensorArray):
        return [None if tensor.array is None else _as_result(tensor, plain) for tensor in value]
    if value.offsets and not plain:
        raise RuntimeError(
            "Some of your fetched tensors hold LoD information. They can not be completely cast to Python ndarray. "
            "Please set the parameter 'return_numpy' as 'False' to return LoDTensor itself directly."
        )
    return convertible(np.asarray(to_host(value.array)))
