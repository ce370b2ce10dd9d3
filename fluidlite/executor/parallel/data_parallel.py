"""Data parallelism: replicas of forward and backward in threads, one update with the mean gradients."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._ext import threads
from ...backend import to_host
from ...base.dtypes import VarType
from ...base.errors import EnforceNotMet, EOFException
from ...base.lod import Lod, freeze
from ...base.place import Place
from ...base.selected_rows import SelectedRows, as_dense
from ...framework import OpRole, Program
from ...ops.tensor.selected_rows import parts
from .. import failures
from ..reading import readers
from ..running.executor import fetch_names
from ..running.feeding import Feed, as_feed, check, split, unshared
from ..running.results import as_results
from ..running.steps import run_program
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from ...backend.cupy_.device import CudaDevice


class DataParallel:
    """A program on several places of the host at once; `replicas.Replicas` is the same for GPUs.

    Every place computes the gradients of its own batch; their mean (or sum) drives one update of the shared parameters.
    Other persistable variables that the forward pass writes (moving averages) are kept for each place, the first one's
    in the scope itself, as Fluid does. With `shared`, as with Fluid's ReduceStrategy.Reduce, all places write the same
    ones: then they take turns, where Fluid leaves to chance which of them comes first.
    """

    devices: tuple[CudaDevice | None, ...]
    """Where each place computes; None: on the host."""

    def __init__(
        self, program: Program, places: Sequence[Place], scope: Scope, average: bool, shared: bool = False
    ) -> None:
        self.program = program
        self.version = program._version
        self.places = list(places)
        self.devices = (None,) * len(self.places)
        self.scope = scope
        self.average = average
        self.forward, self.update = _halves(program)
        updates = self.update.global_block().ops
        made = {name for op in self.forward.global_block().ops for name in op.output_arg_names}
        self.updated = {name for op in updates for name in op.output_arg_names}
        read = dict.fromkeys(name for op in updates for name in op.input_arg_names)
        block = program.global_block()
        self.exchanged = [name for name in read if name in made and not block._is_persistable(name)]
        self.sparse = [n for n in self.exchanged if block._var_recursive(n).type == VarType.SELECTED_ROWS]
        self.gradients = _gradients(self.forward)
        self.private = [name for name in made if block._is_persistable(name) and name not in self.updated]
        self.in_turns = shared and bool(self.private)
        self.scopes = [scope] * len(self.places) if self.in_turns else self._make_scopes()
        self._pool: ThreadPoolExecutor | None = None
        self._owner = os.getpid()

    def run(self, feed: Any, fetch_list: Any, return_numpy: bool, return_merged: bool) -> list[Any]:
        """One step; values of the places are joined along the first dimension unless `return_merged` is False."""
        names = fetch_names(fetch_list)
        feeds = self._feeds(feed)
        known = {name for block in self.program.blocks for name in block.vars}
        for name in names:
            if name not in known:
                raise failures.unknown_fetch(name, known)
        once = [name for name in dict.fromkeys(names) if name in self.updated or name in self.exchanged]
        wanted = [name for name in dict.fromkeys(names) if name not in once]
        try:
            by_name = self._step(feeds, wanted, once)
        except failures.NotFed as error:
            raise error.among(feed if isinstance(feed, Mapping) else feed[0] if feed else ()) from None
        return [_joined(name, by_name[name], return_numpy, return_merged) for name in names]

    def _step(
        self, feeds: Sequence[Mapping[str, Any]], wanted: Sequence[str], once: Sequence[str]
    ) -> dict[str, list[LoDTensor]]:
        """One step with these feeds; the values of `wanted` at each place, and of `once`, which all have alike."""
        self._prepare()
        given = [
            part for name in self.exchanged for part in (parts(name) if name in self.sparse else (name,))
        ]
        jobs = [
            (part, (*given, *wanted), scope, device)
            for part, scope, device in zip(feeds, self.scopes, self.devices, strict=False)
        ]
        each = map if self.in_turns or len(jobs) == 1 else self._threads().map
        results = list(each(self._one, jobs))
        count = len(given)
        by_part = {name: [r[i].array for r in results] for i, name in enumerate(given)}
        by_name: dict[str, list[LoDTensor]] = {
            n: [self._shared_out(n, r[count + i]) for r in results] for i, n in enumerate(wanted)
        }
        late = tuple(name for name in once if name in self.updated)
        gradients, values = self._update(by_part, late)
        by_name.update((name, [value] * len(jobs)) for name, value in zip(late, values, strict=True))
        by_name.update(
            (name, [LoDTensor.wrap(as_dense(to_host(gradients[name])))] * len(jobs))
            for name in once
            if name in gradients
        )
        return by_name

    def _shared_out(self, name: str, tensor: LoDTensor) -> LoDTensor:
        """A fetched value of one place: gradients as parts of those of all places' mean loss, as in Fluid."""
        if not self.average or name not in self.gradients or tensor.array.dtype.kind != "f":
            return tensor
        share = np.asarray(1.0 / len(self.places), tensor.array.dtype)
        return LoDTensor.wrap(to_host(tensor.array) * share, tensor.offsets)

    def _update(
        self, by_part: Mapping[str, list[Any]], late: tuple[str, ...]
    ) -> tuple[Mapping[str, Any], list[LoDTensor]]:
        """Update the parameters with what the places have made; returns the mean gradients and the values of `late`."""
        gradients = {
            name: self._joined_rows(name, by_part) if name in self.sparse else self._mean(by_part[name])
            for name in self.exchanged
        }
        if not self.update.global_block().ops:
            return gradients, []
        return gradients, run_program(self.update, gradients, late, self.scope, False)

    def _one(
        self, job: tuple[Mapping[str, Any], tuple[str, ...], Scope, CudaDevice | None]
    ) -> list[LoDTensor]:
        feed, names, scope, device = job
        return run_program(self.forward, feed, names, scope, False, device)

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._owner != os.getpid():
            from concurrent.futures import ThreadPoolExecutor  # slow to import

            places = len(self.places)
            own = max(threads.count() // places, 1)
            self._pool = ThreadPoolExecutor(places, "fluidlite-replica", threads.share, (own,))
            self._owner = os.getpid()
        return self._pool

    def _mean(self, arrays: list[np.ndarray]) -> np.ndarray:
        total = arrays[0].copy()
        for array in arrays[1:]:
            total += array
        if self.average and total.dtype.kind == "f":
            total *= np.asarray(1.0 / len(self.places), total.dtype)
        return total

    def _joined_rows(self, name: str, by_part: Mapping[str, list[Any]]) -> SelectedRows:
        """The mean of sparse gradients: the rows of all places, on the host."""
        numbers, values = (np.concatenate([to_host(a) for a in by_part[part]]) for part in parts(name))
        held = numbers >= 0
        if self.average:
            values = values * np.asarray(1.0 / len(self.places), values.dtype)
        height = self.program.global_block()._var_recursive(name).shape[0]
        return SelectedRows(numbers[held], values[held], height)

    def _make_scopes(self) -> list[Scope]:
        """A scope for each place; the first one's is the scope itself."""
        return [self.scope, *(Scope(self.scope) for _ in self.places[1:])]

    def _prepare(self) -> None:
        """Give each place but the first its own copy of what only the forward pass writes."""
        for scope in () if self.in_turns else self.scopes[1:]:
            for name in self.private:
                found = self.scope.find_var(name)
                if name not in scope._vars and found is not None and found.is_set():
                    scope.var(name).get_tensor().set(np.array(found.get_tensor()))

    def _feeds(self, feed: Any) -> list[dict[str, Any]]:
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
        self._check_shared(parts)
        feeds: list[dict[str, Any]] = [
            {name: LoDTensor.wrap(array, lod) for name, (array, lod) in part.items()} for part in parts
        ]
        if self.program._has_readers():
            feeds = self._read(feeds)
        return feeds

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
                check(self.program.global_block().var(name), array, lod)
        return parts

    def _is_shared_by_all(self, name: str, array: np.ndarray) -> bool:
        """Whether a fed variable goes to all places as it is: a persistable one with too few rows, such as a rate."""
        few = array.ndim == 0 or len(array) < len(self.places)
        return few and self.program.global_block()._is_persistable(name)

    def _check_shared(self, parts: Sequence[Feed]) -> None:
        """Raise EnforceNotMet if places are fed with different values of a variable that they have in common."""
        for name, (first, _) in parts[0].items() if parts else ():
            if name in self.private or not self.program.global_block()._is_persistable(name):
                continue
            values = [part[name][0] for part in parts[1:] if name in part]
            if not all(value is first or np.array_equal(value, first) for value in values):
                raise EnforceNotMet(
                    f"persistable variable {name!r} was fed with different values for different devices, which share "
                    "it: feed one value, with fewer rows than there are devices, or make it not persistable"
                )

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

    def _read(self, feeds: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add the readers' next batches; an incomplete set ends the epoch, or runs on the first places if wanted."""
        for index, part in enumerate(feeds):
            try:
                feeds[index] = readers.add_to(part, self.program, self.devices[index], self.devices)
            except EOFException:
                if index == 0 or readers.drops_last(self.program) or self.exchanged:
                    raise
                return feeds[:index]
        return feeds


def _halves(program: Program) -> tuple[Program, Program]:
    """Copies of `program` with what every place does, and with what is done once."""
    forward, update = program.clone(), program.clone()
    once = OpRole.Optimize | OpRole.LRSched
    for half, keeps in ((forward, False), (update, True)):
        block = half.global_block()
        block.ops = [op for op in block.ops if bool(op.attrs.get("op_role", 0) & once) is keeps]
        if half is forward:
            # Batches are taken by the caller, one for each place.
            block.ops = [op for op in block.ops if not (op.definition.host and op.definition.kernel is None)]
        half._changed()
    return forward, update


def _gradients(program: Program) -> set[str]:
    """What the backward pass computes from the gradient of a loss, which Fluid divides by the number of places."""
    found: set[str] = set()
    for op in program.global_block().ops:
        role = op.attrs.get("op_role", 0)
        if role == OpRole.Backward | OpRole.Loss or (
            role & OpRole.Backward and not found.isdisjoint(op.input_arg_names)
        ):
            found.update(op.output_arg_names)
    return found


def _joined(name: str, tensors: list[LoDTensor], return_numpy: bool, merged: bool) -> Any:
    if not merged:
        return as_results(tensors, [name] * len(tensors), return_numpy)
    arrays = [np.atleast_1d(to_host(t.array)) for t in tensors]
    whole = LoDTensor.wrap(np.concatenate(arrays), _strung([t.offsets for t in tensors], name))
    return as_results([whole], [name], return_numpy)[0]


def _strung(parts: list[Lod], name: str) -> Lod:
    """The levels of detail of tensors that are put one after the other."""
    depths = [len(levels) for levels in parts]
    if len(set(depths)) > 1:
        raise EnforceNotMet(
            f"variable {name!r} has {depths} levels of sequences on the devices, so that its values cannot be put "
            "together; fetch it with return_merged=False"
        )
    strung = []
    for levels in zip(*parts, strict=True):
        starts = np.cumsum([0, *(level[-1] for level in levels)])
        ends = [level[1:] + start for level, start in zip(levels, starts, strict=False)]
        strung.append(freeze(np.concatenate([levels[0][:1], *ends])))
    return tuple(strung)
