"""`Executor`: runs programs (`fluid.Executor`); a step takes batches of loaders, and the `PlanCache` for its feeds and
fetches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..backend import device_at
from ..backend.cupy_ import faults
from ..base import callsite, context, flags
from ..base.dtypes import VarType
from ..base.errors import EOFException, OperatorError, TypeAssertion
from ..base.place import Place
from ..base.reports import profiling
from ..base.reports.texts import Text
from ..base.selected_rows import SelectedRows
from ..framework import Operator, Program, Variable, default_main_program, mode
from ..framework.gradients.exchange import in_messages
from ..framework.verify import suggest
from . import failures, reading
from .control_flow.blocks import reads, results
from .feeding import as_feed, undeclared_ranks, unshared
from .ir.inference import is_noop
from .plan_cache import PlanCache, run_once
from .reading import FetchHandler, run_over
from .scope import Scope, global_scope

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice


class Executor:
    """Runs programs on a place; `run` does one step.

    Args:
        place: a `CPUPlace` or `CUDAPlace`; by default where eager tensors are made, which is the CPU unless the script
            or `--device gpu` says otherwise.

    Raises:
        TypeError: `place` is something else.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [None], "float32")
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.run(feed={"x": np.array([1, 2], "float32")}, fetch_list=[x * 2])
        [array([2., 4.], dtype=float32)]
    """

    def __init__(self, place: Place | None = None) -> None:
        if place is not None and not isinstance(place, Place):
            raise TypeError(f"Executor takes a fluid.CPUPlace or fluid.CUDAPlace, got {place!r}")
        self.place: Place = place if place is not None else mode._current_expected_place()
        self._device = device_at(self.place)
        self._closed = False
        self._copies: WeakKeyDictionary[Program, tuple[Any, list[Program]]] = WeakKeyDictionary()

    def close(self) -> None:
        """Wait for work queued on a GPU, tell parameter servers that this trainer is done, and refuse further runs.

        Raises OperatorError if an unfinished step met a label or an id that is out of range.
        """
        device, closed, self._closed = self._device, self._closed, True
        if not closed:
            from ..distributed.rpc.client import complete_all  # few programs have servers

            complete_all()
        if device is not None and not closed:
            device.synchronize()
            faults.raise_pending(device)

    def __repr__(self) -> str:
        return f"Executor({self.place!r}{', closed' if self._closed else ''})"

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
        program = default_main_program() if program is None else getattr(program, "_program", program)
        if not isinstance(program, Program):
            raise TypeError(f"describe takes a Program, got {type(program).__name__}")
        parts = []
        caches = program._plans.get(global_scope() if scope is None else scope) or {}
        for (version, (feeds, fetches, _), _), cache in caches.items():
            if version == program._version:
                parts.append(f"fed {list(feeds)}, fetched {list(fetches)}: {cache.runs} steps")
                parts += cache.describe()
        return Text("\n".join(parts) or "this program has not run in this scope")

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
        """Run one step of a program and return the values of `fetch_list`.

        Args:
            program: a Program or CompiledProgram; the default main program if None.
            feed: arrays or LoDTensors by the names of variables; a list of such dicts for several devices.
            fetch_list: Variables or names. Operators in it, or what `minimize` returns, are updates: then no others are
                run, and nothing that neither they nor the fetches need.
            feed_var_name, fetch_var_name: accepted for Fluid's sake.
            scope: where parameters live; the global scope if None.
            return_numpy: False returns LoDTensors.
            use_program_cache: changes nothing, since plans are always kept.
            return_merged: False keeps the values of several devices apart.
            use_prune: run only what the fetches and the updates of optimizers need.

        Returns:
            A list with an array for each item of `fetch_list`, None where nothing has given it a value.

        Raises:
            EOFException: a loader of the program is exhausted.
            EnforceNotMet: something is not fed, not initialised or not known.
            ValueError: a feed has another shape or dtype.
            TypeError: an argument is of another type.
            RuntimeError: after `close`, and for sequences fetched as arrays.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Executor")
        given = program
        if program is None:
            program = default_main_program()
        scope = global_scope() if scope is None else scope
        if not isinstance(scope, Scope):
            raise TypeError(f"scope must be a fluid.Scope, got {type(scope).__name__}")
        run_compiled = getattr(program, "_run_compiled", None)
        if run_compiled is None and not isinstance(program, Program):
            raise TypeError(f"Executor requires Program as its Parameter. But you passed in {type(program)}")
        updates = _updates(fetch_list)
        if updates or use_prune:
            first = (feed[0] if feed else {}) if isinstance(feed, (list, tuple)) else feed or {}
            program = program._part(fetch_names(fetch_list), tuple(first), updates)
            run_compiled = getattr(program, "_run_compiled", None)
        if run_compiled is not None:
            return run_compiled(self, feed, fetch_list, scope, return_numpy, return_merged)
        try:
            return self._run_alone(program, feed, fetch_list, scope, return_numpy)
        except failures.UnknownFetch as error:
            if given is None:
                raise error.in_default_program() from None
            raise
        except EOFException:
            if program._has_readers():
                fed: Any = feed[0] if isinstance(feed, (list, tuple)) else feed or {}
                run_before_reading(program, fed, scope, self._device)
            raise

    def _run_alone(
        self,
        program: Program,
        feed: Any,
        fetch_list: Any,
        scope: Scope,
        return_numpy: bool,
    ) -> list[Any]:
        """A step of a program on this executor's place; at the end of an epoch nothing has run."""
        if isinstance(feed, (list, tuple)):
            if len(feed) != 1:
                raise TypeAssertion(
                    f"feed is a list for {len(feed)} devices, but a Program runs on one: pass one dict, or a "
                    "CompiledProgram"
                )
            feed = feed[0]
        elif feed is None:
            feed = {}
        if type(feed) is not dict and not isinstance(feed, Mapping):
            raise TypeError(f"feed requires dict as its Parameter. But you passed in {type(feed)}")
        names = fetch_names(fetch_list)
        given: Mapping[str, Any] = unshared(feed) if self._device is None else feed
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
        of updates, and so the last digits, are others each time. A CompiledProgram is run by one thread, and so is a
        program that waits for parameter servers.

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
        # Parameter servers that wait for all trainers get the gradients of one batch at a time.
        single = not isinstance(program, Program) or any(
            op.type == "send_barrier" for op in program.global_block().ops
        )
        shares = dataset._shares(int(thread), single=single)
        steps = [
            partial(self.run, each, scope=scope, return_numpy=False)
            for each in (program, *self._copies_of(program, len(shares) - 1))
        ]
        run_over(
            shares, steps, list(zip(info, fetch_names(fetches), strict=True)), print_period, fetch_handler
        )

    def _copies_of(self, program: Any, count: int) -> list[Program]:
        """`count` copies of a program, cached until the program changes."""
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
    """The names in a fetch_list of Variables and names, and lists of them; operators, and what `minimize` returns, may
    stand in it and have none.

    Raises TypeError naming the item for anything else, AssertionError for what is no list or tuple: dicts and sets do
    not say in which order results are wanted.
    """
    if fetch_list is None:
        return ()
    if isinstance(fetch_list, (str, Variable)):
        fetch_list = [fetch_list]
    if not isinstance(fetch_list, (list, tuple)):
        raise TypeAssertion(
            f"fetch_list must be a list or tuple of Variables and names, or one of those; got {fetch_list!r:.80} "
            f"({type(fetch_list).__name__})"
        )
    names: list[str] = []
    for item in fetch_list:
        if isinstance(item, Variable):
            names.append(item.name)
        elif isinstance(item, str):
            names.append(item)
        elif isinstance(item, list):
            names += fetch_names(item)
        elif isinstance(item, Operator):
            if not item._is_optimize_op():
                raise TypeError(f"The operator in fetch_list is not an optimize_op, but received {item.type}")
        elif not _is_minimized(item):
            raise TypeError(
                f"The item in fetch_list should be str, variable or optimize_op, but received {type(item)}: {item!r}"
            )
    return tuple(names)


