"""Making the batches of a dataset, in this process or in a worker: reading, collating and timing samples."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._ext.collate import Handover, Spec
from ..eager import Tensor
from ..executor.lod_tensor import LoDTensor
from .collating import collate, transform
from .dataset import Dataset, IterableDataset
from .loader.source import ORDINARY, FetchedBatch, Memory, collator, ready_tensors


class FetcherConfig:
    """The picklable configuration of a `Fetcher`, which worker processes receive.

    `specs`: arguments of `Spec` for the variables that the batches feed; None if there are none, and the samples
    decide. `batch_size`: of an IterableDataset, None to pass samples on as they are. `nested`: whether lists
    inside of samples are structures (Paddle 2.0) or rows of numbers (Fluid 1.8).
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        collate_fn: Callable[[list[Any]], Any] | None,
        specs: Sequence[tuple[Any, ...]] | None,
        batch_size: int | None,
        drop_last: bool,
        nested: bool,
    ) -> None:
        self.dataset = dataset
        self.collate_fn = collate_fn
        self.specs = specs
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.nested = nested

    @property
    def iterable(self) -> bool:
        """Whether the dataset is an IterableDataset."""
        return isinstance(self.dataset, IterableDataset)

    def fetcher(self, memory: Memory = ORDINARY) -> Fetcher:
        """A fetcher for one thread that allocates batches in this memory."""
        return Fetcher(self, memory)


class Fetcher:
    """Makes the batches of a `FetcherConfig`, in one thread."""

    def __init__(self, config: FetcherConfig, memory: Memory) -> None:
        self.config = config
        self.allocate = memory.empty
        self._source = f"DataLoader of {type(config.dataset).__name__}"
        self._specs = [Spec(*spec) for spec in config.specs or ()]
        self._handover = Handover(memory.lender, memory.passing)
        self._collator = None if config.specs is None else collator(self._specs, self._source, memory.lender)

    def numbered(self, numbers: Any) -> FetchedBatch:
        """The batch of the samples with these numbers; the sample itself for a single number."""
        begin = time.perf_counter()
        dataset = self.config.dataset
        if self.config.batch_size is None and not isinstance(numbers, (list, tuple)):
            return self._single(dataset[numbers], begin)
        if not hasattr(numbers, "__iter__"):
            raise TypeError(
                f"{self._source}: the batch_sampler gave {numbers!r:.80}, expected a list of sample numbers for "
                "each batch"
            )
        samples = [dataset[number] for number in numbers]
        return self._collated(samples, begin)

    def each(self, order: Iterable[Any]) -> Iterator[FetchedBatch]:
        """The batch of each item of `order`; see `numbered`."""
        # A generator and not a `map`, which would end at a StopIteration raised by the dataset.
        for numbers in order:
            yield self.numbered(numbers)

    def stream(self, skip: int = 0) -> Iterator[FetchedBatch]:
        """The batches of an epoch over an IterableDataset without the first `skip`, whose samples are read."""
        size = self.config.batch_size
        begin = time.perf_counter()
        samples = iter(self.config.dataset)  # type: ignore[call-overload]
        try:
            for _ in itertools.islice(samples, skip * (size or 1)):
                pass
            while part := list(itertools.islice(samples, size or 1)):
                if size is None:
                    yield self._single(part[0], begin)
                elif len(part) == size or not self.config.drop_last:
                    yield self._collated(part, begin)
                begin = time.perf_counter()
        finally:
            close = getattr(samples, "close", None)
            if close is not None:
                close()

    def _single(self, sample: Any, begin: float) -> FetchedBatch:
        read = time.perf_counter()
        collate_fn = self.config.collate_fn
        made = self._called((lambda: sample) if collate_fn is None else functools.partial(collate_fn, sample))
        return FetchedBatch(made, 1, read - begin, time.perf_counter() - read)

    def _collated(self, samples: list[Any], begin: float) -> FetchedBatch:
        read = time.perf_counter()
        made = self._batch(samples)
        return FetchedBatch(made, len(samples), read - begin, time.perf_counter() - read)

    def _batch(self, samples: list[Any]) -> Any:
        config = self.config
        if config.collate_fn is not None:
            return self._called(functools.partial(config.collate_fn, samples))
        if self._collator is None:
            return collate(samples, config.nested, self.allocate, self._source)
        if isinstance(samples[0], tuple):
            return self._collator.collate(samples)
        return self._collator.collate([tuple(self._ordered(sample)) for sample in samples])

    def _called(self, make: Callable[[], Any]) -> Any:
        """Call the user's code; its arrays are copied where it could write them later."""
        made = self._handover.take(make)
        if self._collator is None:
            return transform(made, self._owned)
        return ready_tensors(
            self._ordered(made), self._specs, self._handover, f"a batch of the {self._source}"
        )

    def _owned(self, leaf: Any) -> Any:
        if isinstance(leaf, LoDTensor) and isinstance(leaf.array, np.ndarray):
            return LoDTensor.wrap(self._handover.copy(leaf.array), leaf.offsets)
        if isinstance(leaf, Tensor) and isinstance(leaf.array, np.ndarray):
            return self._handover.copy(leaf.array)
        return leaf

    def _ordered(self, items: Any) -> Any:
        """Items in the order of the variables: dicts by the variables' names, a lone item in a list."""
        if isinstance(items, Mapping):
            missing = [spec.name for spec in self._specs if spec.name not in items]
            if missing:
                raise ValueError(
                    f"the dataset gives the fields {list(items)}, but feed_list needs {missing} as well"
                )
            return [items[spec.name] for spec in self._specs]
        return items if isinstance(items, (tuple, list)) else [items]
