"""`DataLoader.from_generator`: batches read asynchronously, for loops or for programs
(`fluid.io.DataLoader`).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._ext.collate import Spec
from ..._ext.queue import Queue, QueueClosed
from ...base.errors import EOFException
from ...base.place import Place, resolve
from ...executor import sources
from ...executor.lod_tensor import LoDTensor
from ..background import Stream, finalize
from ..decorators import Reader, whole
from ..worker.stream import WorkerStream
from .device_buffer import MovedStream, delivered, devices_at
from .pipeline import LoaderError, Pipeline, State
from .progress import with_progress
from .source import DeviceSets, Feeding, Ready, SampleLists, Samples
from .stats import summarize

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice
    from .device_buffer import Devices


class Loader:
    """What all loaders share: the generator, and the pipeline that its batches go through.

    `specs`: what the items of a batch look like; `capacity`: how many batches may wait; `use_process`: run the
    generator in a process of its own; `double_buffer`: copy batches to GPUs ahead of time.
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
    ) -> None:
        self.drop_last = drop_last
        self._specs = list(specs)
        self._pipeline = Pipeline(capacity, use_process)
        self._pipeline.ahead = double_buffer
        self._feeding: Feeding | None = None

    def set_sample_generator(
        self, reader: Reader, batch_size: int, drop_last: bool = True, places: Any = None
    ) -> Loader:
        """Read samples from `reader` and put `batch_size` of them into each batch.

        `reader` yields samples: a tuple or list with one item for each variable, or the item itself if there
        is only one variable. Items are converted to the variable's dtype and reshaped to its shape, and
        copied at once. `drop_last`: leave out a last batch that is smaller. `places`: the devices of an
        iterable loader, one or a list. Takes effect with the next epoch. Returns the loader.
        """
        return self._set(self._samples(reader, self._specs, batch_size, drop_last), places)

    def set_sample_list_generator(self, reader: Reader, places: Any = None) -> Loader:
        """Read lists of samples (such as `paddle.batch` makes) from `reader`; each becomes a batch.

        Samples are tuples; see `DataFeeder.feed`. `places` as in `set_sample_generator`. Returns the loader.
        """
        return self._set(self._lists(reader, self._specs), places)

    def set_batch_generator(self, reader: Reader, places: Any = None) -> Loader:
        """Read batches that are ready from `reader`: a NumPy array or LoDTensor for each variable.

        Arrays may be changed after they were yielded: they are copied, unless nothing but the yielded list has hold of
        them. `places` as in `set_sample_generator`. Returns the loader.
        """
        return self._set(self._ready(reader, self._specs), places)

    def _set(self, feeding: Feeding, places: Any) -> Loader:
        self._feeding = feeding
        return self

    def _source(self) -> Feeding:
        if self._feeding is None:
            raise LoaderError(
                "the data source of the DataLoader has not been set: call set_sample_generator, "
                "set_sample_list_generator or set_batch_generator first"
            )
        return self._feeding

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
            "reset() is for loaders made with iterable=False; this one begins anew when it is iterated"
        )

    def close(self) -> None:
        """Stop reading and release the generator's thread or process. The loader can be used again afterwards."""
        self._pipeline.stop()

    def _reset(self) -> None:
        """End the epoch, wherever it stands, of any kind of loader; programs of Fluid's time call it."""
        self._pipeline.stop()

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is: the number of the `epoch`, and the `batches` taken in it (sets of them, with several
        devices). Batches that were read ahead do not count.
        """
        return self._pipeline.state_dict()

    def set_state_dict(self, state: Mapping[str, Any]) -> None:
        """Have the next epoch go on where `state_dict` was called: it gives exactly the batches that were left.

        The generator is read from its beginning and what was taken before is left out, so it has to yield the same
        again (seed what it draws). Raises ValueError for a state of something else.
        """
        self._pipeline.set_state_dict(state)

    def progress(self, **options: Any) -> Iterator[Any]:
        """A new epoch of an iterable loader with a progress bar; `options` are those of `tqdm.tqdm` (`total=...`).

        Raises NotSupportedError if tqdm is not installed.
        """
        initial = self._pipeline.state_dict()["batches"]
        return with_progress(iter(self), None, {"initial": initial, **options})

    def stats(self) -> dict[str, Any]:
        """How much was read and who waited for whom; see `Pipeline.stats`."""
        return self._pipeline.stats()

    def summary(self) -> str:
        """The statistics as a table to print, with the bottleneck and what may help against it."""
        return summarize(self.stats())

    @property
    def state(self) -> State:
        """What the loader is doing."""
        return self._pipeline.state

    @property
    def queue(self) -> Queue | WorkerStream | MovedStream | None:
        """The queue of the current epoch, None outside of an epoch."""
        stream = self._pipeline.stream
        return None if stream is None else stream.queue

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
    ) -> None:
        super().__init__(specs, capacity, drop_last, use_process, double_buffer)
        self._pipeline.sets = True
        self.return_list = return_list
        self._devices = 1
        self._current: weakref.ref[Epoch] | None = None
        self._own: Epoch | None = None

    def _set(self, feeding: Feeding, places: Any) -> Loader:
        given = as_places(places)
        self._devices = len(given)
        self._pipeline.devices = devices_at(given)
        return super()._set(feeding, places)

    def __iter__(self) -> Epoch:
        """A new epoch. One that is on ends: whoever still iterates over it gets a RuntimeError."""
        feeding = self._source()
        self._pipeline.stop()
        epoch = self._begin(feeding)
        self._current = weakref.ref(epoch)
        self._own = None
        return epoch

    def _begin(self, feeding: Feeding) -> Epoch:
        devices, return_list, drop_last = self._devices, self.return_list, self.drop_last
        stream = self._pipeline.start(
            feeding, lambda batches: DeviceSets(batches, feeding, devices, return_list, drop_last), devices
        )
        return Epoch(self._pipeline, stream)

    def __next__(self) -> Any:
        """The next item of the epoch that is on; begins one if there is none."""
        epoch = self._current() if self._current is not None else None
        if epoch is None:
            epoch = self._own = iter(self)
        try:
            return next(epoch)
        except BaseException:
            self._current = self._own = None
            raise

    next = __next__


class Epoch:
    """One pass over the data of an iterable loader; it ends early when the iterator is let go."""

    __slots__ = ("__weakref__", "_pipeline", "_stream")

    def __init__(self, pipeline: Pipeline, stream: Stream | WorkerStream | MovedStream) -> None:
        self._pipeline = pipeline
        self._stream = stream

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        try:
            return self._pipeline.take(self._stream)
        except QueueClosed:
            if self._stream is not self._pipeline.stream:
                raise LoaderError(
                    "this epoch ended because the same DataLoader was iterated again or closed meanwhile; "
                    "make a loader of its own for each loop that runs at the same time"
                ) from None
            raise StopIteration from None

    def close(self) -> None:
        """End the epoch and release the generator's thread or process."""
        if self._stream is self._pipeline.stream:
            self._pipeline.stop()

    def __del__(self) -> None:
        finalize(self.close)


