"""`paddle.dataset`: readers of public data sets, with download, cache and a bundled part of MNIST."""

from ..base import missing
from . import cifar, common, mnist, uci_housing

__all__ = ["cifar", "common", "mnist", "uci_housing"]

__getattr__ = missing.reporter(__name__)
