"""What an epoch asks of worker processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .pool import WorkerPool

if TYPE_CHECKING:
    from ..loader.source import FetchedBatch


class BatchRequests:
    """The batches of an epoch that the processes of `pool` are asked for."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool

    def get(self) -> FetchedBatch:
        """The next batch. Raises QueueClosed at the end of the epoch, and what `WorkerPool.receive` raises."""
        raise NotImplementedError

    def waiting(self) -> int:
        """How many of the batches asked for have not been taken."""
        raise NotImplementedError

    def leave(self) -> None:
        """Give the epoch up: what the workers were asked for already is thrown away, and they go on."""
        raise NotImplementedError

    def close(self) -> None:
        """End the processes. May be called at any time, from any thread, any number of times."""
        self.pool.close()
