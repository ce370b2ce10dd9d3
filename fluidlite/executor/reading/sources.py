"""The registry of loaders that feed programs: queue or reader names -> sources of batches."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Protocol

from ..tensors.lod_tensor import LoDTensor

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


class Source(Protocol):
    """The interface of a non-iterable loader for executors.

    `drop_last`: whether an incomplete set of batches for several devices ends the epoch.
    """

    drop_last: bool

    def take(
        self, device: CudaDevice | None = None, of: tuple[CudaDevice | None, ...] = ()
    ) -> list[LoDTensor]:
        """The next batch in the order of the loader's variables, on `device` (None: the host).

        `of`: the devices that take batches in round-robin order, if several, to which the loader can prefetch.
        The copy is ordered before later work on the device's compute stream. Raises EOFException at the end of an epoch
        (in each call until the loader is reset), the error of the loader's generator, or RuntimeError if the loader was
        not started.
        """


_lock = threading.Lock()
_sources: weakref.WeakValueDictionary[str, Source] = weakref.WeakValueDictionary()


def register(name: str, source: Source) -> None:
    """Register `source` for programs that read from the queue or reader variable `name`.

    The source is not kept alive; a later one of the same name replaces it.
    """
    with _lock:
        _sources[name] = source


def lookup(name: str) -> Source | None:
    """The source registered under `name`, or None if there is none (any more)."""
    with _lock:
        return _sources.get(name)
