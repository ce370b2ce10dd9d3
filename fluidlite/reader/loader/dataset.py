"""`DataLoader(dataset, ...)`: batches of a dataset, read ahead by a thread or by worker processes."""

from __future__ import annotations

import itertools
import operator
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...base.place import CPUPlace
from ...framework import mode
from .. import samplers
from ..collating import as_lod_tensors, as_tensors
from ..dataset import Dataset, IterableDataset, is_numbered
from ..fetcher import Fetcher, FetcherConfig
from ..samplers import BatchSampler, FluidBatchSampler, RandomSampler, SequenceSampler, is_count, require
from ..worker.batches import Numbered, Streamed, serve
from ..worker.pool import WorkerPool
from .base import BaseLoader
from .device_buffer import DevicePrefetcher, devices_at, memory_for
from .epoch import BatchFormat, Epoch, Position
from .from_generator import GeneratorLoaders
from .generator import as_places
from .source import Direct, FetchedBatch, FromWorkers, Prefetcher, Threaded, spec_of, variables
from .stats import Meter


class DataLoader(GeneratorLoaders, BaseLoader):
    """Batches of a `dataset`, in the order of a sampler. Iterate over the loader, or over the result of calling it.

    Args:
        dataset: a `Dataset`, an `IterableDataset`, or anything with `__getitem__` and `__len__`.
        feed_list: Variables (or names) that the batches are for, in static mode. Samples are then converted to the
            variables' types and shapes, and may be dicts by the variables' names.
        places: devices, one or a list; by default the CPU, in dygraph mode the current place. In static mode each item
            is a list with one batch for each.
        return_list: static mode: give lists of LoDTensors instead of dicts by variable name.
        batch_sampler: a `BatchSampler` instead of `batch_size`, `shuffle` and `drop_last`.
        batch_size: samples of a batch; None: samples are passed on one by one, without a new dimension.
        shuffle: draw a new order for each epoch, from `numpy.random`.
        drop_last: leave out a last batch that is smaller.
        collate_fn: makes a batch of a list of samples; by default arrays and numbers are stacked.
        num_workers: processes that read; 0: a thread of this process does. The order of batches is the same.
        use_buffer_reader: whether batches for GPUs are copied there before they are taken, and, without workers,
            whether a thread reads ahead.
        use_shared_memory: whether workers hand batches over in shared memory, or copy them through pipes.
        timeout: seconds to wait for a batch from a worker, 0 for ever.
        worker_init_fn: called with the worker's number when a worker starts.
        prefetch_factor: batches that are read ahead (by each worker).
        persistent_workers: keep the workers from one epoch to the next.
        progress: show a progress bar while iterating.

    In dygraph mode a batch is a list of eager Tensors. Several loops may run over one loader at the same time. Raises
    AssertionError for wrong arguments. Follows `fluid.io.DataLoader`.
    """

    _sampler: type[BatchSampler] = FluidBatchSampler
    # Whether lists in samples are nested fields, so that batches have the structure of samples.
    _nested = False
    _keys = ("order", "workers")

    def __init__(
        self,
        dataset: Dataset[Any],
        feed_list: Any = None,
        places: Any = None,
        return_list: bool = False,
        batch_sampler: BatchSampler | None = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        prefetch_factor: int = 2,
        persistent_workers: bool = False,
        progress: bool = False,
    ) -> None:
        require(
            is_numbered(dataset) or isinstance(dataset, IterableDataset),
            "dataset should be subclass instance of paddle.io.Dataset (TensorDataset makes one of arrays), or have "
            f"__getitem__ and __len__, but got {type(dataset).__name__}",
        )
        require(
            _whole(num_workers) >= 0, f"num_workers should be a non-negative value, but got {num_workers!r}"
        )
        require(
            isinstance(timeout, (int, float, np.number)) and timeout >= 0,
            f"timeout should be a non-negative value, but got {timeout!r}",
        )
        for name, function in (("collate_fn", collate_fn), ("worker_init_fn", worker_init_fn)):
            require(
                function is None or callable(function),
                f"{name} should be a function or None, but got {function!r}",
            )
        require(
            is_count(prefetch_factor),
            f"prefetch_factor should be a positive integer, but got {prefetch_factor!r}",
        )
        super().__init__()
        self.dataset = dataset
        self.feed_list = None if feed_list is None else variables(feed_list)
        if places is None:
            places = mode._current_expected_place() if self._eager() else CPUPlace()
        self.places = as_places(places)
        self._targets = devices_at(self.places)
        self.return_list = return_list
        self.collate_fn = collate_fn
        self.num_workers = _whole(num_workers)
        self.use_buffer_reader = use_buffer_reader
        self.use_shared_memory = use_shared_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.batch_sampler = self._sampler_of(batch_sampler, batch_size, shuffle, drop_last)
        self.batch_size = getattr(self.batch_sampler, "batch_size", batch_size)
        self.drop_last = getattr(self.batch_sampler, "drop_last", drop_last)
        specs = None if self.feed_list is None else [spec_of(var) for var in self.feed_list]
        self._names = [spec.name for spec in specs or ()]
        self._config = FetcherConfig(
            dataset,
            collate_fn,
            None
            if specs is None
            else [(spec.name, spec.dtype, spec.shape, spec.lod_level, spec.checked) for spec in specs],
            None if batch_size is None and batch_sampler is None else self.batch_size or 1,
            self.drop_last,
            self._nested,
        )
        self._bar = progress
        self._pool: WorkerPool | None = None  # kept for the next epoch
        self._check_mode()

    def _described(self) -> str:
        return type(self.dataset).__name__

    def _sampler_of(self, batch_sampler: Any, batch_size: int | None, shuffle: bool, drop_last: bool) -> Any:
        """The batch sampler of the arguments; None for an IterableDataset."""
        iterable = isinstance(self.dataset, IterableDataset)
        if batch_sampler is not None:
            require(
                batch_size == 1 and not shuffle and not drop_last,
                "batch_size/shuffle/drop_last should not be set when batch_sampler is given",
            )
            require(not iterable, "an IterableDataset has no numbered samples for a batch_sampler")
            require(
                isinstance(batch_sampler, BatchSampler),
                "batch_sampler should be None or subclass instance of paddle.io.BatchSampler, but got "
                f"{type(batch_sampler).__name__}",
            )
            return batch_sampler
        require(isinstance(shuffle, bool), f"shuffle should be a boolean value, but got {type(shuffle)}")
        require(
            is_count(batch_size) or (batch_size is None and self._nested),
            f"batch_size should be a positive value when batch_sampler is not given, but got {batch_size!r}",
        )
        if iterable:
            require(not shuffle, "an IterableDataset cannot be shuffled: it comes in its own order")
            return None
        if batch_size is None:
            require(not drop_last, "drop_last needs a batch_size")
            return RandomSampler(self.dataset) if shuffle else SequenceSampler(self.dataset)
        return self._sampler(self.dataset, None, shuffle, batch_size, drop_last)

    def _eager(self) -> bool:
        """Whether batches are eager Tensors: the mode decides unless there are Variables to feed."""
        return self.feed_list is None and mode.in_dygraph_mode()

    def _check_mode(self) -> None:
        if self._eager():
            require(len(self.places) == 1, "Number of places must be 1 in dygraph mode")
        else:
            require(
                self.return_list or self.feed_list is not None,
                "feed_list should be set when return_list=False in static mode",
            )

    def __len__(self) -> int:
        """How many batches an epoch has. Raises TypeError for an IterableDataset without a length."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        count, size = len(self.dataset), self._config.batch_size or 1
        return count // size if self.drop_last else -(-count // size)

    def __iter__(self) -> Iterator[Any]:
        """A new epoch; one from where `set_state_dict` says, if it was called."""
        return self.progress() if self._bar else self._begin()

    def _total(self) -> int | None:
        try:
            return len(self) // self._batches_per_item()
        except TypeError:
            return None

    def _batches_per_item(self) -> int:
        return self._devices() or 1

    def _devices(self) -> int | None:
        return None if self._eager() else len(self.places)

    def _begin(self) -> Epoch:
        self._check_mode()
        return super()._begin()

    def _open(self, position: Position, meter: Meter) -> Epoch:
        name = type(self.dataset).__name__
        prefetcher = self._streamed(position) if self.batch_sampler is None else self._numbered(position)
        if self._targets:
            prefetcher = DevicePrefetcher(prefetcher, self._targets, self.use_buffer_reader, meter, name)
        return Epoch(prefetcher, position, BatchFormat(self._form(), self._barren, self._devices()), meter)

    def _barren(self, left: int) -> str:
        return (
            f"the dataset {type(self.dataset).__name__} gave no batch in this epoch: it has no samples, or less than "
            "one batch (for each place) with drop_last=True"
        )

    def _numbered(self, position: Position) -> Prefetcher:
        if position.order is None:
            position.order = samplers.state_of(self.batch_sampler)
            numbers = samplers.begin_epoch(self.batch_sampler)
        else:
            numbers = samplers.begin_epoch(self.batch_sampler, position.order)
        for _ in itertools.islice(numbers, position.batches):
            pass
        if self.num_workers:
            return self._from_workers(lambda pool: Numbered(pool, numbers, self.prefetch_factor))
        return self._in_this_process(self._fetcher().each(numbers))

    def _streamed(self, position: Position) -> Prefetcher:
        if position.batches and len(position.workers) != self.num_workers:
            raise ValueError(
                f"an epoch over an IterableDataset that was begun with num_workers={len(position.workers)} cannot go "
                f"on with {self.num_workers}: every worker reads a part of its own"
            )
        if not self.num_workers:
            return self._in_this_process(self._fetcher().stream(position.batches))
        position.workers = position.workers or [0] * self.num_workers
        return self._from_workers(lambda pool: Streamed(pool, position.workers, self.prefetch_factor))

    def _fetcher(self) -> Fetcher:
        """The fetcher for batches made in this process."""
        return self._config.fetcher(memory_for(self._targets, self.use_buffer_reader))

    def _in_this_process(self, batches: Iterator[FetchedBatch]) -> Prefetcher:
        if not self.use_buffer_reader:
            return Direct(batches)
        return Threaded(batches, self.prefetch_factor, type(self.dataset).__name__)

    def _from_workers(self, begin: Callable[[WorkerPool], Numbered | Streamed]) -> Prefetcher:
        pool = self._kept_pool()
        if pool is None:
            pool = WorkerPool(
                self.num_workers,
                serve,
                self._config,
                name=f"the DataLoader of {type(self.dataset).__name__}",
                ahead=self.prefetch_factor,
                timeout=self.timeout,
                seed=self._seed(),
                worker_init=self.worker_init_fn,
                use_shared_memory=self.use_shared_memory,
            )
        try:
            return FromWorkers(begin(pool), self._keep if self.persistent_workers else None)
        except BaseException:
            pool.close()
            raise

    def _seed(self) -> int:
        """A seed for the workers of the next pool that `np.random.seed` fixes; nothing is drawn for it."""
        state = np.random.get_state(legacy=False)
        words = np.append(state["state"]["key"], np.uint32(state["state"]["pos"] + 1000 * self._tally.epochs))
        return zlib.crc32(words.tobytes()) >> 1

    def _form(self) -> Callable[[Any], Any]:
        """The function that converts a batch to the consumer's format."""
        if self._eager():
            return lambda batch: self._listed(as_tensors(batch))
        if self.feed_list is None:
            return lambda batch: self._listed(as_lod_tensors(batch))
        if self.return_list:
            return lambda batch: batch
        names = self._names
        return lambda batch: dict(zip(names, batch, strict=True))

    def _listed(self, batch: Any) -> Any:
        return batch if self._nested or isinstance(batch, (list, dict)) else [batch]

    def _order(self) -> dict[str, Any] | None:
        return None if self.batch_sampler is None else samplers.state_of(self.batch_sampler)

    def _checked(self, state: Mapping[str, Any]) -> dict[str, Any]:
        found = super()._checked(state)
        if (found["order"] is None) is not (self.batch_sampler is None):
            kind = "an IterableDataset" if found["order"] is None else "a dataset with numbered samples"
            raise ValueError(
                f"this is the state of a loader of {kind}, which {type(self.dataset).__name__} is not"
            )
        return found

    def _capacity(self) -> int:
        return self.prefetch_factor * max(self.num_workers, 1)

    def _workers(self) -> int:
        return self.num_workers


def _whole(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise AssertionError(f"num_workers should be an integer, but got {value!r}") from None
