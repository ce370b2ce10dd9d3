"""Data parallelism over GPUs: every one has its own copy of the parameters and updates it with the same gradients."""

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
from .data_parallel import DataParallel, Values, _differs, _same
from .place_scopes import PlaceScopes

_copies: WeakKeyDictionary[Scope, dict[tuple[int, ...], Copies]] = WeakKeyDictionary()


class Copies:
    """The variables of a scope on several GPUs: the first one's are those of the scope itself.

    Programs that share a scope share its copies, so that what one trains the other sees on all GPUs.
    """

    def __init__(self, scope: Scope, devices: Sequence[CudaDevice]) -> None:
        self.group = Group(devices)
        self.kids = [Scope(scope) for _ in devices[1:]]
        self._cell = scope._cell
        self._writes = scope._cell.writes
        self._sources: dict[str, Any] = {}  # what was copied last, by name
        self._doubtful: set[str] = set()  # what may have been written in its place since

    def bring(self, scope: Scope, names: Sequence[str]) -> None:
        """Copy those of `names` that are new, and those that may have been written since `caught_up`."""
        if self._writes != self._cell.writes:
            self._doubtful.update(self._sources)
        stale = []
        for name in names:
            found = scope.find_var(name)
            tensor = found.get() if found is not None else None
            if not isinstance(tensor, LoDTensor) or tensor.array is None:
                continue
            array = tensor.on(self.group.devices[0])
            if name in self._doubtful or self._sources.get(name) is not array:
                stale.append((name, array))
        targets: list[list[Any]] = [[array for _, array in stale]]
        for device, kid in zip(self.group.devices[1:], self.kids, strict=True):
            targets.append([self._place(device, kid, name, array) for name, array in stale])
        self.group.broadcast(targets)
        self._sources.update(stale)
        self._doubtful.difference_update(name for name, _ in stale)

    def caught_up(self) -> None:
        """What was written so far has been written on all GPUs alike."""
        self._writes = self._cell.writes

    def _place(self, device: CudaDevice, kid: Scope, name: str, array: Any) -> Any:
        """Memory for a copy of `array` on `device`: what is there already if it fits."""
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

    The copies of the parameters stay alike because all get the same update. What is written into the scope by other
    means (loading, `set`) is copied to all GPUs before the next step. Gradients are added up by NCCL where it can be
    used.
    """

    devices: tuple[CudaDevice, ...]  # type: ignore[assignment]
    everywhere = True

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
        self._copies.caught_up()
        if results and return_numpy:
            for device in self.devices:
                faults.raise_pending(device)
        return results

    def _make_scopes(self) -> list[Scope]:
        self._copies = copies(self.scope, self._gpus)
        return [self.scope, *self._copies.kids]

    def _prepare(self) -> None:
        self._copies.bring(self.scope, self._persistables)

    def _keep(self, name: str, feeds: Sequence[Values]) -> None:
        """What is fed reaches the copies of all GPUs; they share it."""
        if not all(_same(feed[name], feeds[0][name]) for feed in feeds[1:]):
            raise _differs(name)

    def _add_up(self, names: Sequence[str], found: list[Values]) -> None:
        dense = [name for name in names if not self._is_sparse(name)]
        super()._add_up([name for name in names if name not in dense], found)
        self._copies.group.all_reduce([[values[name].array for name in dense] for values in found])


def parallel(
    program: Program, places: Sequence[Place], shared: PlaceScopes, average: bool, reduced: bool
) -> DataParallel:
    """What runs `program` on these places: GPUs if all of them are, else threads of the host; see there."""
    devices = [device_at(place) for place in places]
    gpus = [device for device in devices if device is not None]
    if len(gpus) < len(devices):
        return DataParallel(program, places, shared, average, reduced)
    return Replicas(program, gpus, shared, average)
