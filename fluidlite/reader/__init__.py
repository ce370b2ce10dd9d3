"""Reading data: decorators of readers, `DataFeeder`, loaders (`fluid.reader`, `fluid.data_feeder`,
`paddle.reader`).
"""

from typing import TYPE_CHECKING

from ..base import missing

if TYPE_CHECKING:
    from .collating import default_collate_fn
    from .dataset import (
        ChainDataset,
        ComposeDataset,
        ConcatDataset,
        Dataset,
        IterableDataset,
        Subset,
        TensorDataset,
        random_split,
    )
    from .decorators import (
        ComposeNotAligned,
        batch,
        cache,
        chain,
        compose,
        firstn,
        map_readers,
        np_array,
        recordio,
        shuffle,
        text_file,
    )
    from .feeder import DataFeeder
    from .loader.dataset import DataLoader
    from .loader.epoch import LoaderError, State
    from .loader.from_generator import (
        KEEP_DATA_LOADER_ORDER,
        QUEUE_GET_TIMEOUT,
        DataLoaderBase,
        DygraphGeneratorLoader,
        GeneratorLoader,
        data_loader_unique_name_generator,
        keep_data_loader_order,
        multiprocess_queue_set,
    )
    from .loader.from_generator import _cleanup as _cleanup
    from .loader.of_files import DatasetLoader
    from .loader.py_reader import PyReader
    from .loader.stats import leaks
    from .processes import multiprocess_reader
    from .samplers import (
        BatchSampler,
        DistributedBatchSampler,
        FluidBatchSampler,
        RandomSampler,
        Sampler,
        SequenceSampler,
        WeightedRandomSampler,
    )
    from .threaded import buffered, xmap_readers
    from .worker.batches import get_worker_info

__all__ = [
    "KEEP_DATA_LOADER_ORDER",
    "QUEUE_GET_TIMEOUT",
    "DataLoaderBase",
    "DatasetLoader",
    "DygraphGeneratorLoader",
    "GeneratorLoader",
    "data_loader_unique_name_generator",
    "keep_data_loader_order",
    "multiprocess_queue_set",
    "BatchSampler",
    "ChainDataset",
    "ComposeDataset",
    "ComposeNotAligned",
    "ConcatDataset",
    "DataFeeder",
    "DataLoader",
    "Dataset",
    "DistributedBatchSampler",
    "FluidBatchSampler",
    "IterableDataset",
    "LoaderError",
    "PyReader",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "State",
    "Subset",
    "TensorDataset",
    "WeightedRandomSampler",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "default_collate_fn",
    "firstn",
    "get_worker_info",
    "leaks",
    "map_readers",
    "multiprocess_reader",
    "np_array",
    "random_split",
    "recordio",
    "shuffle",
    "text_file",
    "xmap_readers",
]

__getattr__, __dir__ = missing.lazy(__name__)
