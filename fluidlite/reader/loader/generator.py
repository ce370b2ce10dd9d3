"""`DataLoader.from_generator`: batches read asynchronously, for loops or for programs
(`fluid.io.DataLoader`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._ext.collate import Spec
from ..._ext.queue import QueueClosed
from ...base.errors import NO_NEXT_DATA, EOFException
from ...base.place import Place, resolve
from ...base.reports.texts import names_shortly
from ...executor import reading
from ...executor.lod_tensor import LoDTensor
from ..decorators import Reader, whole
from ..worker.batches import Generated, worker_of
from .base import BaseLoader
from .device_buffer import DevicePrefetcher, Devices, delivered, devices_at, memory_for
from .epoch import BatchFormat, Epoch, LoaderError, Position, State
from .source import Batch, Feeding, FromWorkers, Prefetcher, Ready, SampleLists, Samples, Threaded
from .stats import Meter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...backend.cupy_.device import CudaDevice
    from ..worker.pool import WorkerPool


class Loader(BaseLoader):
    """The base class of loaders of generators.

    `specs`: types and shapes of the items of a batch; `capacity`: how many batches may wait; `use_process`: run the
    generator in a process of its own; `double_buffer`: copy batches to GPUs ahead of time; `persistent`: keep that
    process from one epoch to the next.
    """

    iterable = False
    _samples: type[Samples] = Samples
    _lists: type[SampleLists] = SampleLists
    _ready: type[Ready] = Ready

    def __init__(
        self,
        specs: Sequence[Spec],
        capacity: int,
        drop_last: bool,
        use_process: bool = False,
        double_buffer: bool = True,
        persistent: bool = False,
    ) -> None:
        super().__init__()
        self.drop_last = drop_last
        self._specs = list(specs)
        self._size = capacity
        self._use_process = use_process
        self._persistent = persistent
        self._ahead = double_buffer
        self._targets: Devices = ()  # GPUs that receive the batches of later epochs, round-robin
        self._feeding: Feeding | None = None

    def _described(self) -> str:
        return names_shortly([spec.name for spec in self._specs]) or "batches"

    def set_sample_generator(
        self, reader: Reader, batch_size: int, drop_last: bool = True, places: Any = None
    ) -> Loader:
        """Read samples from `reader` and put `batch_size` of them into each batch.

        `reader` yields samples: a tuple, a list or a row of an array with one item for each variable, or the item
        itself if there is only one variable. Items are converted to the variable's dtype and reshaped to its shape, and
        copied at once. `drop_last`: leave out a last batch that is smaller. `places`: the devices of an
        iterable loader, one or a list. Takes effect with the next epoch. Returns the loader.
        """
        return self._set(self._samples(reader, self._specs, batch_size, drop_last), places)

    def set_sample_list_generator(self, reader: Reader, places: Any = None) -> Loader:
        """Read lists of samples (such as `paddle.batch` makes) from `reader`; each becomes a batch.

        For samples see `DataFeeder.feed`. `places` as in `set_sample_generator`. Returns the loader.
        """
        return self._set(self._lists(reader, self._specs), places)

    def set_batch_generator(self, reader: Reader, places: Any = None) -> Loader:
        """Read batches that are ready from `reader`: a NumPy array or LoDTensor for each variable.

        Arrays may be changed after they were yielded: they are copied, unless nothing but the yielded list has hold of
        them. `places` as in `set_sample_generator`. Returns the loader.
        """
        return self._set(self._ready(reader, self._specs), places)

    @classmethod
    def _check_input_array(cls, item: Any) -> np.ndarray:
        """`item` of a batch as an array; TypeError for what holds something else than numbers, or ragged lists."""
        try:
            array = np.asarray(item)
        except ValueError:
            array = None
        if array is None or array.dtype.hasobject:
            raise TypeError(
                f"an item of a batch holds numbers, in an array, a tensor or lists of one length, got {item!r:.60}"
                "; fluid.create_lod_tensor makes tensors of sequences"
            )
        return array

    def _set(self, feeding: Feeding, places: Any) -> Loader:
        self._feeding = feeding
        pool = self._kept_pool()
        if pool is not None:
            pool.close()
        return self

    def _source(self) -> Feeding:
        if self._feeding is None:
            raise LoaderError(
                "the data source of the DataLoader has not been set: call set_sample_generator, "
                "set_sample_list_generator or set_batch_generator first"
            )
        return self._feeding

    def _places(self) -> int | None:
        """The number of batches in an item; None: items are single batches."""
        return None

    def _form(self, batch: Batch) -> Any:
        """Convert a batch to the consumer's format."""
        return batch

    def _open(self, position: Position, meter: Meter) -> Epoch:
        feeding, places = self._source(), self._places()
        feeding.shortfall = ""
        capacity, skip = (count * (places or 1) for count in (self._size, position.batches))
        prefetcher: Prefetcher
        if self._use_process:
            pool = self._kept_pool() or worker_of(feeding, capacity)

            def release(pool: WorkerPool) -> None:
                """Keep the worker of the epoch for the next one of the same generator."""
                self._keep(pool) if feeding is self._feeding else pool.close()

            requests = Generated(feeding, skip, capacity, pool)
            prefetcher = FromWorkers(requests, release if self._persistent else None)
        else:
            memory = memory_for(self._targets, self._ahead)
            prefetcher = Threaded(feeding.batches(skip, memory), capacity, feeding.name)
        if self._targets:
            prefetcher = DevicePrefetcher(prefetcher, self._targets, self._ahead, meter, feeding.name)

        def barren(left: int) -> str:
            """The reason why there was no item."""
            shortfall = feeding.shortfall
            if left:
                shortfall = (
                    f": its {left} batches are less than one for each of the {places} devices, and drop_last=True "
                    "leaves them out"
                )
            return (
                f"the reader {feeding.name} given to {feeding.kind} yielded no batch in this epoch{shortfall}"
            )

        format = BatchFormat(self._form, barren, places, self.drop_last, count_lists=True, alone=True)
        return Epoch(prefetcher, position, format, meter)

    def _capacity(self) -> int:
        return self._size

    def _workers(self) -> int:
        return int(self._use_process)

    def __call__(self) -> Loader:
        return self

    def __iter__(self) -> Iterator[Any]:
        raise LoaderError(
            "this DataLoader is not iterable (iterable=False): call start(), run the program without feed "
            "until fluid.core.EOFException, then reset()"
        )

    def __next__(self) -> Any:
        return next(iter(self))

    def start(self) -> None:
        """Begin an epoch of a non-iterable loader."""
        raise LoaderError("start() is for loaders made with iterable=False; iterate over this one instead")

    def reset(self) -> None:
        """End the epoch of a non-iterable loader, at any time."""
        raise LoaderError(
            "reset() is for loaders made with iterable=False; this one begins a new epoch when it is iterated"
        )

    def _reset(self) -> None:
        """End the epoch at any time, of any kind of loader; old programs call it."""
        self._leave()

    @property
    def queue(self) -> Any:
        """The queue of the current epoch, None outside of an epoch."""
        epoch = self._last()
        return None if epoch is None or epoch.state is State.STOPPED else epoch.prefetcher.queue

    _queue = queue


