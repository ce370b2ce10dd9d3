# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.io import (
    BatchSampler as BatchSampler,
    ChainDataset as ChainDataset,
    ComposeDataset as ComposeDataset,
    ConcatDataset as ConcatDataset,
    DataLoader as DataLoader,
    Dataset as Dataset,
    DistributedBatchSampler as DistributedBatchSampler,
    IterableDataset as IterableDataset,
    RandomSampler as RandomSampler,
    Sampler as Sampler,
    SequenceSampler as SequenceSampler,
    Subset as Subset,
    TensorDataset as TensorDataset,
    WeightedRandomSampler as WeightedRandomSampler,
    default_collate_fn as default_collate_fn,
    get_worker_info as get_worker_info,
    random_split as random_split,
)
