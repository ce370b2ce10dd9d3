"""`Executor`: runs programs (`fluid.Executor`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ..backend import device_at, to_host
from ..backend.cupy_ import faults
from ..base import flags, profiling
from ..base.errors import EOFException
from ..base.one_element import convertible
from ..base.place import Place
from ..framework import Operator, Program, Variable, default_main_program, mode
from ..ops.registry import GRAD
from . import failures, readers
from .driver import Driver
from .feeding import Feed, as_feed, expanded, placed, unshared
from .from_dataset import FetchHandler, Step, run_over
from .interpret import Interpreter
from .lod_tensor import LoDTensorArray
from .pieces import Blocks
from .plan import Plan
from .planning import CannotPlan
from .scope import Scope, global_scope

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice
    from .device.plan import DevicePlan

PLANS_KEPT = 32
"""How many plans one program keeps for one set of feeds and fetches."""


class PlanCache:
    """The plans of one program, set of feeds and set of fetches, the one used last in front."""

    __slots__ = ("blocks", "plans", "refused", "runs")

    def __init__(self) -> None:
        self.plans: list[Plan | DevicePlan] = []
        self.blocks: Blocks | None = None  # where the program is run in pieces
        self.refused: str | None = None
        self.runs = 0

    def add(self, plan: Plan | DevicePlan) -> None:
        self.plans = [plan, *self.plans[: PLANS_KEPT - 1]]

    def used(self, plan: Plan | DevicePlan) -> None:
        """Put a plan in front."""
        if self.plans[:1] != [plan]:
            self.plans = [plan, *(kept for kept in self.plans if kept is not plan)]

    def drop(self, plan: Plan | DevicePlan) -> None:
        """Let a plan go that found no memory, and the memory that it has got."""
        self.plans = [kept for kept in self.plans if kept is not plan]


class Executor:
    """Runs programs on a place; `run` does one step.

    `place`: a `CPUPlace` or `CUDAPlace`; by default where eager tensors are made, which is the CPU unless the script or
    `--device gpu` says otherwise. Raises TypeError for anything else.
    """

    def __init__(self, place: Place | None = None) -> None:
        if place is not None and not isinstance(place, Place):
            raise TypeError(f"Executor takes a fluid.CPUPlace or fluid.CUDAPlace, got {place!r}")
        self.place: Place = place if place is not None else mode._current_expected_place()
        self._device = device_at(self.place)
        self._closed = False
        self._copies: WeakKeyDictionary[Program, tuple[Any, list[Program]]] = WeakKeyDictionary()

    def close(self) -> None:
        """Wait for what has been given to a GPU, and refuse to run anything from now on.

        Raises OperatorError if a step that nobody has waited for met a label or an id that is out of range.
        """
        device, closed, self._closed = self._device, self._closed, True
        if device is not None and not closed:
            device.synchronize()
            faults.raise_pending(device)

    def describe(self, program: Any = None, scope: Scope | None = None) -> str:
        """How a program has been run so far, by any executor.

        Args:
            program: a Program or CompiledProgram; the default main program if None.
            scope: where its parameters live; the global scope if None.

        Returns:
            Text: for each combination of feeds and fetches how many steps there were, and for each of their shapes the
            plan. On the CPU that is the instructions of a step; on a GPU its launches, and whether they are one CUDA
            graph or why not. Where the interpreter runs the program: why.

        Raises:
            TypeError: `program` is no program.

        Fluid has nothing like it.
        """
        program = getattr(program, "_program", program)
        return describe(
            default_main_program() if program is None else program, global_scope() if scope is None else scope
        )

    def run(
        self,
        program: Any = None,
        feed: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        fetch_list: Any = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        return_merged: bool = True,
        use_prune: bool = False,
    ) -> list[Any]:
        """Run one step of `program` (the default main program if None) and return the values of `fetch_list`.

        `feed`: variable name -> array or LoDTensor; a list of such dicts for several devices. `fetch_list`:
        Variables or names. `scope`: where parameters live (the global scope if None). `return_numpy=False` returns
        LoDTensors.
        `use_prune` runs only what the fetches need. `return_merged=False` keeps the values of several devices apart.
        Plans are always kept, so `use_program_cache` changes nothing; `feed_var_name` and `fetch_var_name` are
        accepted for Fluid's sake.

        Raises EOFException when a loader of the program is exhausted; EnforceNotMet when something is not fed, not
        initialised or not known; ValueError for feeds of a wrong shape or dtype; TypeError for arguments of a wrong
        type; RuntimeError after `close` and for sequences fetched as arrays.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Executor")
        if program is None:
            program = default_main_program()
        scope = global_scope() if scope is None else scope
        if not isinstance(scope, Scope):
            raise TypeError(f"scope must be a fluid.Scope, got {type(scope).__name__}")
        run_compiled = getattr(program, "_run_compiled", None)
        if run_compiled is not None:
            return run_compiled(self, feed, fetch_list, scope, return_numpy, return_merged)
        if not isinstance(program, Program):
            raise TypeError(f"Executor requires Program as its Parameter. But you passed in {type(program)}")
        if isinstance(feed, (list, tuple)):
            if len(feed) != 1:
                raise TypeError(
                    f"feed is a list for {len(feed)} devices, but a Program runs on one: pass one dict, or a "
                    "CompiledProgram"
                )
            feed = feed[0]
        elif feed is None:
            feed = {}
        if not isinstance(feed, Mapping):
            raise TypeError(f"feed requires dict as its Parameter. But you passed in {type(feed)}")
        given: Mapping[str, Any] = unshared(feed) if self._device is None else feed
        names = fetch_names(fetch_list)
        if use_prune:
            program = pruned(program, names, tuple(given))
        recorder = profiling.active
        if recorder is not None:
            with recorder.span(profiling.STEP):
                return run_program(program, given, names, scope, return_numpy, self._device)
        return run_program(program, given, names, scope, return_numpy, self._device)

    def train_from_dataset(
        self,
        program: Any = None,
        dataset: Any = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Any] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        """Run `program` on every batch of a data set of files (`fluid.DatasetFactory`).

        Threads update the same parameters without waiting for each other, as Fluid's do: with more than one the order
        of updates, and so the last digits, are others each time. A CompiledProgram is run by one thread.

        Args:
            program: a Program or CompiledProgram; the default main program if None.
            dataset: a `QueueDataset` or `InMemoryDataset`.
            scope: where parameters live; the global scope if None.
            thread: how many threads train; 0 for as many as the data set says (`set_thread`). Those of a `QueueDataset`
                are as many as that says, and not more than its files.
            debug: accepted.
            fetch_list, fetch_info: Variables whose values are printed every `print_period` batches of the first thread,
                and the text that is printed before each.
            fetch_handler: looks at variables from time to time.

        Raises:
            RuntimeError: no data set was given.
            AssertionError: `fetch_info` does not belong to `fetch_list`.
            ValueError: `print_period` is below 1.
            FormatError: a line of a file is no sample; and what `run` raises.
        """
        if dataset is None:
            raise RuntimeError("dataset is need and should be initialized: see fluid.DatasetFactory")
        fetches = [fetch_list] if isinstance(fetch_list, (str, Variable)) else list(fetch_list or [])
        info = [fetch_info] if isinstance(fetch_info, str) else list(fetch_info or [])
        assert len(info) == len(fetches), (
            f"{len(fetches)} variables in fetch_list, {len(info)} texts in fetch_info"
        )
        if print_period < 1:
            raise ValueError(f"print_period must be at least 1, got {print_period}")
        program = default_main_program() if program is None else program
        scope = global_scope() if scope is None else scope
        # Threads run copies of the program: a plan serves one at a time.
        shares = dataset._shares(int(thread), single=not isinstance(program, Program))
        steps = [self._step_of(each, scope) for each in [program, *self._copies_of(program, len(shares) - 1)]]
        run_over(
            shares, steps, list(zip(info, fetch_names(fetches), strict=True)), print_period, fetch_handler
        )

    def _step_of(self, program: Any, scope: Scope) -> Step:
        def step(feed: dict[str, Any], wanted: Sequence[Any]) -> list[Any]:
            return self.run(program, feed=feed, fetch_list=wanted, scope=scope, return_numpy=False)

        return step

    def _copies_of(self, program: Any, count: int) -> list[Program]:
        """So many copies of a program, kept as long as the program stays as it is."""
        if count < 1:
            return []
        version, copies = self._copies.get(program, (None, []))
        if version != program._version:
            copies = []
            self._copies[program] = program._version, copies
        copies += [program.clone() for _ in range(count - len(copies))]
        return copies[:count]

    infer_from_dataset = train_from_dataset
    """The same: what a program computes, and whether it updates parameters, depends on its operators."""


