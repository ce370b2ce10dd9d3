"""`paddle.dataset`: readers of public data sets, with download, cache and a bundled part of MNIST."""

from typing import TYPE_CHECKING

from ..base import missing

if TYPE_CHECKING:
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
