"""Sources of a loader: a user's generator, the conversion of its samples, and batches made ahead by a thread or
worker.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._ext.collate import Collator, FieldCountError, Handover, Spec, empty
from ..._ext.queue import QueueClosed
from ...backend import on_device, to_host
from ...base.dtypes import to_numpy
from ...base.errors import EnforceNotMet, called, public
from ...base.lod import Lod
from ...base.reports import profiling
from ...eager import Tensor
from ...executor.lod_tensor import LoDTensor
from ...framework import Program, Variable, default_main_program
from ..collating import Allocate, rows_of
from ..decorators import Reader, check_reader, describe, iterating, whole
from ..threaded import Stream
from ..worker.channel import PoolClosed, maker
from ..worker.pool import BatchRequests, WorkerPool

Batch = list[LoDTensor]


def variables(feed_list: Any, program: Program | None = None) -> list[Variable]:
    """The variables that `feed_list` holds or names.

    Raises TypeError for anything but Variables and strings, ValueError for a name that the program does not
    have.
    """
    if isinstance(feed_list, (Variable, str)):
        feed_list = [feed_list]
    found = []
    for item in feed_list:
        if isinstance(item, str):
            item = (
                (program if program is not None else default_main_program())
                .current_block()
                ._var_recursive(item)
            )
        if not isinstance(item, Variable):
            raise TypeError(
                f"feed_list should contain Variables or their names, got {type(item).__name__}: {item!r:.80}"
            )
        found.append(item)
    return found


def spec_of(var: Variable) -> Spec:
    """The type and shape that batches for a variable must have."""
    return Spec(var.name, to_numpy(var.dtype), var.shape, var.lod_level, var.need_check_feed)


def collator(specs: Sequence[Spec], reader: str = "", memory: Any = None) -> Collator:
    """A collator that makes LoDTensors; `reader` names the source of the samples in messages.

    For `memory` see `Collator`.
    """
    return Collator(specs, LoDTensor.wrap, reader, memory)


class FetchedBatch(NamedTuple):
    """A batch and its cost: the number of `samples`, the seconds for `reading` and `collating` them.

    `worker`: the number of its worker process, where resuming needs it.
    """

    batch: Any
    samples: int
    reading: float
    collating: float
    worker: int | None = None


class Memory(NamedTuple):
    """The memory of batches: `empty` allocates arrays; `lender` is the `memory` of a `Collator`.

    `passing`: each batch is copied before the next one is made, so its memory may be reused.
    """

    empty: Allocate = empty
    lender: Any = None
    passing: bool = False


ORDINARY = Memory()


class Feeding:
    """A generator set on a loader. `batches()` reads it once through; each call is independent of the others.

    `kind` is the name of the method that set it.
    """

    kind = ""

    def __init__(self, reader: Reader, specs: Sequence[Spec]) -> None:
        check_reader(reader, self.kind)
        self.reader = reader
        self.name = describe(reader)
        self.specs = list(specs)
        self.shortfall = ""  # the reason why a reader that yielded samples made no batch

    def batches(self, skip: int = 0, memory: Memory = ORDINARY) -> Iterator[FetchedBatch]:
        """The batches without the first `skip`, which are read."""
        raise NotImplementedError

    def collator(self, memory: Memory) -> Collator:
        """A new collator for one epoch."""
        return collator(self.specs, self.name, memory.lender)


def pass_over(items: Iterator[Any], count: int) -> None:
    """Read and discard `count` items."""
    for _ in itertools.islice(items, count):
        pass


class Samples(Feeding):
    """A generator of samples, put together to batches of `batch_size`."""

    kind = "set_sample_generator"

    def __init__(self, reader: Reader, specs: Sequence[Spec], batch_size: int, drop_last: bool) -> None:
        super().__init__(reader, specs)
        self.batch_size = whole(batch_size, "batch_size", 1)
        self.drop_last = drop_last

    def batches(self, skip: int = 0, memory: Memory = ORDINARY) -> Iterator[FetchedBatch]:
        collate = self.collator(memory)
        with iterating(self.reader) as samples:
            pass_over(samples, skip * self.batch_size)
            while True:
                begin, read, before = time.perf_counter(), collate.reading, collate.samples
                batch = collate.fill(samples, self.batch_size, self.drop_last)
                if batch is None:
                    break
                read = collate.reading - read
                took = max(time.perf_counter() - begin - read, 0.0)
                yield FetchedBatch(batch, collate.samples - before, read, took)
        if collate.samples:
            self.shortfall = (
                f": its {collate.samples} samples are less than one batch of {self.batch_size}, and "
                "drop_last=True leaves them out"
            )


class SampleLists(Feeding):
    """A generator of lists of samples."""

    kind = "set_sample_list_generator"

    def batches(self, skip: int = 0, memory: Memory = ORDINARY) -> Iterator[FetchedBatch]:
        collate = self.collator(memory)
        with iterating(self.reader) as lists:
            pass_over(lists, skip)
            begin = time.perf_counter()
            for samples in lists:
                read = time.perf_counter()
                batch = collate.collate(samples)
                yield FetchedBatch(batch, rows_of(batch), read - begin, time.perf_counter() - read)
                begin = time.perf_counter()


public(FieldCountError)


@called("AssertionError")
class ItemCountError(FieldCountError, EnforceNotMet):
    """A batch that has not one item for each variable."""


class Ready(Feeding):
    """A generator of batches that are ready: one array or LoDTensor for each variable."""

    kind = "set_batch_generator"

    def batches(self, skip: int = 0, memory: Memory = ORDINARY) -> Iterator[FetchedBatch]:
        handover = Handover(memory.lender, memory.passing)
        with iterating(self.reader) as batches:
            pass_over(batches, skip)
            for number in itertools.count(skip):
                begin, read = time.perf_counter(), handover.reading
                try:
                    items = handover.take(batches.__next__)
                except StopIteration:
                    return
                batch = self.tensors(items, handover, f"batch {number} of the reader {self.name}")
                read = handover.reading - read
                yield FetchedBatch(batch, rows_of(batch), read, time.perf_counter() - begin - read)

    def tensors(self, items: Any, handover: Handover, where: str) -> Batch:
        """The batch of an item of the generator, with arrays that the loader owns."""
        return ready_tensors(items, self.specs, handover, where)


def ready_tensors(items: Any, specs: Sequence[Spec], handover: Handover, where: str) -> Batch:
    """One tensor for each variable from arrays, tensors or lists of numbers; arrays in `items` may be kept.

    Variables of `fluid.layers.data` take any type and shape, as in Fluid; those of `fluid.data` what can be converted
    to their type safely, in their shape (a lower rank is left to the step). Raises ItemCountError, and ValueError or
    TypeError saying `where`, expected and got.
    """
    if isinstance(items, np.ndarray) and items.ndim:
        items = list(items)
    if not isinstance(items, (list, tuple)):
        raise TypeError(
            f"{where} must be a list or tuple with one array for each variable, got {items!r:.80} "
            f"({type(items).__name__})"
        )
    if len(items) != len(specs):
        names = ", ".join(repr(spec.name) for spec in specs)
        lists = bool(items) and all(isinstance(item, (list, tuple)) for item in items)
        hint = (
            "; lists of samples, as paddle.batch makes them, go to set_sample_list_generator" if lists else ""
        )
        raise ItemCountError(f"{where} has {len(items)} items, but feed_list has {len(specs)}: {names}{hint}")
    batch = []
    for item, spec in zip(items, specs, strict=True):
        this = f"{where}, variable {spec.name!r}"
        array, lod = plain_array(item, handover, this)
        if array.ndim == 0:
            array = array.reshape(1)  # as one that is fed
        batch.append(LoDTensor.wrap(fitting(array, spec, this) if spec.checked else array, lod))
    return batch


def fitting(array: np.ndarray, spec: Spec, where: str) -> np.ndarray:
    """`array` in the type of `spec`, after a check of its shape."""
    if spec.takes(array):
        return array
    rank = len(spec.shape)
    if array.ndim > rank or (
        array.ndim == rank and any(n not in (-1, m) for n, m in zip(spec.shape, array.shape, strict=True))
    ):
        raise ValueError(f"{where}: expected shape {list(spec.shape)} (-1: any), got {list(array.shape)}")
    if not np.can_cast(array.dtype, spec.dtype, "same_kind"):
        raise TypeError(
            f"{where}: expected dtype {spec.dtype}, got {array.dtype}, which cannot be converted safely"
        )
    return array.astype(spec.dtype, copy=False)


def plain_array(item: Any, handover: Handover, where: str) -> tuple[np.ndarray, Lod]:
    """The elements of an item as a host array, and its LoD; NumPy arrays are not copied, other items are."""
    array: np.ndarray
    lod: Lod = ()
    if type(item) is np.ndarray:
        array = item
    elif isinstance(item, (LoDTensor, Tensor)):
        if item.array is None:
            raise ValueError(f"{where}: the LoDTensor was never set")
        if isinstance(item, LoDTensor):
            lod = item.offsets
        array = to_host(item.array) if on_device(item.array) else handover.copy(item.array)
    else:
        try:
            array = np.array(item)
        except ValueError:
            raise ValueError(f"{where} is a ragged list, which makes no array: {item!r:.80}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{where}: expected an array, a tensor or a list of numbers, got {type(item).__name__} of type "
            f"{array.dtype}: {item!r:.80}"
        )
    return array, lod


class Prefetcher:
    """The source of the batches of an epoch.

    It releases threads and processes by itself when it fails, and otherwise in `stop`.
    """

    # Whether a thread in `get` should get a moment to leave before it is interrupted.
    patient = False

    def get(self) -> FetchedBatch:
        """The next batch. Raises QueueClosed at the end, or the reader's error, in every later call too."""
        raise NotImplementedError

    def failed(self, error: BaseException) -> bool:
        """Whether `error`, raised by `get`, ends the epoch."""
        return isinstance(error, Exception)

    def waiting(self) -> int:
        """How many batches are under way."""
        return 0

    def idle(self) -> float:
        """Seconds in which the readers waited for room."""
        return 0.0

    def stop(self, finished: bool) -> None:
        """Release the resources of the epoch; `finished`: whether all batches were taken. Idempotent."""

    def interrupt(self) -> None:
        """Wake a thread that waits in `get`; only `stop` may follow."""

    @property
    def queue(self) -> Any:
        """The queue in which batches wait."""
        return self

    size = waiting


