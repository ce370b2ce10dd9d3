"""Training from files: `fluid.DatasetFactory`, `QueueDataset`, `InMemoryDataset` (`fluid.dataset`)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..base import missing
from .slot_files import Sample, Slot, samples_of
from .threaded import buffered

__all__ = ["DatasetBase", "DatasetFactory", "InMemoryDataset", "QueueDataset"]

BATCHES_AHEAD = 8
"""How many batches a thread reads ahead."""


class DatasetFactory:
    """Makes data sets by name (`fluid.DatasetFactory`)."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """A `QueueDataset` or `InMemoryDataset`; ValueError for another name."""
        kinds: dict[str, type[DatasetBase]] = {
            "QueueDataset": QueueDataset,
            "InMemoryDataset": InMemoryDataset,
        }
        if datafeed_class not in kinds:
            raise ValueError(f"there is no data set class {datafeed_class!r}, only {', '.join(kinds)}")
        return kinds[datafeed_class]()


class DatasetBase:
    """Files of samples for `Executor.train_from_dataset`; see `slot_files` for their format.

    `Executor.train_from_dataset` computes batch after batch, in the order of the files, whatever `set_thread` says; a
    thread reads ahead.
    """

    _feed = ""

    def __init__(self) -> None:
        self.filelist: list[str] = []
        self.thread_num = 1
        self._batch_size = 1
        self._pipe_command = "cat"
        self._slots: list[Slot] = []

    def set_use_var(self, var_list: Iterable[Any]) -> None:
        """The variables to feed, in the order of the slots on a line; those with lod_level 0 are dense.

        Raises ValueError for another dtype than float32 and int64.
        """
        self._slots = [Slot.of(var) for var in var_list]

    def set_batch_size(self, batch_size: int) -> None:
        """How many lines are a batch; the last one of an epoch may have fewer."""
        if int(batch_size) < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self._batch_size = int(batch_size)

    def set_filelist(self, filelist: Sequence[str]) -> None:
        """The files to read, in this order."""
        self.filelist = [str(path) for path in filelist]

    def set_pipe_command(self, pipe_command: str) -> None:
        """A shell command that makes lines of slots of each file on its standard input; 'cat' takes it as it is.

        Under `python -m fluidlite` a `python` in it knows `paddle` as well.
        """
        self._pipe_command = pipe_command

    def set_thread(self, thread_num: int) -> None:
        """Accepted; see the class."""
        self.thread_num = int(thread_num)

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Raises NotSupportedError: files are local."""
        raise missing.NotSupportedError("fluidlite reads local files only: copy them from HDFS first")

    def desc(self) -> str:
        """The configuration, in the text form that Fluid prints."""
        lines = [f'name: "{self._feed}"']
        if self._batch_size != 1 or self._slots:
            lines.append(f"batch_size: {self._batch_size}")
        if self._slots:
            lines.append("multi_slot_desc {")
            for slot in self._slots:
                kind = "float" if slot.dtype.kind == "f" else "uint64"
                lines += ["  slots {", f'    name: "{slot.name}"', f'    type: "{kind}"']
                lines += ["    is_dense: true"] * (slot.shape is not None) + ["    is_used: true"]
                lines += [f"    shape: {n}" for n in (-1, *(slot.shape or ()))] * (slot.shape is not None)
                lines.append("  }")
            lines.append("}")
        return "\n".join([*lines, f'pipe_command: "{self._pipe_command}"', ""])

    def _samples(self) -> Iterator[Sample]:
        for path in self.filelist:
            yield from samples_of(path, self._pipe_command, self._slots)

    def _feeds(self) -> Iterator[dict[str, Any]]:
        """The feeds of one epoch. Raises ValueError if no variables are set, and what `samples_of` raises."""
        if not self._slots:
            raise ValueError("the data set has no variables to feed: call set_use_var first")

        def batches() -> Iterator[dict[str, Any]]:
            batch: list[Sample] = []
            for sample in self._samples():
                batch.append(sample)
                if len(batch) == self._batch_size:
                    yield self._feed_of(batch)
                    batch = []
            if batch:
                yield self._feed_of(batch)

        return iter(buffered(batches, BATCHES_AHEAD)())

    def _feed_of(self, batch: list[Sample]) -> dict[str, Any]:
        columns = zip(*batch, strict=True)
        return {slot.name: slot.batch(column) for slot, column in zip(self._slots, columns, strict=True)}


class QueueDataset(DatasetBase):
    """Reads its files anew in each epoch (`fluid.dataset.QueueDataset`)."""

    _feed = "MultiSlotDataFeed"

    def local_shuffle(self) -> None:
        """Raises NotImplementedError, as in Fluid: what is not in memory cannot be shuffled."""
        raise NotImplementedError("QueueDataset does not support local shuffle, use InMemoryDataset")

    def global_shuffle(self, fleet: Any = None) -> None:
        """Raises NotImplementedError, as in Fluid."""
        raise NotImplementedError("QueueDataset does not support global shuffle, use InMemoryDataset")


class InMemoryDataset(DatasetBase):
    """Keeps its samples in memory, where they can be shuffled (`fluid.dataset.InMemoryDataset`)."""

    _feed = "MultiSlotInMemoryDataFeed"

    def __init__(self) -> None:
        super().__init__()
        self._memory: list[Sample] = []

    def load_into_memory(self) -> None:
        """Read all files; what was in memory before goes."""
        self._memory = list(super()._samples())

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """The same as `load_into_memory`; `wait_preload_done` then has nothing to wait for."""
        self.load_into_memory()

    def wait_preload_done(self) -> None:
        """Nothing is left to wait for after `preload_into_memory`."""

    def local_shuffle(self) -> None:
        """Put the samples into a random order, drawn from the module `random`."""
        random.shuffle(self._memory)

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """`local_shuffle`: there is one process."""
        self.local_shuffle()

    def release_memory(self) -> None:
        """Forget the samples."""
        self._memory = []

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """How many samples are in memory."""
        return len(self._memory)

    def get_shuffle_data_size(self, fleet: Any = None) -> int:
        """How many samples have been shuffled: those in memory."""
        return len(self._memory)

    def set_queue_num(self, queue_num: int) -> None:
        """Accepted and without effect: one thread reads ahead."""

    def _samples(self) -> Iterator[Sample]:
        return iter(self._memory)


__getattr__ = missing.reporter(__name__)