def fetch_names(fetch_list: Any) -> tuple[str, ...]:
    """The names in a fetch_list of Variables and names; what `minimize` returns may stand in it and is left out.

    Raises TypeError naming the item for anything else.
    """
    if fetch_list is None:
        return ()
    if isinstance(fetch_list, (str, Variable)):
        fetch_list = [fetch_list]
    names = []
    for item in fetch_list:
        if isinstance(item, Variable):
            names.append(item.name)
        elif isinstance(item, str):
            names.append(item)
        elif not isinstance(item, (tuple, list, Operator)):
            raise TypeError(
                f"The item in fetch_list should be str, variable or optimize_op, but received {type(item)}: {item!r}"
            )
    return tuple(names)


def pruned(program: Program, names: tuple[str, ...], feeds: tuple[str, ...]) -> Program:
    """The part of `program` that the fetches need; kept with the program."""
    key = (program._version, names, feeds)
    found = program._pruned.get(key)
    if found is None:
        found = program._pruned[key] = program._prune(list(names), list(feeds))
    return found


def run_program(
    program: Program,
    feed: Mapping[str, Any],
    names: tuple[str, ...],
    scope: Scope,
    return_numpy: bool,
    device: CudaDevice | None = None,
) -> list[Any]:
    """One step of a program on one device (None: the host)."""
    if program._has_readers():
        feed = readers.add_to(feed, program, device)
    cache = _cache(program, scope, (tuple(feed), names), device)
    cache.runs += 1
    plan = cache.plans[0] if cache.plans else None
    if plan is not None and plan.lock.acquire(blocking=False):
        try:
            if plan.ready(program) and plan.accepts_raw(feed):
                return _finish(plan, return_numpy)
        except MemoryError:
            cache.drop(plan)
            raise
        finally:
            plan.lock.release()
    try:
        return _run_checked(program, as_feed(program, feed), names, scope, return_numpy, cache, device)
    except failures.NotFed as error:
        raise error.among(feed) from None


