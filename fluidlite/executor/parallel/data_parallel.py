"""`DataParallel`: each place computes the gradients of its batch, and one update takes their mean or sum."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
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
from ..feeding import unshared
from ..reading import readers
from ..running.executor import fetch_names
from ..running.steps import run_program
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from .partition import Partition, Stage
from .place_scopes import PlaceScopes
from .scatter_gather import gather, scatter

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from ...backend.cupy_.device import CudaDevice

Values = dict[str, Any]
"""The values of a place in a step by name: LoDTensors and SelectedRows."""


class DataParallel:
    """A program on several places of the host, each with a thread and a scope; `Replicas` is the same for GPUs.

    A step scatters the feed over the places and runs the stages of the program (see `Partition`): each place runs the
    forward and backward pass on its part; the gradients are summed; the update runs once, on the parameters that the
    places share. Fetched values are gathered.

    `average`: the gradient of the loss is divided by the number of places. `shared`: the scopes of the places, which
    programs have in common after `share_vars_from`. `reduce`: Fluid's ReduceStrategy.Reduce, under which all places
    write the same moving averages; they run one after the other then, where Fluid leaves the order to chance.
    """

    devices: tuple[CudaDevice | None, ...]
    """Where each place computes; None: on the host."""

    replicated = False
    """Whether each place runs the stages that run once as well, on parameters of its own."""

    def __init__(
        self,
        program: Program,
        places: Sequence[Place],
        shared: PlaceScopes,
        average: bool,
        reduce: bool = False,
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
        self._reduce = reduce
        self._shared = shared
        self._pool: ThreadPoolExecutor | None = None
        self._owner = os.getpid()
        self._partition_program()

    def _partition_program(self) -> None:
        """Cut the program into stages, and make the variables local that places write for themselves."""
        self._partition = Partition(self.program, self._shared.local, self._shared.varying, self._reduce)
        self._sequential = self._reduce and bool(self._partition.local)
        self.scopes = [self.scope] * len(self.places) if self._sequential else self._make_scopes()
        self._trains = any(stage.gradients for stage in self._partition.stages)
        self._partitioned = self._shared.version

    def _make_scopes(self) -> list[Scope]:
        """A scope for each place; the first one's is the scope itself."""
        self._shared.make_local(self._partition.local, self._partition.varying)
        return self._shared.scopes

    def _synchronize(self) -> None:
        """Take over changes of the scopes since the last step."""
        self._shared.before_step()
        if self._partitioned != self._shared.version:
            self._partition_program()

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
        return [gather(name, fetched[name], return_numpy, return_merged) for name in names]

    def _step(self, feeds: Sequence[Values], names: Sequence[str]) -> dict[str, list[Any]]:
        """One step with a feed for each place; returns the values of `names` at each place."""
        self._synchronize()
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
        count = 1 if stage.once and not self.replicated else len(values)

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
        for name in names:
            gradients = [place[name] for place in values]
            total = _sum_of_rows(gradients) if self._is_sparse(name) else _sum(gradients)
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
                feeds[index] = readers.add_to(part, program, self.devices[index], self.devices)
            except EOFException:
                if index == 0 or readers.drops_last(program) or self._trains:
                    raise
                return feeds[:index]
        return feeds

    def _set(self, name: str, feeds: Sequence[Values]) -> None:
        """Set a persistable variable that is fed, in the scope, or in that of each place if the values differ."""
        values = [feed.pop(name) for feed in feeds]
        if all(same_elements(value, values[0]) for value in values[1:]):
            values = values[:1]
        elif self._sequential:
            raise differing_feeds(name)
        else:
            self._shared.make_local([name], [name])
        self._shared.set(name, values)


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


def same_elements(one: LoDTensor, other: LoDTensor) -> bool:
    return one is other or np.array_equal(to_host(one.array), to_host(other.array))


def differing_feeds(name: str) -> EnforceNotMet:
    return EnforceNotMet(
        f"persistable variable {name!r} was fed with different values for different devices, which share it: feed one "
        "value, with fewer rows than there are devices, or make it not persistable"
    )
