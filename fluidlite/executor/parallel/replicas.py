"""Data parallelism over GPUs: each has a copy of the parameters, which it updates with the same gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ...backend import device_at
from ...backend.cupy_ import faults
from ...backend.cupy_.collective import Group
from ...backend.cupy_.device import CudaDevice
from ...base.place import Place
from ...framework import Program
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from .data_parallel import DataParallel, Values, differing_feeds, same_elements
from .place_scopes import PlaceScopes

_copies: WeakKeyDictionary[Scope, dict[tuple[int, ...], Copies]] = WeakKeyDictionary()


class Copies:
    """Copies of the variables of a scope on several GPUs; those of the first GPU are in the scope itself.

    Programs with the same scope share its copies, so each sees on all GPUs what the other trains.
    """

    def __init__(self, scope: Scope, devices: Sequence[CudaDevice]) -> None:
        self.group = Group(devices)
        self.kids = [Scope(scope) for _ in devices[1:]]
        self._cell = scope._cell
        self._writes = scope._cell.writes
        self._sources: dict[str, Any] = {}  # the array that was copied last, by name
        self._stale: set[str] = set()  # names whose arrays may have been overwritten since

    def before_step(self, scope: Scope, names: Sequence[str]) -> None:
        """Copy those of `names` that are new, and those that may have been written since `after_step`."""
        if self._writes != self._cell.writes:
            self._stale.update(self._sources)
        changed = []
        for name in names:
            found = scope.find_var(name)
            tensor = found.get() if found is not None else None
            if not isinstance(tensor, LoDTensor) or tensor.array is None:
                continue
            array = tensor.on(self.group.devices[0])
            if name in self._stale or self._sources.get(name) is not array:
                changed.append((name, array))
        targets: list[list[Any]] = [[array for _, array in changed]]
        for device, kid in zip(self.group.devices[1:], self.kids, strict=True):
            targets.append([self._memory(device, kid, name, array) for name, array in changed])
        self.group.broadcast(targets)
        self._sources.update(changed)
        self._stale.difference_update(name for name, _ in changed)

    def after_step(self) -> None:
        """Note that all writes so far were the same on all GPUs."""
        self._writes = self._cell.writes

    def _memory(self, device: CudaDevice, kid: Scope, name: str, array: Any) -> Any:
        """Memory for a copy of `array` on `device`: that of the last copy if it fits."""
        tensor = kid.var(name).get_tensor()
        mine = tensor.array
        if mine is None or mine.shape != array.shape or mine.dtype != array.dtype:
            tensor.replace(device.empty(array.shape, array.dtype))
        return tensor.on(device)


def copies(scope: Scope, devices: Sequence[CudaDevice]) -> Copies:
    """The copies of `scope` on these GPUs; always the same object."""
    by_devices = _copies.setdefault(scope, {})
    key = tuple(device.number for device in devices)
    found = by_devices.get(key)
    if found is None:
        found = by_devices[key] = Copies(scope, devices)
    return found


class Replicas(DataParallel):
    """A program on several GPUs at once; see `DataParallel`.

    The copies of the parameters stay equal because all get the same update. A variable that is written into the scope
    between steps (loading, `set`) is copied to all GPUs before the next one. NCCL sums gradients where it can be used.
    """

    devices: tuple[CudaDevice, ...]  # type: ignore[assignment]
    replicated = True

    def __init__(
        self, program: Program, gpus: Sequence[CudaDevice], shared: PlaceScopes, average: bool
    ) -> None:
        self._gpus = tuple(gpus)
        super().__init__(program, [gpu.place for gpu in gpus], shared, average)
        self.devices = self._gpus
        self._persistables = sorted(
            name for name, var in program.global_block().vars.items() if var.persistable and not var.is_data
        )

    def run(self, feed: Any, fetch_list: Any, return_numpy: bool, return_merged: bool) -> list[Any]:
        results = super().run(feed, fetch_list, return_numpy, return_merged)
        self._copies.after_step()
        if results and return_numpy:
            for device in self.devices:
                faults.raise_pending(device)
        return results

    def _make_scopes(self) -> list[Scope]:
        self._copies = copies(self.scope, self._gpus)
        return [self.scope, *self._copies.kids]

    def _synchronize(self) -> None:
        self._copies.before_step(self.scope, self._persistables)

    def _set(self, name: str, feeds: Sequence[Values]) -> None:
        """Leave a persistable variable in the feeds, from where each GPU takes it; raises if the values differ."""
        if not all(same_elements(feed[name], feeds[0][name]) for feed in feeds[1:]):
            raise differing_feeds(name)

    def _all_reduce(self, names: Sequence[str], values: list[Values]) -> None:
        dense = [name for name in names if not self._is_sparse(name)]
        super()._all_reduce([name for name in names if name not in dense], values)
        self._copies.group.all_reduce([[place[name].array for name in dense] for place in values])


def parallel(
    program: Program, places: Sequence[Place], shared: PlaceScopes, average: bool, reduce: bool
) -> DataParallel:
    """A runner of `program`: `Replicas` if all places are GPUs, else `DataParallel` on the host."""
    devices = [device_at(place) for place in places]
    gpus = [device for device in devices if device is not None]
    if len(gpus) < len(devices):
        return DataParallel(program, places, shared, average, reduce)
    return Replicas(program, gpus, shared, average)
