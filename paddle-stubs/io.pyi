# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.io import (
    DataLoader as DataLoader,
)
from fluidlite.reader.collating import (
    nested_collate_fn as default_collate_fn,
)
from fluidlite.reader.dataset import (
    ChainDataset as ChainDataset,
    ComposeDataset as ComposeDataset,
    ConcatDataset as ConcatDataset,
    Dataset as Dataset,
    IterableDataset as IterableDataset,
    Subset as Subset,
    TensorDataset as TensorDataset,
    random_split as random_split,
)
from fluidlite.reader.samplers import (
    BatchSampler as BatchSampler,
    DistributedBatchSampler as DistributedBatchSampler,
    RandomSampler as RandomSampler,
    Sampler as Sampler,
    SequenceSampler as SequenceSampler,
    WeightedRandomSampler as WeightedRandomSampler,
)
from fluidlite.reader.worker.dataset import (
    get_worker_info as get_worker_info,
)