def _run_checked(
    program: Program,
    checked: Feed,
    names: tuple[str, ...],
    scope: Scope,
    return_numpy: bool,
    cache: PlanCache,
    device: CudaDevice | None,
) -> list[Any]:
    if device is None:
        checked = placed(checked, None)
    # A startup program runs once: to plan it takes longer than to run it without.
    starting = not checked and cache.runs == 1
    if starting or flags.engine() != "plan":
        return _finished(Interpreter(program, scope, checked, device), names, return_numpy)
    if cache.refused is None:
        arrays = expanded(checked)
        found = _run_planned(program, arrays, return_numpy, cache)
        if found is None:
            try:
                cache.add(_planned(program, scope, checked, names, device))
                found = _run_planned(program, arrays, return_numpy, cache)
            except CannotPlan as reason:
                # A first run may initialise what a second one can be planned with.
                cache.refused = str(reason) if cache.runs > 2 else None
        if found is not None:
            return found
    if device is not None:
        return _finished(Interpreter(program, scope, checked, device), names, return_numpy)
    if cache.blocks is None:
        cache.blocks = Blocks(program, names)
    return _finished(Driver(cache.blocks, scope, checked), names, return_numpy)


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
            except MemoryError:
                cache.drop(plan)
                raise
    return None


def _planned(
    program: Program, scope: Scope, feed: Feed, names: tuple[str, ...], device: CudaDevice | None
) -> Plan | DevicePlan:
    if device is None:
        return Plan(program, scope, expanded(feed), names)
    if any(lod for _, lod in feed.values()):
        raise CannotPlan("sequences are fed")
    from .device.plan import DevicePlan

    return DevicePlan(program, scope, expanded(feed), names, device)


def _cache(program: Program, scope: Scope, key: Any, device: CudaDevice | None = None) -> PlanCache:
    by_scope: WeakKeyDictionary[Scope, dict[Any, PlanCache]] = program._plans
    caches = by_scope.get(scope)
    if caches is None:
        caches = by_scope[scope] = {}
    key = (program._version, key, device)
    cache = caches.get(key)
    if cache is None:
        for stale in [k for k in caches if k[0] != program._version]:
            del caches[stale]
        cache = caches[key] = PlanCache()
    return cache


def _finish(plan: Plan | DevicePlan, return_numpy: bool) -> list[Any]:
    plan.run()
    recorder = profiling.active
    if return_numpy and not plan.has_levels:
        arrays = plan.fetch() if recorder is None else recorder.timed("fetch", plan.fetch)
        return [convertible(array) for array in arrays]
    tensors = plan.fetch_tensors() if recorder is None else recorder.timed("fetch", plan.fetch_tensors)
    return as_results(tensors, plan.fetched, return_numpy)


def _finished(run: Interpreter, names: tuple[str, ...], return_numpy: bool) -> list[Any]:
    """Carry out a run that is no single plan, and fetch."""
    run.run()
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
    for (version, (feeds, fetches), _), cache in (program._plans.get(scope) or {}).items():
        if version != program._version:
            continue
        parts.append(f"fed {list(feeds)}, fetched {list(fetches)}: {cache.runs} steps")
        parts += [plan.describe() for plan in cache.plans]
        if cache.blocks is not None:
            parts.append(f"run in pieces: {cache.refused or 'it may become one plan'}")
            parts.append(cache.blocks.describe())
        elif not cache.plans:
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


__all__ = ["EOFException", "Executor", "failures", "fetch_names", "run_program"]
