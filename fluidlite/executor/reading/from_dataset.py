"""`Executor.train_from_dataset` and `infer_from_dataset`: run a program on the batches of a data set."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Protocol

import numpy as np

from ...base.context import Slot
from ...base.reports import profiling
from ..tensors.lod_tensor import LoDTensor

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
