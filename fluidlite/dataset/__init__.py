"""`paddle.dataset`: readers of public data sets, with download, cache and a bundled part of MNIST."""

from ..base import missing
from . import cifar, common, mnist, uci_housing

__all__ = ["cifar", "common", "mnist", "uci_housing"]

_MODULES = (
    "conll05",
    "flowers",
    "image",
    "imdb",
    "imikolov",
    "movielens",
    "mq2007",
    "sentiment",
    "voc2012",
    "wmt14",
    "wmt16",
)

__getattr__ = missing.reporter(__name__, dict.fromkeys(_MODULES, ""))
