"""`DataLoader.from_generator`, which loader reads a generator, and older names of loaders in `fluid.reader`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._ext.collate import Handover
from ...base import callsite
from ...base.context import Slot
from ...base.unique_name import UniqueNameGenerator
from ...eager import Tensor
from ...executor.lod_tensor import LoDTensor
from ...framework import mode
from ..collating import collate, rows_of
from ..decorators import iterating
from ..watchdog import _cleanup as _cleanup
from ..watchdog import multiprocess_queue_set as multiprocess_queue_set
from . import tensor_queue
from .epoch import LoaderError
from .generator import IterableLoader, Loader, ProgramLoader, as_capacity, as_places
from .source import (
    ORDINARY,
    Batch,
    Feeding,
    FetchedBatch,
    Memory,
    Ready,
    SampleLists,
    Samples,
    pass_over,
    plain_array,
    spec_of,
    variables,
)

if TYPE_CHECKING:
    from .of_files import DatasetLoader


class OpenSamples(Samples):
    """Samples of any arrays and numbers; those of a batch must have equal shapes and structures."""

    def batches(self, skip: int = 0, memory: Memory = ORDINARY) -> Iterator[FetchedBatch]:
        with iterating(self.reader) as samples:
            pass_over(samples, skip * self.batch_size)
            while True:
                begin = time.perf_counter()
                rows = list(itertools.islice(samples, self.batch_size))
                if not rows or (self.drop_last and len(rows) < self.batch_size):
                    break
                yield stacked(self, rows, begin, memory)
        if rows:
            self.shortfall = (
                f": its {len(rows)} samples are less than one batch of {self.batch_size}, and drop_last=True leaves "
                "them out"
            )


class OpenSampleLists(SampleLists):
    """Lists of such samples."""

    def batches(self, skip: int = 0, memory: Memory = ORDINARY) -> Iterator[FetchedBatch]:
        with iterating(self.reader) as lists:
            pass_over(lists, skip)
            begin = time.perf_counter()
            for samples in lists:
                yield stacked(self, samples, begin, memory)
                begin = time.perf_counter()


def stacked(feeding: Feeding, samples: Any, begin: float, memory: Memory) -> FetchedBatch:
    """The batch of a list of samples, which were read from `begin` on."""
    read = time.perf_counter()
    if not hasattr(samples, "__iter__"):
        raise TypeError(
            f"the reader {feeding.name} given to {feeding.kind} should yield lists of samples, got "
            f"{type(samples).__name__}"
        )
    columns = collate(list(samples), False, memory.empty, f"the reader {feeding.name}")
    batch = []
    for i, column in enumerate(columns if isinstance(columns, list) else [columns]):
        if not isinstance(column, np.ndarray):
            raise TypeError(
                f"item {i} of the samples of the reader {feeding.name} is no array or number: a Tensor cannot hold it"
            )
        batch.append(LoDTensor.wrap(column))
    return FetchedBatch(batch, rows_of(batch), read - begin, time.perf_counter() - read)


class OpenReady(Ready):
    """Batches that are ready: arrays, tensors or nested lists of numbers."""

    def tensors(self, items: Any, handover: Handover, where: str) -> Batch:
        given = items if isinstance(items, (list, tuple)) else [items]
        return [
            LoDTensor.wrap(plain_array(item, handover, f"item {i} of {where}")[0])
            for i, item in enumerate(given)
        ]


class EagerLoader(IterableLoader):
    """A loader of dygraph mode: each item is a batch, a list of Tensors on the loader's memory, at the current place.

    `capacity`: how many batches may wait; `use_process`: run the generator in a process of its own; `double_buffer`:
    copy batches to a GPU ahead of time; `persistent`: keep that process from one epoch to the next.
    """

    _samples = OpenSamples
    _lists = OpenSampleLists
    _ready = OpenReady

    def __init__(
        self, capacity: int, use_process: bool = False, double_buffer: bool = True, persistent: bool = False
    ) -> None:
        super().__init__((), capacity, False, True, use_process, double_buffer, persistent)

    def _set(self, feeding: Feeding, places: Any) -> Loader:
        given = as_places(places if places is not None else mode._current_expected_place())
        if len(given) > 1:
            raise LoaderError(f"Number of places must be 1 in imperative mode, got {len(given)}: {given}")
        return super()._set(feeding, given)

    def _places(self) -> int | None:
        return None

    def _form(self, batch: Batch) -> list[Tensor]:
        return [Tensor(tensor.array) for tensor in batch]


class GeneratorLoaders:
    """The half of `DataLoader` that makes loaders of generators."""

    @staticmethod
    def from_generator(
        feed_list: Any = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
        *,
        persistent_workers: bool = False,
    ) -> Loader:
        """A loader of the batches of a generator (`fluid.io.DataLoader.from_generator`).

        It reads ahead in a thread or process. In dygraph mode it is iterable and gives lists of Tensors; `feed_list` is
        not needed.

        Args:
            feed_list: the Variables that batches are for (or their names).
            capacity: how many batches may wait.
            use_double_buffer: batches for GPUs are copied there before they are taken (the CPU needs no second buffer).
            iterable: loop over it and feed what it gives; otherwise the default main program gets operators that read
                from it, and `start` and `reset` bracket each epoch.
            return_list: an iterable loader gives lists of LoDTensors instead of dictionaries.
            use_multiprocess: the generator runs in a process of its own, which hands batches over through shared
                memory. Each epoch forks this process in its current state.
            drop_last: leave out batches at the end that are fewer than the devices.
            persistent_workers: the process stays for the next epoch, if one was read to its end, and calls the
                generator function again: changes made there persist, but changes made here after the first epoch are
                not seen (except the states of `random` and `numpy.random`, which are exchanged).

        Returns:
            A loader without a source: give it one by `set_sample_generator`, `set_sample_list_generator` or
            `set_batch_generator`.

        Raises:
            ValueError: `feed_list` is missing, or `capacity` is below 1.
            TypeError: for other kinds of arguments.

        Example:
            >>> import numpy as np
            >>> import paddle.fluid as fluid

            >>> def batches():
            ...     for number in range(3):
            ...         yield [np.full([2, 1], number, "float32")]
            >>> x = fluid.data("x", [None, 1], "float32")
            >>> loader = fluid.io.DataLoader.from_generator(feed_list=[x], capacity=4)
            >>> _ = loader.set_batch_generator(batches, places=fluid.cpu_places(1))
            >>> exe, total = fluid.Executor(fluid.CPUPlace()), fluid.layers.reduce_sum(x)
            >>> [exe.run(feed=feed, fetch_list=[total])[0].item() for feed in loader()]
            [0.0, 2.0, 4.0]
        """
        return make_loader(
            feed_list,
            capacity,
            use_double_buffer,
            iterable,
            return_list,
            drop_last,
            bool(use_multiprocess),
            bool(persistent_workers),
        )

    @staticmethod
    def from_dataset(dataset: Any, places: Any, drop_last: bool = True) -> DatasetLoader:
        """A loader of the batches of a data set of files (`fluid.io.DataLoader.from_dataset`); see `DatasetLoader`."""
        from .of_files import DatasetLoader  # few programs read such files

        return DatasetLoader(dataset, places, drop_last)


def make_loader(
    feed_list: Any,
    capacity: Any,
    use_double_buffer: bool,
    iterable: bool,
    return_list: bool,
    drop_last: bool,
    use_process: bool = False,
    persistent: bool = False,
) -> IterableLoader | ProgramLoader:
    """See `DataLoader.from_generator`."""
    size = as_capacity(capacity)
    buffered = bool(use_double_buffer)
    if mode.in_dygraph_mode():
        if not iterable:
            callsite.warn("loaders are always iterable in dygraph mode: iterable=False is ignored")
        return EagerLoader(size, use_process, buffered, persistent)
    if feed_list is None:
        raise ValueError(
            "feed_list must be given in static mode: the list of Variables that the loader feeds"
        )
    found = variables(feed_list)
    if not found:
        raise ValueError("feed_list is empty: the loader needs at least one Variable to feed")
    specs = [spec_of(var) for var in found]
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        raise ValueError(f"feed_list names a variable twice: {names}")
    if iterable:
        return IterableLoader(specs, size, drop_last, return_list, use_process, buffered, persistent)
    loader = ProgramLoader(specs, size, drop_last, use_process, buffered, persistent)
    loader.register(*tensor_queue.insert(found, use_double_buffer, drop_last))
    return loader


QUEUE_GET_TIMEOUT = 60
"""Seconds after which Fluid checks whether a worker lives; here its end is noticed at once."""

KEEP_DATA_LOADER_ORDER = True

data_loader_unique_name_generator = UniqueNameGenerator()

_order = Slot("keep_data_loader_order", KEEP_DATA_LOADER_ORDER)

DataLoaderBase = Loader


class GeneratorLoader:
    """Calling it makes the loader that `DataLoader.from_generator` makes in static mode."""

    _check_input_array = Loader._check_input_array

    def __new__(
        cls,
        feed_list: Any = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        drop_last: bool = True,
    ) -> Any:
        return make_loader(feed_list, capacity, use_double_buffer, iterable, return_list, drop_last)


class DygraphGeneratorLoader:
    """Calling it makes the loader that `DataLoader.from_generator` makes in dygraph mode."""

    def __new__(
        cls,
        feed_list: Any = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = True,
        use_multiprocess: bool = False,
    ) -> Any:
        return EagerLoader(as_capacity(capacity), use_multiprocess, bool(use_double_buffer))


def keep_data_loader_order(*args: bool) -> bool | None:
    """Whether the order of batches is to be kept, which it always is; with an argument: set the answer."""
    if not args:
        return _order.get()
    _order.set(bool(args[0]))
    return None
