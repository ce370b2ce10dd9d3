"""Training from files: `fluid.DatasetFactory`, `QueueDataset`, `InMemoryDataset` (`fluid.dataset`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._ext.slots import Engine, Records
from ...base import missing
from ...base.context import Slot as Ambient
from ...base.storage.files import is_url
from ...distributed import world
from .feed_description import FeedDescription, SlotDescription, whole
from .files import Feed, Loading, Share, Slot, SlotReader, batches_of_files, feed_of, globally_shuffled

__all__ = ["DatasetBase", "DatasetFactory", "InMemoryDataset", "QueueDataset"]

DEFAULT_BATCH_SIZE = 32

_engine = Ambient("engine of shuffles", Engine())


class DatasetFactory:
    """Makes data sets by name (`fluid.DatasetFactory`)."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """A `QueueDataset` or `InMemoryDataset`; NotSupportedError for Fluid's others, ValueError for another name."""
        kinds: dict[str, type[DatasetBase]] = {
            "QueueDataset": QueueDataset,
            "InMemoryDataset": InMemoryDataset,
        }
        if datafeed_class in ("BoxPSDataset", "FileInstantDataset"):
            raise missing.NotSupportedError(missing.explain(f"fluid.dataset.{datafeed_class}"))
        if datafeed_class not in kinds:
            raise ValueError(f"there is no data set class {datafeed_class!r}, only {', '.join(kinds)}")
        return kinds[datafeed_class]()


