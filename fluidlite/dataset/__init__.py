"""`paddle.dataset`: readers of public data sets, with download, cache and a bundled part of MNIST."""

from typing import TYPE_CHECKING

from ..base import missing
from . import cifar, common, mnist, uci_housing

if TYPE_CHECKING:
    from . import conll05, flowers, image, imdb, imikolov, movielens, mq2007, sentiment, voc2012, wmt14, wmt16  # noqa: F401

__all__ = ["cifar", "common", "mnist", "uci_housing"]

__getattr__, __dir__ = missing.lazy(__name__)