class IterableLoader(Loader):
    """A loader to iterate over: each item is a list of feeds, one for each place, whose arrays live there."""

    iterable = True

    def __init__(
        self,
        specs: Sequence[Spec],
        capacity: int,
        drop_last: bool,
        return_list: bool,
        use_process: bool = False,
        double_buffer: bool = True,
        persistent: bool = False,
    ) -> None:
        super().__init__(specs, capacity, drop_last, use_process, double_buffer, persistent)
        self.return_list = return_list
        self._devices = 1

    def _set(self, feeding: Feeding, places: Any) -> Loader:
        given = as_places(places)
        self._devices = len(given)
        self._targets = devices_at(given)
        return super()._set(feeding, places)

    def _places(self) -> int | None:
        return self._devices

    def _form(self, batch: Batch) -> Any:
        return (
            batch
            if self.return_list
            else {spec.name: item for spec, item in zip(self._specs, batch, strict=True)}
        )

    def __iter__(self) -> Iterator[Any]:
        """A new epoch. A running one ends: its iterators raise RuntimeError."""
        self._source()
        self._leave()
        return self._begin()

    def __next__(self) -> Any:
        """The next item of the running epoch; begins one if there is none."""
        epoch = self._last()
        if epoch is None or epoch.state is not State.RUNNING:
            self._own = epoch = self._begin()
        try:
            return next(epoch)
        except BaseException:
            self._own = None
            raise

    next = __next__