class DatasetBase:
    """Files of samples for `Executor.train_from_dataset`; see `files` for their format.

    `proto_desc`: the message that `desc` prints. `filelist`, `thread_num`: the current settings.
    """

    _feed = ""
    _sparse = False

    def __init__(self) -> None:
        self.proto_desc = FeedDescription(self._feed, pipe_command="cat")
        self.filelist: list[str] = []
        self._elsewhere = ""
        self.thread_num = 1
        self._slots: list[Slot] = []
        self._text_slots: dict[str, bool] = {}

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {len(self.filelist)} files: batch size {self.proto_desc.batch_size}, "
            f"{self.thread_num} threads>"
        )

    def set_use_var(self, var_list: Iterable[Any]) -> None:
        """The variables to feed, in the order of the slots on a line; those with lod_level 0 are dense.

        Raises ValueError for another dtype than float32 and int64.
        """
        self._slots = [Slot.of(var) for var in var_list]
        self.proto_desc.slots = [
            SlotDescription(
                slot.name,
                "float" if slot.real else "uint64",
                None if slot.shape is None else True,
                True,
                [] if slot.shape is None else [-1, *slot.shape],
            )
            for slot in self._slots
        ]

    def set_batch_size(self, batch_size: int) -> None:
        """The number of lines of a batch, 32 by default; the last one of an epoch may have fewer.

        Raises TypeError unless it is an integer, ValueError if it is below 1.
        """
        if whole(batch_size, "batch_size") < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.proto_desc.batch_size = int(batch_size)

    def set_filelist(self, filelist: Sequence[str]) -> None:
        """The files to read, in this order."""
        self.filelist = [str(path) for path in filelist]

    def set_pipe_command(self, pipe_command: str) -> None:
        """A shell command that converts each file, on its standard input, to lines of slots; 'cat' for none.

        Under `python -m fluidlite` a `python` in it can import `paddle` as well.
        """
        self.proto_desc.pipe_command = str(pipe_command)

    def set_thread(self, thread_num: int) -> None:
        """How many threads read files, and train in `train_from_dataset`."""
        self.thread_num = whole(thread_num, "thread_num")

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Where files `hdfs:/PATH` and `afs:/PATH` are: at the URL `fs_name`, by fsspec, whatever its kind.

        `fs_ugi`, user and password as `hadoop` takes them, is accepted. If `fs_name` is no URL, reading such files
        raises ValueError.
        """
        self._elsewhere = fs_name if fs_name.endswith("://") else fs_name.rstrip("/") + "/"

    def _files(self) -> list[str]:
        """The files, each by its path or URL."""
        return [self._file(path) for path in self.filelist]

    def _file(self, path: str) -> str:
        if not self._elsewhere or not path.startswith(("hdfs:/", "afs:/")) or is_url(path):
            return path
        if not is_url(self._elsewhere):
            name = self._elsewhere.rstrip("/")
            raise ValueError(f"{path}: fs_name must be a URL such as hdfs://HOST:PORT, got {name!r}")
        return self._elsewhere + path.partition(":")[2].lstrip("/")

    def set_download_cmd(self, download_cmd: str) -> None:
        """Accepted: files are local."""

    def set_rank_offset(self, rank_offset: str) -> None:
        """Accepted; it is in `desc`."""
        self.proto_desc.rank_offset = str(rank_offset)

    def set_pv_batch_size(self, pv_batch_size: int) -> None:
        """Accepted; it is in `desc`."""
        self.proto_desc.pv_batch_size = whole(pv_batch_size, "pv_batch_size")

    def set_fea_eval(self, record_candidate_size: int, fea_eval: bool = True) -> None:
        """Raises NotImplementedError: only an InMemoryDataset has samples to draw from."""
        if fea_eval:
            raise NotImplementedError(
                f"{type(self).__name__} does not support slots_shuffle, use InMemoryDataset"
            )

    def slots_shuffle(self, slots: Iterable[str]) -> None:
        """Raises NotImplementedError, as `set_fea_eval`."""
        self.set_fea_eval(0)

    def desc(self) -> str:
        """The configuration, in the text form that Fluid prints."""
        return str(self.proto_desc)

    @property
    def _batch_size(self) -> int:
        return self.proto_desc.batch_size or DEFAULT_BATCH_SIZE

    def _reader(self) -> SlotReader:
        if not self._slots:
            raise ValueError("the data set has no variables to feed: call set_use_var first")
        command, text_slots = self.proto_desc.pipe_command or "", sum(self._text_slots.values())
        return SlotReader(self._slots, command, text_slots, sparse=self._sparse)

    def _shares(self, threads: int = 0, single: bool = False) -> list[Share]:
        """The batches of an epoch for each training thread; for one if `single`.

        `threads`: the argument of `train_from_dataset`; 0 if it was not given.
        """
        raise NotImplementedError

    def _parts(self, count: int) -> list[Share]:
        """The batches of an epoch in at most `count` parts, which are the same in each epoch.

        ValueError if no variables are set; iterating raises what `SlotReader.read` does.
        """
        raise NotImplementedError

    def _feeds(self) -> Iterator[Feed]:
        """The feeds of an epoch in order; see `_parts`."""
        return iter(self._parts(1)[0])


class QueueDataset(DatasetBase):
    """Reads its files anew in each epoch (`fluid.dataset.QueueDataset`).

    With several threads each takes a file when it has read one; batches do not go across threads.
    """

    _feed = "MultiSlotDataFeed"

    def local_shuffle(self) -> None:
        """Raises NotImplementedError, as in Fluid: files that are not in memory cannot be shuffled."""
        raise NotImplementedError(
            "QueueDataset does not support local shuffle, please use InMemoryDataset for local_shuffle"
        )

    def global_shuffle(self, fleet: Any = None) -> None:
        """Raises NotImplementedError, as in Fluid."""
        raise NotImplementedError(
            "QueueDataset does not support global shuffle, please use InMemoryDataset for global_shuffle"
        )

    def _shares(self, threads: int = 0, single: bool = False) -> list[Share]:
        paths = deque(self._files())
        count = 1 if single else max(1, min(self.thread_num, len(paths)))
        return [self._share(paths) for _ in range(count)]

    def _parts(self, count: int) -> list[Share]:
        paths = list(self._files())
        return [self._share(deque(paths[first::count])) for first in range(max(1, min(count, len(paths))))]

    def _share(self, paths: deque[str]) -> Share:
        """The batches of files that are taken from `paths`."""
        reader = self._reader()
        return Share(partial(batches_of_files, reader, paths, self._batch_size), reader.stop)


class InMemoryDataset(DatasetBase):
    """Keeps its samples in memory, where they can be shuffled (`fluid.dataset.InMemoryDataset`).

    As in Fluid, sequences have no zeros, but for one in a sample that has nothing else. Samples that an epoch has
    gone through keep their order: until the next `load_into_memory` or `slots_shuffle`, `local_shuffle` does nothing,
    `get_memory_data_size` is 0 and `get_shuffle_data_size` their number.
    """

    _feed = "MultiSlotInMemoryDataFeed"
    _sparse = True

    def __init__(self) -> None:
        super().__init__()
        self._records = Records(())
        self._loading: Loading | None = None
        self._epoch_done = False
        self._before_slots_shuffle: Records | None = None
        self._candidates = 0
        self._shuffle_rounds = 0
        self._merged = self._pv_merge = False

    def set_feed_type(self, data_feed_type: str) -> None:
        """Accepted; it is in `desc`."""
        self.proto_desc.name = str(data_feed_type)

    def load_into_memory(self) -> None:
        """Read all files, `thread_num` at a time; replaces the samples in memory.

        Raises ValueError if no variables are set, FileNotFoundError, FormatError for a line that is no sample,
        RuntimeError if the pipe command fails. The samples in memory are kept then.
        """
        self.preload_into_memory(self.thread_num)
        self.wait_preload_done()

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Begin to read all files, with `thread_num` threads; `wait_preload_done` waits for the end."""
        if self._loading is not None:
            self._loading.stop()
        count = min(thread_num or self.thread_num, len(self.filelist))
        self._loading = Loading([self._reader() for _ in range(max(1, count))], self._files())

    def wait_preload_done(self) -> None:
        """Wait until everything is read; raises what `load_into_memory` does."""
        loading, self._loading = self._loading, None
        if loading is None:
            return
        found = loading.wait()
        self.release_memory()
        self._records = Records(slot.real for slot in self._slots)
        for records in found:
            self._records.join(records)

    def local_shuffle(self) -> None:
        """Put the samples into a random order: that of Fluid 1.8, the same in each new process; see the class."""
        if not self._epoch_done:
            self._records.shuffle(_engine.get())

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """With a `fleet`, redistribute the samples of all its workers at random, and shuffle them.

        The workers are the processes of the run; in one, and without `fleet`, nothing happens, as in Fluid without
        its parameter servers. Raises the errors of `fluidlite.distributed` about other processes, and
        NotSupportedError after `set_merge_by_lineid`.
        """
        if fleet is None or world().size == 1 or self._epoch_done:
            return
        if self._merged:
            raise missing.NotSupportedError(
                "global_shuffle after set_merge_by_lineid: fluidlite does not merge samples; let files have them whole"
            )
        self._shuffle_rounds += 1
        self._records = globally_shuffled(self._records, self._slots, self._shuffle_rounds)
        self.local_shuffle()

    def release_memory(self) -> None:
        """Forget the samples."""
        self._records = Records(slot.real for slot in self._slots)
        self._before_slots_shuffle, self._epoch_done = None, False

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """How many samples are in memory, with a `fleet` in that of all its workers; see the class."""
        return self._counted(0 if self._epoch_done else len(self._records), fleet)

    def get_shuffle_data_size(self, fleet: Any = None) -> int:
        """How many samples an epoch has gone through, with a `fleet` those of all its workers; see the class."""
        return self._counted(len(self._records) if self._epoch_done else 0, fleet)

    def _counted(self, own: int, fleet: Any) -> int:
        return own if fleet is None else int(world().all_reduce(np.array(own)))

    def set_fea_eval(self, record_candidate_size: int, fea_eval: bool = True) -> None:
        """Among how many samples `slots_shuffle` draws; `fea_eval=False` has it do nothing."""
        self._candidates = whole(record_candidate_size, "record_candidate_size") if fea_eval else -1

    def slots_shuffle(self, slots: Iterable[str]) -> None:
        """Give each sample the integers that another one has in these slots, drawn at random as Fluid draws them.

        The samples as they were loaded are the ones to draw from, also the next time.

        Raises ValueError if `set_fea_eval` was not called, or for a name that no slot has.
        """
        names = set(slots)
        if self._candidates == 0:
            raise ValueError("slots_shuffle needs to know among how many samples to draw: call set_fea_eval")
        unknown = names - {slot.name for slot in self._slots}
        if unknown:
            raise ValueError(
                f"there is no slot {sorted(unknown)[0]!r}, only {[slot.name for slot in self._slots]}"
            )
        if self._candidates < 0 or not len(self._records):
            return
        if self._before_slots_shuffle is None:
            self._before_slots_shuffle = self._records
        chosen = [slot.name in names for slot in self._slots]
        self._records = self._before_slots_shuffle.mixed(chosen, self._candidates, _engine.get())
        self._epoch_done = False

    def set_parse_ins_id(self, parse_ins_id: bool) -> None:
        """Whether a count and as many words stand before the slots of each line, which are left out."""
        self._text_slots["ins_id"] = bool(parse_ins_id)

    def set_parse_content(self, parse_content: bool) -> None:
        """The same once more."""
        self._text_slots["content"] = bool(parse_content)

    def set_queue_num(self, queue_num: int) -> None:
        """Accepted: each thread has a queue."""

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """Accepted: samples are not sent in batches."""

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """Accepted."""

    def set_parse_logkey(self, parse_logkey: bool) -> None:
        """The same, for the key of a page view."""
        self._text_slots["logkey"] = bool(parse_logkey)

    def set_merge_by_lineid(self, merge_size: int = 2) -> None:
        """As `set_parse_ins_id`: in Fluid, too, samples that stay in their process are not merged.

        `global_shuffle` among several processes, which would merge them, refuses.
        """
        self.set_parse_ins_id(True)
        self._merged = True

    def set_enable_pv_merge(self, enable_pv_merge: bool) -> None:
        """Accepted; `preprocess_instance`, which would merge samples into page views, refuses then."""
        self._pv_merge = bool(enable_pv_merge)

    def preprocess_instance(self) -> None:
        """Nothing; NotSupportedError after `set_enable_pv_merge(True)`."""
        if self._pv_merge:
            raise missing.NotSupportedError(
                "preprocess_instance: fluidlite does not merge samples into page views"
            )

    def postprocess_instance(self) -> None:
        """Nothing: there are no page views to split."""

    def get_pv_data_size(self) -> int:
        """0: there are no page views."""
        return 0

    def set_merge_by_sid(self, merge_by_sid: bool) -> None:
        """Accepted: it is about page views, which `preprocess_instance` would make."""

    def set_current_phase(self, current_phase: int) -> None:
        """Accepted, as `set_merge_by_sid`."""

    def set_generate_unique_feasigns(self, generate_uni_feasigns: bool, shard_num: int) -> None:
        """Accepted: it is about tables of parameter servers that exist inside Baidu only."""

    def _shares(self, threads: int = 0, single: bool = False) -> list[Share]:
        return self._parts(1 if single else threads or self.thread_num)

    def _parts(self, count: int) -> list[Share]:
        if not self._slots:
            self._reader()  # raises for missing settings
        self._epoch_done = True
        samples = len(self._records)
        share = samples if count <= 1 else samples // count + 1
        starts = range(0, samples, share) if samples else (0,)
        return [Share(partial(self._batches, start, min(start + share, samples))) for start in starts]

    def _batches(self, start: int, end: int) -> Iterator[Feed]:
        slots, records, size = list(self._slots), self._records, self._batch_size
        for first in range(start, end, size):
            yield feed_of(slots, records.batch(first, min(first + size, end)))


__getattr__ = missing.reporter(__name__)
