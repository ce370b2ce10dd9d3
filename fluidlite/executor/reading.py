"""Batches that programs take by themselves: from the loaders of `read` operators, and from data sets of files.

Loaders are registered under queue names, and their next batches become feeds of a step; `run_over` is
`Executor.train_from_dataset` and `infer_from_dataset`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..base import callsite
from ..base.context import Slot
from ..base.errors import EnforceNotMet
from ..base.reports import profiling
from ..framework import Operator, Program
from .lod_tensor import LoDTensor

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice


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


Step = Callable[[dict[str, Any], Sequence[Any]], list[Any]]
"""A function that runs one step: (feeds, names of fetches) -> tensors."""


class Share(Protocol):
    """The batches of one thread."""

    def __iter__(self) -> Any: ...
    def stop(self) -> None: ...


class FetchHandler:
    """Receives values of variables while `train_from_dataset` runs (`fluid.executor.FetchHandler`).

    Derive from it and override `handler`. `var_dict`: Variables by the names under which `handler` gets their arrays;
    `period_secs`: the seconds between two calls, from a thread of its own; there is one more call at the end.
    """

    def __init__(self, var_dict: dict[str, Any] | None = None, period_secs: float = 60) -> None:
        assert var_dict is not None, "FetchHandler needs var_dict: a dict of Variables"
        self.var_dict = var_dict
        self.period_secs = period_secs

    def handler(self, res_dict: dict[str, Any]) -> None:
        """Called with the arrays (None before the first batch); prints their first elements unless overridden."""
        for name, value in res_dict.items():
            if value is not None:
                print(f"{name}[0]: {np.asarray(value).reshape(-1)[0].item()} ")

    @staticmethod
    def help() -> None:
        """Print an example."""
        print(
            "class Watcher(fluid.executor.FetchHandler):\n"
            "    def handler(self, res_dict):\n"
            "        print(res_dict['auc'])\n\n"
            "exe.train_from_dataset(program, dataset, fetch_handler=Watcher({'auc': auc}, period_secs=60))"
        )


class _HandlerThread:
    """Calls a handler periodically from a thread, and at the end."""

    def __init__(self, handler: FetchHandler) -> None:
        self._handler = handler
        self.names = list(handler.var_dict)
        self.wanted = list(handler.var_dict.values())
        self.values: dict[str, Any] = dict.fromkeys(self.names)
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._call_periodically, name="fluidlite fetch handler", daemon=True
        )
        self._thread.start()

    def _call_periodically(self) -> None:
        try:
            while not self._ended.wait(self._handler.period_secs):
                self._handler.handler(dict(self.values))
        except BaseException as error:
            self._error = error

    def end(self) -> None:
        """Call the handler once more; raises the error of an earlier call."""
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        self._handler.handler(dict(self.values))

    def cancel(self) -> None:
        self._ended.set()


def run_over(
    shares: Sequence[Share],
    steps: Sequence[Step],
    fetches: Sequence[tuple[str, str]],
    print_period: int,
    handler: FetchHandler | None,
) -> None:
    """Run a step on each batch, with a thread for each share of the batches if there are several.

    Every `print_period` batches of the first share, from the first on, the values of `fetches` (text and name of
    each) are printed. Raises the first error of a step or of reading, which ends the other threads.
    """
    watch = None if handler is None else _HandlerThread(handler)
    stopped = threading.Event()

    def printing_step(number: int, feed: dict[str, Any]) -> None:
        shown = fetches if number % print_period == 0 else ()
        values = steps[0](feed, [*(name for _, name in shown), *([] if watch is None else watch.wanted)])
        for (text, name), value in zip(shown, values, strict=False):
            print(text, name, f"{value}\t" if isinstance(value, LoDTensor) else value, sep="\t", flush=True)
        if watch is not None:
            arrays = (np.array(value) for value in values[len(shown) :])
            watch.values = dict(zip(watch.names, arrays, strict=True))

    def run_share(index: int) -> None:
        for number, feed in enumerate(_timed(shares[index])):
            if index:
                steps[index](feed, ())
            else:
                printing_step(number, feed)
            if stopped.is_set():
                return

    try:
        if len(shares) == 1:
            run_share(0)
        else:
            _in_threads([partial(run_share, index) for index in range(len(shares))], shares, stopped)
    except BaseException:
        if watch is not None:
            watch.cancel()
        raise
    if watch is not None:
        watch.end()


def _timed(batches: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The batches; while a profile is recorded, with the time that each takes to read and collate."""
    recorder = profiling.detailed()
    if recorder is None:
        return batches
    return iter(partial(recorder.timed, "reading", partial(next, iter(batches), None)), None)


def _in_threads(
    functions: Sequence[Callable[[], None]], shares: Sequence[Share], stopped: threading.Event
) -> None:
    """Run functions in threads; the first error stops all."""
    errors: list[BaseException] = []

    def stop() -> None:
        stopped.set()
        for share in shares:
            share.stop()

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
            stop()

    threads = [
        threading.Thread(
            target=Slot.carrying(guarded),
            args=(work,),
            name=f"{profiling.TRAINER} {number}",
            daemon=True,
        )
        for number, work in enumerate(functions)
    ]
    for thread in threads:
        thread.start()
    recorder = profiling.detailed()
    try:
        with nullcontext() if recorder is None else recorder.span(profiling.TRAINERS):
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.1)  # wakes up for Ctrl-C
    except BaseException:
        stop()
        for thread in threads:
            thread.join(1)
        raise
    if errors:
        raise errors[0]
