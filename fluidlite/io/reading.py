"""The reading half of `fluid.io`: loaders and the decorators of readers."""

from ..reader import (
    ComposeNotAligned,
    DataLoader,
    Dataset,
    PyReader,
    batch,
    buffered,
    cache,
    chain,
    compose,
    default_collate_fn,
    firstn,
    map_readers,
    multiprocess_reader,
    shuffle,
    xmap_readers,
)
from ..reader import FluidBatchSampler as BatchSampler

__all__ = [
    "BatchSampler",
    "ComposeNotAligned",
    "DataLoader",
    "Dataset",
    "PyReader",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "default_collate_fn",
    "firstn",
    "map_readers",
    "multiprocess_reader",
    "shuffle",
    "xmap_readers",
]
