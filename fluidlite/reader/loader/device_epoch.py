"""Epochs over datasets whose batches go to GPUs."""

from __future__ import annotations

from ..background import Stream
from ..fetcher import FetchedBatch
from .dataset_epoch import Source
from .device_buffer import Devices, Mover, ahead_of
from .stats import Meter


class MovedSource:
    """Batches of another source on their devices: two of them ahead of the consumer, or moved when he takes them.

    `devices` get batches in turn. `meter`: where the copying is counted. `name`: of the dataset, for the thread.
    """

    def __init__(self, source: Source, devices: Devices, ahead: bool, meter: Meter, name: str) -> None:
        self._source = source
        mover = Mover(devices, False, ahead, meter)
        self._mover = mover
        self._stream: Stream | None = None
        if ahead:
            get = source.get
            self._stream = Stream(lambda: ahead_of(get, mover), 1, f"copies for {name}", frames=2)

    def get(self) -> FetchedBatch:
        """The next batch; QueueClosed at the end."""
        made: FetchedBatch
        if self._stream is None:
            made = self._mover.move(self._source.get()).take()
        else:
            made = self._stream.get().take()
        return made

    def waiting(self) -> int:
        return self._source.waiting() + (0 if self._stream is None else len(self._stream.queue))

    def idle(self) -> float:
        return self._source.idle()

    def interrupt(self) -> None:
        self._source.interrupt()

    @property
    def patient(self) -> bool:
        return self._source.patient

    def stop(self, finished: bool) -> None:
        stream = self._stream
        if stream is not None:
            stream.queue.kill()
            # The source is used by the thread, which has to leave it first. Workers that are kept may get a moment.
            if not finished and not (self._source.patient and stream.left()):
                self._source.interrupt()
            stream.stop()
        self._source.stop(finished)
