"""`read` operators: loaders are registered under queue names, and their next batches become feeds of a step."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ...base import callsite
from ...base.errors import EnforceNotMet
from ...framework import Operator, Program
from ..tensors.lod_tensor import LoDTensor

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


Devices = tuple["CudaDevice | None", ...]
"""The devices that take batches in round-robin order; None is the host."""


class Source(Protocol):
    """The interface of a non-iterable loader for executors.

    `drop_last`: whether an incomplete set of batches for several devices ends the epoch.
    """

    drop_last: bool

    def take(self, device: CudaDevice | None = None, of: Devices = ()) -> list[LoDTensor]:
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


def take(program: Program, device: CudaDevice | None = None, of: Devices = ()) -> dict[str, LoDTensor]:
    """One batch from every reader of the program, by variable name, on `device`; see `Source.take`.

    Raises EOFException at the end of an epoch, what the loader raises, or EnforceNotMet if the loader is gone.
    """
    feed: dict[str, LoDTensor] = {}
    for op in program._reader_ops():
        feed.update(zip(op.output("Out"), source_of(program, op).take(device, of), strict=True))
    return feed


def add_to(
    feed: Mapping[str, Any], program: Program, device: CudaDevice | None = None, of: Devices = ()
) -> dict[str, Any]:
    """`feed` with one batch from every reader of the program, which wins over a feed, with a warning, as in Fluid.

    `device`, `of`: see `take`.
    """
    taken = take(program, device, of)
    both = sorted(feed.keys() & taken.keys()) if feed else []
    if both:
        callsite.warn(
            f"{both} were fed, but the program reads them from its DataLoader: the loader's batch is used",
            RuntimeWarning,
        )
    return {**feed, **taken}


def source_of(program: Program, op: Operator) -> Source:
    """The loader of a `read` operator; EnforceNotMet if it does not exist any more."""
    source = lookup(_queue_name(program, op.input("Reader")[0]))
    if source is None:
        raise EnforceNotMet(
            f"operator read{callsite.describe(op.line)} reads {op.input('Reader')[0]!r}, but its DataLoader does not "
            "exist any more: keep the loader object as long as the program runs"
        )
    return source


def _queue_name(program: Program, reader: str) -> str:
    """The queue of a chain of reader variables; the first reader if the startup program creates that."""
    block = program.global_block()
    for op in block.ops:
        if reader in op.output_arg_names and op.type != "read":
            if op.input("blocking_queue"):
                return op.input("blocking_queue")[0]
            if op.input("UnderlyingReader"):
                return _queue_name(program, op.input("UnderlyingReader")[0])
    return reader


def drops_last(program: Program) -> bool:
    """True if an incomplete set of batches for several devices ends the epoch."""
    return all(source_of(program, op).drop_last for op in program._reader_ops())
