# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.reader.slots.datasets import (
    DatasetBase as DatasetBase,
    DatasetFactory as DatasetFactory,
    InMemoryDataset as InMemoryDataset,
    QueueDataset as QueueDataset,
)
