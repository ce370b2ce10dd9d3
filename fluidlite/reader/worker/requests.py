"""The interface between an epoch and its worker processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .pool import WorkerPool

if TYPE_CHECKING:
    from ..loader.source import FetchedBatch


class BatchRequests:
    """The batches of an epoch, requested from the processes of `pool`."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool

    def get(self) -> FetchedBatch:
        """The next batch. Raises QueueClosed at the end of the epoch, and the errors of `WorkerPool.receive`."""
        raise NotImplementedError

    def waiting(self) -> int:
        """The number of requested batches that have not been taken."""
        raise NotImplementedError

    def leave(self) -> None:
        """Abandon the epoch: outstanding batches are discarded, and the workers go on."""
        raise NotImplementedError

    def close(self) -> None:
        """End the processes. May be called at any time, from any thread, any number of times."""
        self.pool.close()