def _is_minimized(item: Any) -> bool:
    """True for a result of `minimize`: a tuple that begins with a list of operators."""
    return isinstance(item, tuple) and bool(item) and isinstance(item[0], list)


def _updates(fetch_list: Any) -> frozenset[Operator]:
    """The operators in a fetch_list."""
    found: set[Operator] = set()
    for item in fetch_list if isinstance(fetch_list, (list, tuple)) else ():
        if isinstance(item, Operator):
            found.add(item)
        elif isinstance(item, (list, tuple)):
            found |= _updates(item[0] if _is_minimized(item) else item)
    return frozenset(found)


_VALUES = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)


def run_program(
    program: Program,
    feed: Mapping[str, Any],
    names: tuple[str, ...],
    scope: Scope,
    return_numpy: bool,
    device: CudaDevice | None = None,
    check_finite: bool = True,
) -> list[Any]:
    """One step of a program on one device (None: the host); `check_finite`: whether FLAGS_check_nan_inf applies."""
    for begin in context.before_step:
        begin()
    if program._has_readers():
        feed = reading.add_to(feed, program, device)
    cache = _cache(program, scope, (tuple(feed), names, check_finite and flags.checks_finite()), device)
    if cache.fed:
        feed = _kept(cache.program, feed, cache.fed, scope)
    try:
        return cache.run(feed, scope, return_numpy)
    except failures.NotFed as error:
        raise error.among(feed) from None
    except OperatorError as error:
        ranks = undeclared_ranks(program, feed)
        if not ranks or str(error).startswith(ranks):
            raise
        raise type(error)(f"{ranks}{error}") from None


