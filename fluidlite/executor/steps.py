"""One step of a program: adds batches of loaders to the feed and picks the `PlanCache` for its feeds and fetches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..base import callsite, flags
from ..base.dtypes import VarType
from ..base.errors import OperatorError
from ..base.reports.texts import Text
from ..base.selected_rows import SelectedRows
from ..distributed import begin_step, is_parallel
from ..framework import Program
from ..framework.gradients.exchange import in_messages
from ..framework.verify import suggest
from . import failures, reading
from .control_flow.blocks import reads, results
from .feeding import as_feed, undeclared_ranks
from .ir.inference import is_noop
from .plan_cache import PlanCache, run_once
from .scope import Scope

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice


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
    begin_step()
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
            _in_messages(program, caches) if is_parallel() else program,
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


def describe(program: Program, scope: Scope) -> str:
    """How a program has been run in a scope; see `Executor.describe`."""
    if not isinstance(program, Program):
        raise TypeError(f"describe takes a Program, got {type(program).__name__}")
    parts = []
    for (version, (feeds, fetches, _), _), cache in (program._plans.get(scope) or {}).items():
        if version != program._version:
            continue
        parts.append(f"fed {list(feeds)}, fetched {list(fetches)}: {cache.runs} steps")
        parts += cache.describe()
    return Text("\n".join(parts) or "this program has not run in this scope")
