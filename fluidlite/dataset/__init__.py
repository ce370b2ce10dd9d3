"""`paddle.dataset`: readers of public data sets, with download, cache and a bundled part of MNIST.

As `fluid.dataset` it also has what Fluid's module of that name has: data sets of files for `train_from_dataset`.
"""

from typing import TYPE_CHECKING

from ..base import missing

if TYPE_CHECKING:
    from ..reader.slots.datasets import (  # noqa: F401
        DatasetBase,
        DatasetFactory,
        InMemoryDataset,
        QueueDataset,
    )
    from . import (  # noqa: F401
        cifar,
        common,
        conll05,
        flowers,
        image,
        imdb,
        imikolov,
        mnist,
        movielens,
        mq2007,
        sentiment,
        uci_housing,
        voc2012,
        wmt14,
        wmt16,
    )

__all__ = ["cifar", "common", "mnist", "uci_housing"]

__getattr__, __dir__ = missing.lazy(__name__)
