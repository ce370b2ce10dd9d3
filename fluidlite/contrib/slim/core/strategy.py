"""`Strategy`: callbacks of a compression."""

from __future__ import annotations

from typing import Any

from ....base import missing

__all__ = ["Strategy"]


class Strategy:
    """Base of strategies, which do nothing by themselves (`fluid.contrib.slim.core.Strategy`).

    `start_epoch`, `end_epoch`: the epochs between which it works. Each method gets the `Context`.
    """

    def __init__(self, start_epoch: int = 0, end_epoch: int = 0) -> None:
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch

    def on_compression_begin(self, context: Any) -> None:
        """Before the first epoch."""

    def on_epoch_begin(self, context: Any) -> None:
        """Before each epoch."""

    def on_epoch_end(self, context: Any) -> None:
        """After each epoch."""

    def on_batch_begin(self, context: Any) -> None:
        """Before each batch."""

    def on_batch_end(self, context: Any) -> None:
        """After each batch."""

    def on_compression_end(self, context: Any) -> None:
        """After the last epoch."""

    def restore_from_checkpoint(self, context: Any) -> None:
        """After the checkpoint of an earlier run has been loaded."""


__getattr__ = missing.reporter(__name__)