class ProgramLoader(Loader):
    """A loader that a program reads from: `start`, then run without feed until EOFException, then `reset`.

    An executor finds it in `executor.reading` under the names that `register` was given.
    """

    def register(self, *names: str) -> None:
        """Have programs that read from these queue or reader variables take their batches here."""
        for name in names:
            reading.register(name, self)

    def buffer_ahead(self) -> None:
        """Copy batches for GPUs there before they are taken."""
        self._ahead = True

    def start(self) -> None:
        """Begin an epoch: the generator is read ahead in a thread or process.

        Raises RuntimeError if no generator was set, or if the epoch before was neither finished nor reset.
        """
        self._source()
        if self.state is State.RUNNING:
            raise LoaderError(
                "the loader was started already: call reset() before start() begins another epoch"
            )
        self._leave()
        self._own = self._begin()

    def reset(self) -> None:
        """End the epoch at any time. Does nothing if none was started."""
        self._leave()

    def take(self, device: CudaDevice | None = None, of: Devices = ()) -> list[LoDTensor]:
        """The next batch, for the executor, on `device` (None: the host).

        `of`: all devices that take batches round-robin, if there are several. Later batches go there ahead of time.
        Raises EOFException at the end of the epoch and until `start` is called again, the generator's error,
        or RuntimeError if the loader was not started.
        """
        devices: Devices = () if device is None else (device,)
        if of and any(of):
            devices = of
        epoch = self._own
        if devices != self._targets:
            # If the batches of this epoch go to other devices, from the next epoch on.
            self._targets = devices
            if devices and epoch is not None and epoch.state is State.RUNNING:
                epoch.move_to(devices, self._ahead)
        if epoch is None:
            names = ", ".join(repr(spec.name) for spec in self._specs)
            raise LoaderError(
                f"the DataLoader that gives {names} was not started: call its start() before running the "
                "program, and again after each reset()"
            )
        try:
            batch: Batch = epoch.take()
            return delivered(batch, device)
        except QueueClosed:
            raise EOFException(NO_NEXT_DATA) from None
        except EOFException as error:
            # Passed on unchanged, it would look like the regular end of this loader's epoch.
            raise LoaderError(
                f"the reader {self._source().name} raised EOFException ({error}): the program that it runs "
                "has a loader of its own, whose end it has to catch"
            ) from error


def as_places(places: Any) -> list[Place]:
    """The places of an iterable loader as a list; LoaderError for none, TypeError for other things."""
    if places is None:
        raise LoaderError(
            "places cannot be None when the DataLoader is iterable: pass places=fluid.CPUPlace(), "
            "fluid.cpu_places() or fluid.cuda_places()"
        )
    given = list(places) if isinstance(places, (list, tuple)) else [places]
    for place in given:
        if not isinstance(place, Place):
            raise TypeError(f"places must hold fluid.CPUPlace() or fluid.CUDAPlace(n), got {place!r}")
    if not given:
        raise LoaderError("places is empty: an iterable DataLoader needs at least one place")
    for place in given:
        resolve(place)
    return given


def as_capacity(capacity: Any) -> int:
    """A capacity as a positive int; ValueError for None and numbers below 1, TypeError for other things."""
    if capacity is None:
        raise ValueError("give a value to capacity: the number of batches that may be read ahead, at least 1")
    return whole(capacity, "capacity (the number of batches that may be read ahead)", 1)