class ProgramLoader(Loader):
    """A loader that a program reads from: `start`, then run without feed until EOFException, then `reset`.

    An executor finds it in `executor.sources` under the names that `register` was given.
    """

    def register(self, *names: str) -> None:
        """Have programs that read from these queue or reader variables take their batches here."""
        for name in names:
            sources.register(name, self)

    def buffer_ahead(self) -> None:
        """Copy batches for GPUs there before they are taken."""
        self._pipeline.ahead = True

    def start(self) -> None:
        """Begin an epoch: the generator is read ahead in a thread or process.

        Raises RuntimeError if no generator was set, or if the epoch before was neither finished nor reset.
        """
        feeding = self._source()
        self._pipeline.start(feeding)

    def reset(self) -> None:
        """End the epoch, wherever it stands. Does nothing if none was started."""
        self._pipeline.stop()

    def take(self, device: CudaDevice | None = None, of: Devices = ()) -> list[LoDTensor]:
        """The next batch, for the executor, on `device` (None: the host).

        `of`: all the devices that take batches in turn, if there are several. Later batches go there ahead of time.
        Raises EOFException at the end of the epoch and until `start` is called again, the generator's error,
        or RuntimeError if the loader was not started.
        """
        devices: Devices = () if device is None else (device,)
        if of and any(of):
            devices = of
        if devices != self._pipeline.devices:
            self._pipeline.move_to(devices)
        stream = self._pipeline.stream
        if stream is None:
            names = ", ".join(repr(spec.name) for spec in self._specs)
            raise LoaderError(
                f"the DataLoader that gives {names} was not started: call its start() before running the "
                "program, and again after each reset()"
            )
        try:
            return delivered(self._pipeline.take(stream), device)
        except QueueClosed:
            raise EOFException("There is no next data.") from None
        except EOFException as error:
            # Passed on as it is, it would end this loader's epoch and be taken for a success.
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
