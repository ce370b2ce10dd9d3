"""`paddle.dataset`: readers of public data sets, with download, cache and a bundled part of MNIST."""

from ..base import missing

# In Fluid the attribute `dataset` of `paddle.fluid` is another module, with these names.
from ..reader.slot_datasets import DatasetFactory, InMemoryDataset, QueueDataset
from . import cifar, common, mnist, uci_housing

__all__ = [
    "DatasetFactory",
    "InMemoryDataset",
    "QueueDataset",
    "cifar",
    "common",
    "mnist",
    "uci_housing",
]

__getattr__ = missing.reporter(__name__)
