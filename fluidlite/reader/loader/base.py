"""The base class of loaders: epochs, which may overlap, statistics, and a state to resume from."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from ...base.reports import profiling
from ..worker.pool import WorkerPool
from .epoch import Epoch, Position, State, Tally
from .stats import Meter, bottleneck, count, summarize


class BaseLoader:
    """Begins epochs and tracks their positions."""

    # Keys of the state besides the numbers of the epoch and of its batches.
    _keys: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._position: Position | None = None  # in the latest epoch
        self._resume: dict[str, Any] | None = None  # the position at which the next epoch begins
        self._epoch: weakref.ref[Epoch] | None = None  # the latest one
        self._own: Epoch | None = None  # the epoch of `next(loader)`
        self._tally = Tally()
        self._pool: WorkerPool | None = None  # workers that wait for the next epoch

    def __repr__(self) -> str:
        of = self._described()
        stats = self.stats()
        read = f"{count(stats['epochs'], 'epoch')}, {count(stats['batches'], 'batch')}"
        return f"<{type(self).__name__} of {of}: capacity {stats['capacity']}, {stats['state']}, {read}>"

    def _described(self) -> str:
        """The name of the source that the loader reads, for its text."""
        return "batches"

    def _kept_pool(self) -> WorkerPool | None:
        """The idle workers kept from an earlier epoch; None if there are none, or one has died."""
        pool, self._pool = self._pool, None
        if pool is None or pool.usable():
            return pool
        pool.close()
        return None

    def _keep(self, pool: WorkerPool) -> None:
        """Keep the workers of an epoch that is over for the next one, unless another pool is kept."""
        if self._pool is None and not pool.closed:
            self._pool = pool
        else:
            pool.close()

    def _open(self, position: Position, meter: Meter) -> Epoch:
        """A new epoch from this position on."""
        raise NotImplementedError

    def _order(self) -> dict[str, Any] | None:
        """The state from which the order of the next epoch is drawn."""
        return None

    def _capacity(self) -> int:
        """The most items that may wait."""
        raise NotImplementedError

    def _workers(self) -> int:
        """The number of worker processes."""
        return 0

    def _begin(self) -> Epoch:
        """Begin an epoch, at the position of `set_state_dict` if it was called."""
        meter = Meter()
        if self._resume is not None:
            position = Position(**{**self._resume, "workers": list(self._resume.get("workers", ()))})
        else:
            position = Position(self._position.epoch + 1 if self._position is not None else 0)
        epoch = self._open(position, meter)
        self._position, self._resume = position, None
        self._epoch = weakref.ref(epoch)
        self._tally.begin(epoch)
        recorder = profiling.detailed()
        if recorder is not None and not any(loader is self for loader in recorder.loaders):
            recorder.loaders.append(self)
        return epoch

    def _last(self) -> Epoch | None:
        """The latest epoch, if it is still referenced."""
        return None if self._epoch is None else self._epoch()

    def __iter__(self) -> Iterator[Any]:
        """A new epoch; one from where `set_state_dict` says, if it was called."""
        return self._begin()

    def __call__(self) -> Any:
        return iter(self)

    def __next__(self) -> Any:
        """The next item of the epoch that `next(loader)` began; begins one if there is none."""
        if self._own is None:
            self._own = self._begin()
        try:
            return next(self._own)
        except BaseException:
            self._own = None
            raise

    def _total(self) -> int | None:
        """How many batches an epoch has, or sets of them, if that is known."""
        return None

    def progress(self, **options: Any) -> Iterator[Any]:
        """A new epoch with a progress bar; `options` are those of `tqdm.tqdm` (`total=...`)."""
        begun = self.state_dict()["batches"] // self._batches_per_item()
        return with_progress(BaseLoader.__iter__(self), self._total(), {"initial": begun, **options})

    def _batches_per_item(self) -> int:
        """The number of counted batches in an item."""
        return 1

    def state_dict(self) -> dict[str, Any]:
        """The consumer's position: the number of the `epoch`, the `batches` taken in it (of a generator: sets of them,
        with several devices), and of a data set the random state of its `order` and the batches taken of each worker.

        Plain numbers, strings, lists and dicts. Batches that were read ahead do not count. A generator, an
        IterableDataset, and a sampler that draws in the middle of an epoch have to be reproducible (by a seed).
        """
        if self._resume is not None:
            return dict(self._resume)
        position = self._position
        if position is None or position.state is State.EXHAUSTED:
            position = Position(0 if position is None else position.epoch + 1, order=self._order())
        found = {key: getattr(position, key) for key in ("epoch", "batches", *self._keys)}
        if "workers" in found:
            found["workers"] = list(found["workers"])
        return found

    def set_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume the next epoch where `state_dict` was called: it gives exactly the batches that were left.

        Generators and IterableDatasets are read from the beginning, without returning the batches taken before. Raises
        ValueError for an invalid state.
        """
        self._resume = self._checked(state)

    load_state_dict = set_state_dict  # PyTorch's name

    def _checked(self, state: Mapping[str, Any]) -> dict[str, Any]:
        wanted = ("epoch", "batches", *self._keys)
        if not isinstance(state, Mapping) or any(key not in state for key in wanted):
            got = (
                f"the keys {sorted(map(str, state))}" if isinstance(state, Mapping) else type(state).__name__
            )
            raise ValueError(
                f"invalid state of a loader: expected a dict with the keys {list(wanted)}, got {got}"
            )
        found = {key: state[key] for key in wanted}
        for key in ("epoch", "batches"):
            try:
                found[key] = operator.index(found[key])
            except TypeError:
                raise ValueError(
                    f"the state of a loader needs a whole number {key!r}, got {found[key]!r}"
                ) from None
            if found[key] < 0:
                raise ValueError(f"the state of a loader needs {key!r} of at least 0, got {found[key]}")
        return found

    def stats(self) -> dict[str, Any]:
        """The amount of data read since the loader was made, and the time that each stage waited.

        `epochs` begun; `batches`, `samples` and `bytes` taken (of a generator: sets of batches, with several devices).
        Seconds of `reading` and `collating` (all workers together; all is `reading` if a generator runs in a process),
        of readers waiting for room (`producer_waited`), of the consumer waiting for data (`consumer_waited`),
        and of the consumer's `computing` in between. Bytes `copied` to GPUs, and seconds of `staging` and `copying`
        them. The `state` of the last epoch, how many batches are `queued` of `capacity`, the `workers` (processes),
        and the `bottleneck`: 'reading' or 'computing', whichever was waited for longer, or 'copying'.
        """
        last = self._last()
        found: dict[str, Any] = {"epochs": self._tally.epochs, **self._tally.total().as_dict()}
        found["state"] = self.state.value
        found["queued"] = last.waiting() if last is not None else 0
        found["capacity"] = self._capacity()
        found["workers"] = self._workers()
        found["bottleneck"] = bottleneck(found)
        return found

    def summary(self) -> str:
        """The statistics as a printable table, with the bottleneck and advice."""
        return summarize(self.stats())

    @property
    def state(self) -> State:
        """The state of the latest epoch."""
        return State.IDLE if self._position is None else self._position.state

    def _leave(self) -> None:
        """End the epoch that was begun last."""
        epoch = self._last()
        if epoch is not None:
            epoch.close()
        self._own = None

    def close(self) -> None:
        """End the epoch that was begun last and the workers that were kept. The loader can be used again afterwards."""
        self._leave()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


def with_progress(epoch: Iterator[Any], total: int | None, options: dict[str, Any]) -> Iterator[Any]:
    """Wrap `epoch` in a bar that counts batches up to `total`, or shows their number and rate if that is None.

    `options` are those of `tqdm.tqdm`. The epoch ends with the iterator, also when the loop is left early.
    """
    from tqdm import tqdm  # slow to import

    return _counted(epoch, tqdm, {"total": total, "unit": "batch", **options})


def _counted(epoch: Iterator[Any], tqdm: Any, options: dict[str, Any]) -> Iterator[Any]:
    try:
        with tqdm(**options) as bar:
            for batch in epoch:
                yield batch
                bar.update()
    finally:
        close = getattr(epoch, "close", None)
        if close is not None:
            close()
