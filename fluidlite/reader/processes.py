"""`multiprocess_reader`: readers that run in processes of their own."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

from ..base.errors import ArgumentAssertion
from .decorators import Reader, check_reader, iterating, whole
from .worker.channel import WorkerDone
from .worker.pool import WorkerPool
from .worker.process import WorkerInfo, as_asked

_AHEAD = 32  # samples of each reader that wait when readers alternate


def multiprocess_reader(readers: Sequence[Reader], use_pipe: bool = True, queue_size: int = 1000) -> Reader:
    """A reader of the samples of all `readers`, each of which runs in a process of its own.

    With `use_pipe` samples come from the readers round-robin, in a fixed order; without it they come as
    they are ready and up to `queue_size` of them wait in this process. An error of a reader is raised here
    with its traceback after the samples before it (as a RuntimeError if it cannot be sent); a process that
    was killed gives a RuntimeError that names it. Samples have to be picklable. Follows
    `paddle.reader.multiprocess_reader`.
    """
    if not isinstance(readers, (list, tuple)) or not readers:
        raise ArgumentAssertion(
            f"multiprocess_reader takes a list of at least one reader, got {readers!r:.80}"
        )
    for reader in readers:
        check_reader(reader, "multiprocess_reader")
    capacity = whole(queue_size, "queue_size", 1)

    def round_robin() -> Iterator[Any]:
        with _Samples(readers, _AHEAD) as samples:
            running = list(range(len(readers)))
            while running:
                for number in list(running):
                    try:
                        sample = samples.next_of([number])
                    except WorkerDone:
                        running.remove(number)
                    else:
                        yield sample

    def as_ready() -> Iterator[Any]:
        with _Samples(readers, max(capacity // len(readers), 1)) as samples:
            running = list(range(len(readers)))
            while running:
                try:
                    sample = samples.next_of(running)
                except WorkerDone as done:
                    running.remove(done.worker)
                else:
                    yield sample

    return round_robin if use_pipe else as_ready


class _Samples:
    """The processes of one pass over the readers; at most `ahead` samples of each wait to be taken."""

    def __init__(self, readers: Sequence[Reader], ahead: int) -> None:
        self.samples_per_request = max(ahead // 2, 1)  # samples requested at a time
        self.pool = WorkerPool(
            len(readers), _read, list(readers), name="multiprocess_reader", label="reader", ahead=ahead, method="fork"
        )  # fmt: skip
        self.taken = [0] * len(readers)
        for number in range(len(readers)):
            self.pool.send(number, ahead)

    def next_of(self, readers: Sequence[int]) -> Any:
        """The next sample of one of these readers; raises as `WorkerPool.receive_any`."""
        number, sample = self.pool.receive_any(readers)
        self.taken[number] += 1
        if self.taken[number] == self.samples_per_request:
            self.taken[number] = 0
            self.pool.send(number, self.samples_per_request)
        return sample

    def __enter__(self) -> _Samples:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.pool.close()


def _read(info: WorkerInfo, requests: Iterator[int]) -> Generator[Any, None, None]:
    """In the worker: yield as many samples as are requested."""
    with iterating(info.payload[info.id]) as samples, closing(as_asked(samples, requests)) as wanted:
        yield from wanted