def recorded(batches: Iterator[FetchedBatch]) -> Iterator[FetchedBatch]:
    """`batches`, with the time to read and collate each recorded for the profile, in the thread that does it."""
    with contextlib.ExitStack() as stack:
        if hasattr(batches, "close"):
            stack.callback(batches.close)
        for made in batches:
            recorder, end = profiling.detailed(), time.perf_counter_ns()
            if recorder is not None:
                read = end - int(1e9 * made.collating)
                recorder.add("reading", read - int(1e9 * made.reading), read, profiling.Kind.OTHER)
                recorder.add("collating", read, end, profiling.Kind.OTHER)
            yield made


class Direct(Prefetcher):
    """Batches made when they are asked for."""

    def __init__(self, batches: Iterator[FetchedBatch]) -> None:
        self._batches = batches if profiling.detailed() is None else recorded(batches)

    def get(self) -> FetchedBatch:
        for made in self._batches:
            return made
        raise QueueClosed("the epoch is over")

    def stop(self, finished: bool) -> None:
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


class Threaded(Prefetcher):
    """Batches made ahead by a thread, at most `capacity` of them. `name`: that of the source."""

    def __init__(self, batches: Iterator[FetchedBatch], capacity: int, name: str) -> None:
        source = batches if profiling.detailed() is None else recorded(batches)
        self._stream = Stream(lambda: source, capacity, f"loader of {name}")
        self.get = self._stream.get  # type: ignore[method-assign]
        self.failed = self._stream.failed  # type: ignore[method-assign]

    def waiting(self) -> int:
        return len(self._stream.queue)

    def idle(self) -> float:
        return self._stream.queue.stats()["put_seconds"]

    def stop(self, finished: bool) -> None:
        self._stream.stop()

    def interrupt(self) -> None:
        self._stream.queue.kill()

    @property
    def queue(self) -> Any:
        return self._stream.queue