def run_before_reading(
    program: Program, feed: Mapping[str, Any], scope: Scope, device: CudaDevice | None
) -> None:
    """At the end of an epoch, run the operators before the first `read`, as Fluid does: schedules count this step too.

    Without those that need the batch, which come first if the loader was made after the network.
    """
    ops = program.global_block().ops
    first = next(k for k, op in enumerate(ops) if op.type == "read")
    missing = {name for op in ops[first:] if op.type == "read" for name in op.writes()}
    before = []
    for op in ops[:first]:
        if not missing.isdisjoint(reads(op)):
            missing.update(results(op))
        elif not is_noop(op):
            before.append(op)
    if before:
        check_finite = flags.checks_finite()
        run_once(program, scope, before, as_feed(program, feed), device=device, check_finite=check_finite)


def _cache(
    program: Program, scope: Scope, key: tuple[Any, ...], device: CudaDevice | None = None
) -> PlanCache:
    """The cache of a program in a scope; `key`: names of feeds, names of fetches, whether NaN checks are on."""
    by_scope: WeakKeyDictionary[Scope, dict[Any, PlanCache]] = program._plans
    caches = by_scope.get(scope)
    if caches is None:
        caches = by_scope[scope] = {}
    whole = (program._version, key, device)
    cache = caches.get(whole)
    if cache is None:
        feeds, names, check_finite = key
        _warn_of_unknown(feeds, program)
        for stale in [k for k in caches if k[0] != program._version]:
            del caches[stale]
        kept = [v.name for v in program.global_block().vars.values() if v.persistable and v.type in _VALUES]
        cache = caches[whole] = PlanCache(
            _in_messages(program, caches) if flags.trainers() > 1 else program,
            names,
            device,
            check_finite,
            {name: _changes(program, name) for name in feeds if name in kept},
        )
        # As in Fluid a run creates all of them, even those without an operator: scripts set these by hand.
        for name in kept:
            if scope.find_var(name) is None:
                scope.var(name)
    return cache


def _warn_of_unknown(feeds: Iterable[str], program: Program) -> None:
    """Warn of fed names that the program has no variable for, as Fluid does."""
    known = program.global_block().vars
    for name in feeds:
        if isinstance(name, str) and name not in known:
            near = suggest(name, [each for each, var in known.items() if var.is_data])
            callsite.warn(
                f"The variable {name} is not found in program. It is not declared or is pruned{near}"
            )


def _in_messages(program: Program, caches: dict[Any, PlanCache]) -> Program:
    """The program for several processes, shared by all caches of it."""
    return next((cache.program for cache in caches.values()), None) or in_messages(program)


def _changes(program: Program, name: str) -> bool:
    ops = (op for block in program.blocks for op in block.ops)
    return any(name in op.output_arg_names and op.type != "read" for op in ops)


def _kept(
    program: Program, feed: Mapping[str, Any], changed: Mapping[str, bool], scope: Scope
) -> dict[str, Any]:
    """Store fed persistable variables in the scope, as Fluid does; returns the feed without those that change."""
    for name, (value, lod) in as_feed(program, {name: feed[name] for name in changed}).items():
        if type(value) is SelectedRows:
            continue
        tensor = scope.var(name).get_tensor()
        tensor.set(value)
        tensor.hold_lod(lod)
    return {name: value for name, value in feed.items() if not changed.get(name)}
