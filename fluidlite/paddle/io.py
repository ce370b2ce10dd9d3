"""`paddle.io` of Paddle 2.0: datasets, samplers and the loader for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ..framework import mode
from ..reader import (
    BatchSampler,
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    Dataset,
    DistributedBatchSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequenceSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)
from ..reader import DataLoader as FluidDataLoader
from ..reader.collating import nested_collate_fn as default_collate_fn
from ..reader.loader.generator import Loader

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ComposeDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedBatchSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "Subset",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate_fn",
    "get_worker_info",
    "random_split",
]


class DataLoader(FluidDataLoader):
    """Batches of a `dataset`, as eager Tensors unless static mode is on.

    Like `fluid.io.DataLoader`, whose arguments it has, with three differences: `return_list` is True by default;
    batches have the structure of samples (tuples and lists become lists, dicts dicts, a lone array a Tensor), and
    `batch_size` may be None; in static mode with one device lists are given without a list around them. Follows
    `paddle.io.DataLoader`.
    """

    _sampler = BatchSampler
    _nested = True

    def __init__(
        self,
        dataset: Dataset[Any],
        feed_list: Any = None,
        places: Any = None,
        return_list: bool = True,
        batch_sampler: BatchSampler | None = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        persistent_workers: bool = False,
        progress: bool = False,
    ) -> None:
        super().__init__(
            dataset,
            feed_list,
            places,
            return_list,
            batch_sampler,
            batch_size,
            shuffle,
            drop_last,
            collate_fn,
            num_workers,
            use_buffer_reader,
            use_shared_memory,
            timeout,
            worker_init_fn,
            prefetch_factor,
            persistent_workers,
            progress,
        )

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
        """A loader of the batches of a generator; without `feed_list` it gives lists of eager Tensors.

        Otherwise like `fluid.io.DataLoader.from_generator`. Follows `paddle.io.DataLoader.from_generator`.
        """
        eager = feed_list is None and mode.eager_by_default()
        with mode.guard(True) if eager else nullcontext():
            return FluidDataLoader.from_generator(
                feed_list,
                capacity,
                use_double_buffer,
                iterable,
                return_list,
                use_multiprocess,
                drop_last,
                persistent_workers=persistent_workers,
            )

    def _eager(self) -> bool:
        return self.feed_list is None and mode.eager_by_default()

    def _devices(self) -> int | None:
        alone = self._eager() or (self.return_list and len(self.places) == 1)
        return None if alone else len(self.places)