class FromWorkers(Prefetcher):
    """Batches made by the processes of a pool, which goes back to `release`, or is closed if there is none."""

    def __init__(self, requests: BatchRequests, release: Callable[[WorkerPool], None] | None = None) -> None:
        self._requests = requests
        self._release = release
        self._idle_before = requests.pool.stats()["idle"]
        self._failure: Callable[[], BaseException] | None = None
        self._interrupted = False
        self._taking = threading.RLock()
        self.patient = release is not None

    def get(self) -> FetchedBatch:
        self._requests.pool.require_own()  # first, because another thread may have had the lock when we were forked
        with self._taking:
            if self._failure is not None:
                raise self._failure()
            try:
                return self._requests.get()
            except (QueueClosed, PoolClosed):
                raise QueueClosed("the workers are done") from None
            except Exception as error:
                self._failure = maker(error)
                self._requests.close()
                raise
            except BaseException:  # Ctrl-C: the number of outstanding requests is unknown
                self._interrupted = True
                raise

    def waiting(self) -> int:
        return self._requests.waiting()

    def idle(self) -> float:
        pool = self._requests.pool
        return (pool.stats()["idle"] - self._idle_before) / pool.count

    def stop(self, finished: bool) -> None:
        pool = self._requests.pool
        if self._release is None or self._interrupted or pool.closed:
            self._requests.close()
            return
        if not finished:
            self._requests.leave()
        release, self._release = self._release, _kept
        release(pool)

    def interrupt(self) -> None:
        self._requests.close()


def _kept(pool: WorkerPool) -> None:
    """Placeholder of a release function after the pool was handed on."""
