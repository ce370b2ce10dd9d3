"""`DataParallel`: each place computes the gradients of its batch, and one update takes their mean or sum."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ..._ext import threads
from ...backend import device_at, to_host
from ...backend.cupy_ import faults
from ...backend.cupy_.collective import Group
from ...base.dtypes import VarType
from ...base.errors import EnforceNotMet, EOFException
from ...base.place import Place
from ...base.selected_rows import SelectedRows, as_dense
from ...framework import Program
from ...framework.gradients.exchange import scale_loss_gradients
from ...ops.tensor.gather import parts
from .. import failures, reading
from ..executor import fetch_names, run_program
from ..feeding import unshared
from ..lod_tensor import LoDTensor
from ..scope import Scope
from .partition import Partition, Stage
from .scatter_gather import gather, scatter

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from ...backend.cupy_.device import CudaDevice


Values = dict[str, Any]
"""The values of a place in a step by name: LoDTensors and SelectedRows."""


class DataParallel:
    """A program on several places, each with a thread and a scope.

    A step scatters the feed over the places and runs the stages of the program (see `Partition`): each place runs the
    forward and backward pass on its part; the gradients are summed (by NCCL on GPUs, where it can be used); the update
    runs once, on the parameters that the places share, or on each GPU, which has its own. Fetched values are gathered.

    `average`: the gradient of the loss is divided by the number of places. `shared`: the scopes of the places, which
    programs have in common after `share_vars_from`. `reduce`: Fluid's ReduceStrategy.Reduce, under which all places
    write the same moving averages; they run one after the other then, where Fluid leaves the order to chance.
    """

    def __init__(
        self,
        program: Program,
        places: Sequence[Place],
        shared: PlaceScopes,
        average: bool,
        reduce: bool = False,
    ) -> None:
        self.version = program._version
        self.places, self.devices = list(places), shared.devices
        self.scope = shared.scope
        self.program = _without_readers(program)
        if average:
            scale_loss_gradients(self.program, 1.0 / len(self.places))
        self._reader = program if program._has_readers() else None
        self._block = self.program.global_block()
        self._persistables = sorted(
            name for name, var in program.global_block().vars.items() if var.persistable and not var.is_data
        )
        self._reduce = reduce and shared.group is None
        self._shared = shared
        self._pool: ThreadPoolExecutor | None = None
        self._owner = os.getpid()
        self._partition_program()

    def _partition_program(self) -> None:
        """Cut the program into stages, and make the variables local that places write for themselves."""
        self._partition = Partition(self.program, self._shared.local, self._shared.varying, self._reduce)
        self._sequential = self._reduce and bool(self._partition.local)
        self.scopes = [self.scope] * len(self.places)
        if not self._sequential:
            self._shared.make_local(self._partition.local, self._partition.varying)
            self.scopes = self._shared.scopes
        self._trains = any(stage.gradients for stage in self._partition.stages)
        self._partitioned = self._shared.version

    def run(self, feed: Any, fetch_list: Any, return_numpy: bool, return_merged: bool) -> list[Any]:
        """One step; fetched values are concatenated over the places unless `return_merged` is False."""
        names = fetch_names(fetch_list)
        feeds = self._feeds(feed)
        declared = {name for block in self.program.blocks for name in block.vars}
        for name in names:
            if name not in declared:
                raise failures.UnknownFetch(name, self.program)
        try:
            fetched = self._step(feeds, names)
        except failures.NotFed as error:
            raise error.among(feed if isinstance(feed, Mapping) else feed[0] if feed else ()) from None
        results = [gather(name, fetched[name], return_numpy, return_merged) for name in names]
        for device in self.devices if results and return_numpy else ():
            if device is not None:
                faults.raise_pending(device)
        return results

    def _step(self, feeds: Sequence[Values], names: Sequence[str]) -> dict[str, list[Any]]:
        """One step with a feed for each place; returns the values of `names` at each place."""
        self._shared.before_step(self._persistables)
        if self._partitioned != self._shared.version:
            self._partition_program()
        values = [dict(feed) for feed in feeds]
        for stage in self._partition.stages:
            fetched = [name for name in names if self._partition.last(name) is stage]
            outputs = list(dict.fromkeys([*stage.outputs, *fetched]))
            if stage.ops or outputs:
                self._run(stage, values, outputs)
                self._all_reduce([name for name in stage.gradients if name in outputs], values)
        self._shared.after_step()
        return {name: [_as_tensor(place[name]) for place in values] for name in dict.fromkeys(names)}

    def _run(self, stage: Stage, values: list[Values], outputs: Sequence[str]) -> None:
        """Run a stage at each place, or once, and add `outputs` to the values of the places."""
        sparse = {name for name in outputs if self._is_sparse(name) and name in stage.outputs}
        names = tuple(part for name in outputs for part in (parts(name) if name in sparse else (name,)))
        is_first = stage is self._partition.stages[0]
        count = 1 if stage.once and self._shared.group is None else len(values)

        def run(place: int) -> list[Any]:
            have = values[place]
            feed = have if is_first else {name: have[name] for name in stage.inputs if name in have}
            return run_program(stage.program, feed, names, self.scopes[place], False, self.devices[place])

        for place, results in enumerate(self._at_places(run, count)):
            found: Values = dict(zip(names, results, strict=True))
            for name in sparse:
                rows, elements = (found.pop(part).array for part in parts(name))
                found[name] = SelectedRows(rows, elements, self._block._var_recursive(name).shape[0])
            for target in values if count == 1 else values[place : place + 1]:
                target.update(found)

    def _at_places(self, run: Callable[[int], list[Any]], count: int) -> list[list[Any]]:
        """The results of `run` for the first `count` places; an error is raised when all places have ended."""
        if count == 1 or self._sequential:
            return [run(place) for place in range(count)]
        pool = self._threads()
        futures = [pool.submit(run, place) for place in range(count)]
        for future in futures:
            future.exception()  # waits; no place may write variables after the step has failed
        return [future.result() for future in futures]

    def _is_sparse(self, name: str) -> bool:
        return bool(self._block._var_recursive(name).type == VarType.SELECTED_ROWS)

    def _all_reduce(self, names: Sequence[str], values: list[Values]) -> None:
        """Replace gradients at all places by their sums over the places."""
        dense = [name for name in names if not self._is_sparse(name)]
        if self._shared.group is not None:
            self._shared.group.all_reduce([[place[name].array for name in dense] for place in values])
            names = [name for name in names if name not in dense]
        for name in names:
            gradients = [place[name] for place in values]
            total = _sum(gradients) if name in dense else _sum_of_rows(gradients)
            for place in values:
                place[name] = total

    def _threads(self) -> ThreadPoolExecutor:
        """A thread for each place, with its share of the threads for kernels; new ones in a forked process."""
        if self._pool is None or self._owner != os.getpid():
            from concurrent.futures import ThreadPoolExecutor  # slow to import

            places = len(self.places)
            share = max(threads.count() // places, 1)
            self._pool = ThreadPoolExecutor(places, "fluidlite-replica", threads.share, (share,))
            self._owner = os.getpid()
        return self._pool

    def _feeds(self, feed: Any) -> list[Values]:
        """A feed for each place, with the batches of readers. Without gradients the last places may get none."""
        feeds: list[Values] = scatter(unshared(feed), self.program, self.places, self._trains)
        if self._reader is not None:
            feeds = self._read(feeds, self._reader)
        for name in list(feeds[0]) if feeds else ():
            if self._block._is_persistable(name):
                self._set(name, feeds)
        return feeds

    def _read(self, feeds: list[Values], program: Program) -> list[Values]:
        """Add the next batches of the readers.

        An incomplete set of batches ends the epoch, or runs on the first places if the readers keep it.
        """
        for index, part in enumerate(feeds):
            try:
                feeds[index] = reading.add_to(part, program, self.devices[index], self.devices)
            except EOFException:
                if index == 0 or reading.drops_last(program) or self._trains:
                    raise
                return feeds[:index]
        return feeds

    def _set(self, name: str, feeds: Sequence[Values]) -> None:
        """Set a persistable variable that is fed, in the scope, or in that of each place if the values differ.

        GPUs take it from the feeds, where it stays.
        """
        values = [feed[name] for feed in feeds]
        is_same = all(_same_elements(value, values[0]) for value in values[1:])
        if not is_same and (self._sequential or self._shared.group is not None):
            raise EnforceNotMet(
                f"persistable variable {name!r} was fed with different values for different devices, which share it: "
                "feed one value, with fewer rows than there are devices, or make it not persistable"
            )
        if self._shared.group is not None:
            return
        for feed in feeds:
            del feed[name]
        if not is_same:
            self._shared.make_local([name], [name])
        self._shared.set(name, values[:1] if is_same else values)


def _without_readers(program: Program) -> Program:
    """A copy of `program` in which batches are fed."""
    copy = program.clone()
    block = copy.global_block()
    block.ops = [op for op in block.ops if not (op.definition.effects.host and op.definition.kernel is None)]
    copy._changed()
    return copy


def _sum(gradients: Sequence[LoDTensor]) -> LoDTensor:
    """The sum of dense gradients, in the memory of the first one, which is a copy that a step has fetched."""
    for other in gradients[1:]:
        np.add(gradients[0].array, other.array, out=gradients[0].array)
    return gradients[0]


def _sum_of_rows(gradients: Sequence[SelectedRows]) -> SelectedRows:
    """The sum of sparse gradients: the rows of all places, on the host."""
    rows = np.concatenate([to_host(gradient.rows) for gradient in gradients])
    elements = np.concatenate([to_host(gradient.values) for gradient in gradients])
    used = rows >= 0
    return SelectedRows(rows[used], elements[used], gradients[0].height)


def _as_tensor(value: Any) -> Any:
    """A fetched value; SelectedRows become a dense tensor, as everywhere."""
    return LoDTensor.wrap(as_dense(value)) if isinstance(value, SelectedRows) else value


def _same_elements(one: LoDTensor, other: LoDTensor) -> bool:
    return one is other or np.array_equal(to_host(one.array), to_host(other.array))


class PlaceScopes:
    """The first place's scope is the given one, the others are its children with their own values of local variables.

    Local variables are those that places write for themselves, such as the statistics of batch normalisation; all
    others are shared. Programs with common variables (`share_vars_from`) have one PlaceScopes. A local variable that is
    written into the scope between steps (`set`, a file, a startup program, a run on one place) is copied to all places.
    """

    devices: tuple[CudaDevice | None, ...]
    """Where each place computes; None: on the host."""

    group: Group | None = None
    """The collective that sums gradients over GPUs; None on the host."""

    def __init__(self, scope: Scope, count: int) -> None:
        self.devices = (None,) * count
        self.scope = scope
        self.scopes = [scope, *(Scope(scope) for _ in range(count - 1))]
        self.varying: set[str] = set()
        """The variables whose values may differ between places."""
        self.version = 0
        """Counts the changes of `local` and `varying`, after which programs are partitioned anew."""
        self._stamps: dict[str, Any] = {}  # of the first place's values after the last step

    @property
    def local(self) -> Set[str]:
        return self._stamps.keys()

    def make_local(self, names: Iterable[str], varying: Iterable[str] = ()) -> None:
        """Give each place its own variables `names`; the values of those in `varying` may differ between places."""
        new = [name for name in names if name not in self._stamps]
        if new or not self.varying.issuperset(varying):
            self.version += 1
        self.varying.update(varying)
        for name in new:
            for scope in self.scopes[1:]:
                scope.var(name)
            self._copy_from_first(name)

    def set(self, name: str, values: Sequence[LoDTensor]) -> None:
        """Set a variable: to one value for each place, to which it is local, or to one value for all places."""
        for scope, value in zip(self.scopes, values, strict=False):
            _set(scope, name, value)
        if name in self._stamps:
            if len(values) == 1:
                self._copy_from_first(name)
            self._stamps[name] = _stamp(self._value(name))

    def before_step(self, names: Iterable[str]) -> None:
        """Copy to all places the local variables that were written into the scope since `after_step`.

        `names`: the persistable variables of the program.
        """
        for name, stamp in self._stamps.items():
            if _stamp(self._value(name)) != stamp:
                self._copy_from_first(name)

    def after_step(self) -> None:
        """Note that the places themselves have written their present values."""
        for name in self._stamps:
            self._stamps[name] = _stamp(self._value(name))

    def _value(self, name: str) -> Any:
        found = self.scope.find_var(name)
        return found.get() if found is not None else None

    def _copy_from_first(self, name: str) -> None:
        value = self._value(name)
        for scope in self.scopes[1:]:
            if not isinstance(value, LoDTensor):
                scope.var(name).set(copy.deepcopy(value))
            elif value.array is not None:
                _set(scope, name, value)
        self._stamps[name] = _stamp(value)


def _set(scope: Scope, name: str, value: LoDTensor) -> None:
    tensor = scope.var(name).get_tensor()
    tensor.set(value.array)
    tensor.hold_lod(value.offsets)


def _stamp(value: Any) -> Any:
    """A value that differs after a variable was written: its elements as bytes, or the object that it holds."""
    if isinstance(value, LoDTensor):
        array = value.array
        return None if array is None else (array.dtype.str, array.shape, array.tobytes())
    return value


class GpuScopes(PlaceScopes):
    """The first GPU's scope is the given one, the others are its children with copies of all variables.

    The copies of the parameters stay equal because all get the same update. A variable that is written into the scope
    between steps (loading, `set`) is copied to all GPUs before the next one.
    """

    def __init__(self, scope: Scope, devices: Sequence[CudaDevice]) -> None:
        super().__init__(scope, len(devices))
        self.devices, self.group = tuple(devices), Group(devices)
        self._cell = scope._cell
        self._writes = scope._cell.writes
        self._sources: dict[str, Any] = {}  # the array that was copied last, by name
        self._stale: set[str] = set()  # names whose arrays may have been overwritten since

    def make_local(self, names: Iterable[str], varying: Iterable[str] = ()) -> None:
        """Do nothing: each GPU has its own variables."""

    def before_step(self, names: Iterable[str]) -> None:
        """Copy those of `names` that are new, and those that may have been written since `after_step`."""
        group = self.group
        assert group is not None
        if self._writes != self._cell.writes:
            self._stale.update(self._sources)
        changed = []
        for name in names:
            tensor = self._value(name)
            if not isinstance(tensor, LoDTensor) or tensor.array is None:
                continue
            array = tensor.on(group.devices[0])
            if name in self._stale or self._sources.get(name) is not array:
                changed.append((name, array))
        targets: list[list[Any]] = [[array for _, array in changed]]
        for device, scope in zip(group.devices[1:], self.scopes[1:], strict=True):
            targets.append([self._memory(device, scope, name, array) for name, array in changed])
        group.broadcast(targets)
        self._sources.update(changed)
        self._stale.difference_update(name for name, _ in changed)

    def after_step(self) -> None:
        """Note that all writes so far were the same on all GPUs."""
        self._writes = self._cell.writes

    def _memory(self, device: CudaDevice, scope: Scope, name: str, array: Any) -> Any:
        """Memory for a copy of `array` on `device`: that of the last copy if it fits."""
        tensor = scope.var(name).get_tensor()
        mine = tensor.array
        if mine is None or mine.shape != array.shape or mine.dtype != array.dtype:
            tensor.replace(device.empty(array.shape, array.dtype))
        return tensor.on(device)


_gpu_scopes: WeakKeyDictionary[Scope, dict[tuple[int, ...], GpuScopes]] = WeakKeyDictionary()


def scopes_of(scope: Scope, places: Sequence[Place]) -> PlaceScopes:
    """Scopes for places: new ones of the host, or for GPUs always the same, so that all programs share the copies."""
    devices = [device for device in map(device_at, places) if device is not None]
    if len(devices) < len(places):
        return PlaceScopes(scope, len(places))
    by_devices = _gpu_scopes.setdefault(scope, {})
    key = tuple(device.number for device in devices)
    if key not in by_devices:
        by_devices[key] = GpuScopes(scope, devices)
    return by_devices[key]
