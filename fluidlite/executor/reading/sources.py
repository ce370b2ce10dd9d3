"""Where programs find the loaders that feed them: queue or reader names -> sources of batches."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Protocol

from ..tensors.lod_tensor import LoDTensor

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


class Source(Protocol):
    """What a non-iterable loader offers to executors.

    `drop_last`: whether an incomplete set of batches for several devices ends the epoch.
    """

    drop_last: bool

    def take(
        self, device: CudaDevice | None = None, of: tuple[CudaDevice | None, ...] = ()
    ) -> list[LoDTensor]:
        """The next batch in the order of the loader's variables, on `device` (None: the host).

        `of`: the devices that take batches in turn, if there are several; knowing them, the loader can send batches
        ahead. What is computed on the device's compute stream from now on sees the elements. Raises EOFException at
        the end of an epoch (again and again, until the loader is reset), the error of the loader's generator, or
        RuntimeError if the loader was not started.
        """


_lock = threading.Lock()
_sources: weakref.WeakValueDictionary[str, Source] = weakref.WeakValueDictionary()


def register(name: str, source: Source) -> None:
    """Have programs that read from the queue or reader variable `name` get their batches from `source`.

    The source is not kept alive; a later one of the same name takes its place.
    """
    with _lock:
        _sources[name] = source


def lookup(name: str) -> Source | None:
    """The source registered under `name`, or None if there is none (any more)."""
    with _lock:
        return _sources.get(name)
