"""Writes numbers, pictures, sounds, texts and distributions of a training into event files."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import NotSupportedError

if TYPE_CHECKING:
    from types import TracebackType


_log = logging.getLogger(__name__)
_numbers = itertools.count()


def _summary_writer() -> type:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise NotSupportedError(
            "LogWriter writes its files with tensorboardX, which is not installed: "
            "pip install 'fluidlite[visual]' (or tensorboardX)"
        ) from None
    return SummaryWriter  # type: ignore[no-any-return]


class _EventFile:
    """tensorboardX's file of events, with writes in the calling thread and periodic flushes in a background thread.

    In tensorboardX the background thread writes as well: `flush` does not wait for it, and after an error, which ends
    the thread, adding events blocks for ever. Here the first error is logged, and later events are dropped.
    """

    def __init__(self, events: Any, folder: str) -> None:
        self._file, self._thread, self._folder = events._ev_writer, events._worker, folder
        self._failed, self._lock = False, threading.Lock()
        events.add_event = self.write_event
        events._ev_writer = events._worker._record_writer = self

    def _try(self, action: Callable[[], Any]) -> None:
        with self._lock:
            if self._failed:
                return
            try:
                action()
            except OSError as error:
                self._failed = True
                _log.error("LogWriter: the events of %s are lost from here on: %s", self._folder, error)

    def write_event(self, event: Any) -> None:
        self._try(lambda: self._file.write_event(event))
        self._thread._has_pending_data = True

    def flush(self) -> None:
        self._try(self._file.flush)

    def close(self) -> None:
        self._try(self._file.close)


def _array(value: Any) -> np.ndarray:
    """A NumPy array, tensor or list as an array."""
    numpy = getattr(value, "numpy", None)
    return np.asarray(numpy() if callable(numpy) else value)


class LogWriter:
    """Writes the events of one run into a folder.

    Args:
        logdir: the folder, made if it is missing; by default `runs/` and the time, then `comment`.
        max_queue: accepted; events go into the buffer of the file.
        flush_secs: how many seconds they stay there at most.
        filename_suffix: ends the name of the event file.
        write_to_disk: False to write nothing.
        display_name: shown by VisualDL instead of the folder; written as a text.
        file_name: VisualDL appends to its file of this name; here every writer begins a new file in the same folder,
            and readers join them.

    A full disk does not end the training: further events are lost, which is logged once. It is a
    context manager that closes itself. The API of VisualDL 2.0. Raises NotSupportedError without tensorboardX.
    """

    def __init__(
        self,
        logdir: str | None = None,
        comment: str = "",
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
        write_to_disk: bool = True,
        display_name: str = "",
        file_name: str = "",
        **kwargs: Any,
    ) -> None:
        self._logdir = str(logdir) if logdir else time.strftime("runs/%b%d_%H-%M-%S") + comment
        self._settings = {"max_queue": max_queue, "flush_secs": flush_secs, "write_to_disk": write_to_disk}
        self._suffix = filename_suffix
        self._opened: Any = None
        _ = self._writer  # the file is there from the beginning
        if display_name:
            self.add_text("display_name", display_name, 0)

    @property
    def _writer(self) -> Any:
        """tensorboardX's writer; another one, with a file of its own, after `close`."""
        if self._opened is None:
            # Names have the second in which they were made, and two writers may begin in one.
            suffix = f".{os.getpid()}.{next(_numbers)}{self._suffix}"
            self._opened = _summary_writer()(self._logdir, filename_suffix=suffix, **self._settings)
            if self._settings["write_to_disk"]:
                _EventFile(self._opened.file_writer.event_writer, self._logdir)
        return self._opened

    @property
    def logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_scalar(self, tag: str, value: Any, step: int, walltime: float | None = None) -> None:
        """Write a number: a Python number, or an array or tensor of one element.

        Raises ValueError for several elements.
        """
        number = _array(value)
        if number.size != 1:
            raise ValueError(
                f"add_scalar of {tag!r}: expected one number, got {number.size} in shape {list(number.shape)}"
            )
        self._writer.add_scalar(tag, float(number.reshape(())), step, walltime)

    def add_image(
        self, tag: str, img: Any, step: int, walltime: float | None = None, dataformats: str = "HWC"
    ) -> None:
        """Write a picture, shape [height, width, 3] or as `dataformats` says ("CHW", "HW").

        Its dtype is uint8, or a float with values in [0, 1].
        """
        self._writer.add_image(tag, _array(img), step, walltime, dataformats)

    def add_histogram(
        self, tag: str, values: Any, step: int, walltime: float | None = None, buckets: int = 10
    ) -> None:
        """Write how `values`, of any shape, are distributed over `buckets` ranges of the same width."""
        self._writer.add_histogram(tag, _array(values).reshape(-1), step, buckets, walltime)

    def add_audio(
        self, tag: str, audio_array: Any, step: int, sample_rate: int = 8000, walltime: float | None = None
    ) -> None:
        """Write a sound, shape [samples] or [samples, channels], values in [-1, 1]; needs the package soundfile."""
        sound = _array(audio_array)
        self._writer.add_audio(
            tag, sound.reshape(-1, 1) if sound.ndim == 1 else sound, step, sample_rate, walltime
        )

    def add_text(self, tag: str, text_string: str, step: int, walltime: float | None = None) -> None:
        """Write a text."""
        self._writer.add_text(tag, text_string, step, walltime)

    def add_embeddings(self, tag: str, labels: Any, hot_vectors: Any, walltime: float | None = None) -> None:
        """Write vectors, shape [n, dimensions], and the label of each."""
        self._writer.add_embedding(_array(hot_vectors), metadata=list(labels), global_step=0, tag=tag)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        step: int,
        num_thresholds: int = 10,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write precision and recall of probabilities for `labels`, 0 or 1, at `num_thresholds` points."""
        self._writer.add_pr_curve(
            tag, _array(labels), _array(predictions), step, num_thresholds, weights, walltime
        )

    def flush(self) -> None:
        """Write buffered events."""
        if self._opened is not None:
            self._opened.flush()

    def close(self) -> None:
        """Write buffered events and close the file; later events begin another one."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
