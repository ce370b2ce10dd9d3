"""Data parallelism: each place computes the gradients of its batch, and one update takes their mean."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._ext import threads
from ...backend import to_host
from ...base.dtypes import VarType
from ...base.errors import EnforceNotMet, EOFException
from ...base.place import Place
from ...base.selected_rows import SelectedRows, as_dense
from ...framework import Program
from ...framework.gradients.exchange import scale_loss_gradients
from ...ops.tensor.selected_rows import parts
from .. import failures
from ..reading import readers
from ..running.executor import fetch_names
from ..running.feeding import Feed, as_feed, check, split, unshared
from ..running.steps import run_program
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from .place_scopes import PlaceScopes
from .results import joined
from .stages import Stage, Stages

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from ...backend.cupy_.device import CudaDevice

Values = dict[str, Any]
"""What a place has in a step, by name: LoDTensors, and SelectedRows."""


class DataParallel:
    """A program on several places of the host at once; `replicas.Replicas` is the same for GPUs.

    The program runs in stages: what every place does with its own batch, then the sum of the gradients, then what is
    done once, on the parameters that the places share. With `average` the gradient of the loss is divided by the number
    of places. Persistable variables that places write for themselves (moving averages) are in `shared`, which programs
    have in common after `share_vars_from`. With `reduced`, as with Fluid's ReduceStrategy.Reduce, all places write the
    same ones: then they take turns, where Fluid leaves to chance which of them comes first.
    """

    devices: tuple[CudaDevice | None, ...]
    """Where each place computes; None: on the host."""

    everywhere = False
    """Whether every place does what is done once, on variables of its own."""

    def __init__(
        self,
        program: Program,
        places: Sequence[Place],
        shared: PlaceScopes,
        average: bool,
        reduced: bool = False,
    ) -> None:
        self.version = program._version
        self.places = list(places)
        self.devices = (None,) * len(self.places)
        self.scope = shared.scope
        self.program = _without_readers(program)
        if average:
            scale_loss_gradients(self.program, 1.0 / len(self.places))
        self._reader = program if program._has_readers() else None
        self._block = self.program.global_block()
        self._reduced = reduced
        self._shared = shared
        self._pool: ThreadPoolExecutor | None = None
        self._owner = os.getpid()
        self._build()

    def _build(self) -> None:
        """Cut the program into stages, and have places keep what they write for themselves."""
        self.stages = Stages(self.program, self._shared.own, self._shared.different, self._reduced)
        self.in_turns = self._reduced and bool(self.stages.private)
        self.scopes = [self.scope] * len(self.places) if self.in_turns else self._make_scopes()
        self._programs = [self.stages.program(stage, self.program) for stage in self.stages.stages]
        self.exchanged = [name for stage in self.stages.stages for name in stage.gradients]
        self._built = self._shared.version

    def _make_scopes(self) -> list[Scope]:
        """A scope for each place; the first one's is the scope itself."""
        self._shared.hold(self.stages.private, self.stages.different)
        return self._shared.scopes

    def _prepare(self) -> None:
        """Follow what has become of the places' scopes since the last step."""
        self._shared.bring()
        if self._built != self._shared.version:
            self._build()

    def run(self, feed: Any, fetch_list: Any, return_numpy: bool, return_merged: bool) -> list[Any]:
        """One step; values of the places are joined along the first dimension unless `return_merged` is False."""
        names = fetch_names(fetch_list)
        feeds = self._feeds(feed)
        known = {name for block in self.program.blocks for name in block.vars}
        for name in names:
            if name not in known:
                raise failures.unknown_fetch(name, known)
        try:
            found = self._step(feeds, names)
        except failures.NotFed as error:
            raise error.among(feed if isinstance(feed, Mapping) else feed[0] if feed else ()) from None
        return [joined(name, found[name], return_numpy, return_merged) for name in names]

    def _step(self, feeds: Sequence[Values], names: Sequence[str]) -> dict[str, list[Any]]:
        """One step with these feeds; the values of `names` at each place."""
        self._prepare()
        found = [dict(feed) for feed in feeds]
        fetched: dict[int, list[str]] = {}
        for name in names:
            fetched.setdefault(id(self.stages.last(name)), []).append(name)
        for stage, program in zip(self.stages.stages, self._programs, strict=True):
            wanted = list(dict.fromkeys([*stage.gives, *fetched.get(id(stage), ())]))
            if stage.ops or wanted:
                self._run(stage, program, found, wanted)
                self._add_up([name for name in stage.gradients if name in wanted], found)
        self._shared.note()
        return {name: [_as_tensor(values[name]) for values in found] for name in dict.fromkeys(names)}

    def _run(self, stage: Stage, program: Program, found: list[Values], wanted: Sequence[str]) -> None:
        """Run a stage on what places have found; from there on they have `wanted` as well."""
        sparse = {name for name in wanted if self._is_sparse(name) and name in stage.gives}
        names = tuple(part for name in wanted for part in (parts(name) if name in sparse else (name,)))
        first = stage is self.stages.stages[0]
        count = 1 if stage.once and not self.everywhere else len(found)
        jobs = [
            (
                program,
                values if first else {name: values[name] for name in stage.takes if name in values},
                names,
                self.scopes[place],
                self.devices[place],
            )
            for place, values in enumerate(found[:count])
        ]
        each = map if self.in_turns or count == 1 else self._threads().map
        for place, results in enumerate(each(_one, jobs)):
            made: Values = dict(zip(names, results, strict=True))
            for name in sparse:
                rows, values = (made.pop(part).array for part in parts(name))
                made[name] = SelectedRows(rows, values, self._block._var_recursive(name).shape[0])
            for values in found if count == 1 else found[place : place + 1]:
                values.update(made)

    def _is_sparse(self, name: str) -> bool:
        return bool(self._block._var_recursive(name).type == VarType.SELECTED_ROWS)

    def _add_up(self, names: Sequence[str], found: list[Values]) -> None:
        """Have all places have the sums of these gradients."""
        for name in names:
            values = [place[name] for place in found]
            total = _joined_rows(values) if self._is_sparse(name) else _total(values)
            for place in found:
                place[name] = total

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._owner != os.getpid():
            from concurrent.futures import ThreadPoolExecutor  # slow to import

            places = len(self.places)
            own = max(threads.count() // places, 1)
            self._pool = ThreadPoolExecutor(places, "fluidlite-replica", threads.share, (own,))
            self._owner = os.getpid()
        return self._pool

    def _feeds(self, feed: Any) -> list[Values]:
        """One feed for each place: from the readers, a list, or one feed divided."""
        feed = unshared(feed)
        if isinstance(feed, (list, tuple)):
            parts = [as_feed(self.program, part) for part in self._listed(feed)]
        elif feed is None or isinstance(feed, Mapping):
            parts = self._divided(feed or {})
        else:
            raise TypeError(
                f"feed must be a dict, or a list of dicts for several devices, got {type(feed).__name__}"
            )
        feeds: list[Values] = [
            {name: LoDTensor.wrap(array, lod) for name, (array, lod) in part.items()} for part in parts
        ]
        if self._reader is not None:
            feeds = self._read(feeds, self._reader)
        for name in list(feeds[0]) if feeds else ():
            if self._block._is_persistable(name):
                self._keep(name, feeds)
        return feeds

    def _keep(self, name: str, feeds: Sequence[Values]) -> None:
        """Put what is fed as a persistable variable where the places have it, from now on."""
        values = [feed.pop(name) for feed in feeds]
        if all(_same(value, values[0]) for value in values[1:]):
            values = values[:1]
        elif self.in_turns:
            raise _differs(name)
        else:
            self._shared.hold([name], [name])
        self._shared.put(name, values)

    def _divided(self, feed: Mapping[str, Any]) -> list[Feed]:
        """The parts of one feed; without gradients to exchange the last places may get none."""
        whole = as_feed(self.program, feed, checked=False)
        common = {
            name: (array, lod) for name, (array, lod) in whole.items() if self._is_shared_by_all(name, array)
        }
        try:
            divided = {name: value for name, value in whole.items() if name not in common}
            parts = split(divided, self.places, every=bool(self.exchanged))
        except ValueError as error:
            raise EnforceNotMet(f"{error}; CPU_NUM sets the number of CPU devices") from None
        for part in parts:
            part.update(common)
            for name, (array, lod) in part.items():
                check(self._block.var(name), array, lod)
        return parts

    def _is_shared_by_all(self, name: str, array: np.ndarray) -> bool:
        """Whether a fed variable goes to all places as it is: a persistable one with too few rows, such as a rate."""
        few = array.ndim == 0 or len(array) < len(self.places)
        return few and self._block._is_persistable(name)

    def _listed(self, feed: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        """A list of feeds, one for each place; without gradients to exchange the last places may get none."""
        for part in feed:
            if not isinstance(part, Mapping):
                raise TypeError(f"Each element of feed list should be a dict, got {type(part).__name__}")
        if len(feed) > len(self.places):
            raise IndexError(
                f"feed is a list for {len(feed)} devices, but the program has {len(self.places)} places"
            )
        if not feed or (len(feed) < len(self.places) and self.exchanged):
            raise EnforceNotMet(
                f"The feed data number {len(feed)} does not match the device number {len(self.places)}. A DataLoader "
                "with drop_last=True leaves out incomplete sets of batches; CPU_NUM sets the number of CPU devices"
            )
        return feed

    def _read(self, feeds: list[Values], program: Program) -> list[Values]:
        """Add the readers' next batches; an incomplete set ends the epoch, or runs on the first places if wanted."""
        for index, part in enumerate(feeds):
            try:
                feeds[index] = readers.add_to(part, program, self.devices[index], self.devices)
            except EOFException:
                if index == 0 or readers.drops_last(program) or self.exchanged:
                    raise
                return feeds[:index]
        return feeds


def _one(job: tuple[Program, Values, tuple[str, ...], Scope, CudaDevice | None]) -> list[LoDTensor]:
    program, feed, names, scope, device = job
    return run_program(program, feed, names, scope, False, device)


def _without_readers(program: Program) -> Program:
    """A copy of `program` in which batches are fed."""
    copy = program.clone()
    block = copy.global_block()
    block.ops = [op for op in block.ops if not (op.definition.host and op.definition.kernel is None)]
    copy._changed()
    return copy


def _total(values: Sequence[LoDTensor]) -> LoDTensor:
    """The sum of dense gradients, in the memory of the first one: what steps fetch are copies."""
    for value in values[1:]:
        np.add(values[0].array, value.array, out=values[0].array)
    return values[0]


def _joined_rows(values: Sequence[SelectedRows]) -> SelectedRows:
    """The sum of sparse gradients: the rows of all places, on the host."""
    rows = np.concatenate([to_host(value.rows) for value in values])
    elements = np.concatenate([to_host(value.values) for value in values])
    held = rows >= 0
    return SelectedRows(rows[held], elements[held], values[0].height)


def _as_tensor(value: Any) -> Any:
    """What is fetched of a value; of rows, as everywhere, all of the table."""
    return LoDTensor.wrap(as_dense(value)) if isinstance(value, SelectedRows) else value


def _same(one: LoDTensor, other: LoDTensor) -> bool:
    return one is other or np.array_equal(to_host(one.array), to_host(other.array))


def _differs(name: str) -> EnforceNotMet:
    return EnforceNotMet(
        f"persistable variable {name!r} was fed with different values for different devices, which share it: feed one "
        "value, with fewer rows than there are devices, or make it not persistable"
    )
