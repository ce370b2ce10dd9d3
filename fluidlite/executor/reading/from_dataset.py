"""`Executor.train_from_dataset` and `infer_from_dataset`: a program over the batches of a data set."""

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
"""One step: feeds and names of fetches in, tensors out."""


class Share(Protocol):
    """The batches of one thread."""

    def __iter__(self) -> Any: ...
    def stop(self) -> None: ...


class FetchHandler:
    """Looks at variables from time to time while `train_from_dataset` runs (`fluid.executor.FetchHandler`).

    Derive from it and override `handler`. `var_dict`: Variables by the names under which `handler` gets their arrays;
    `period_secs`: how many seconds are between two calls, which come from a thread of their own, and once at the end.
    """

    def __init__(self, var_dict: dict[str, Any] | None = None, period_secs: float = 60) -> None:
        assert var_dict is not None, "FetchHandler needs var_dict: a dict of Variables"
        self.var_dict = var_dict
        self.period_secs = period_secs

    def handler(self, res_dict: dict[str, Any]) -> None:
        """Called with the arrays, None for those that no batch has made yet; prints their first elements unless it is
        overridden.
        """
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


class _Watch:
    """Calls a handler from a thread, every so many seconds and at the end."""

    def __init__(self, handler: FetchHandler) -> None:
        self._handler = handler
        self.names = list(handler.var_dict)
        self.wanted = list(handler.var_dict.values())
        self.values: dict[str, Any] = dict.fromkeys(self.names)
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._look, name="fluidlite fetch handler", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        try:
            while not self._ended.wait(self._handler.period_secs):
                self._handler.handler(dict(self.values))
        except BaseException as error:
            self._error = error

    def end(self) -> None:
        """Call the handler once more; raises what it has raised before."""
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        self._handler.handler(dict(self.values))

    def give_up(self) -> None:
        self._ended.set()


def run_over(
    shares: Sequence[Share],
    steps: Sequence[Step],
    fetches: Sequence[tuple[str, str]],
    print_period: int,
    handler: FetchHandler | None,
) -> None:
    """Run a step on each batch; every share of the batches has a thread of its own, if there are several.

    Every `print_period` batches of the first share, from the first on, the values of `fetches` (text and name of
    each) are printed. Raises what a step or reading has raised; the other threads end then, too.
    """
    watch = None if handler is None else _Watch(handler)
    stopped = threading.Event()

    def shown_step(number: int, feed: dict[str, Any]) -> None:
        shown = fetches if number % print_period == 0 else ()
        values = steps[0](feed, [*(name for _, name in shown), *([] if watch is None else watch.wanted)])
        for (text, name), value in zip(shown, values, strict=False):
            print(text, name, f"{value}\t" if isinstance(value, LoDTensor) else value, sep="\t", flush=True)
        if watch is not None:
            found = (np.array(value) for value in values[len(shown) :])
            watch.values = dict(zip(watch.names, found, strict=True))

    def over(place: int) -> None:
        for number, feed in enumerate(_recorded(shares[place])):
            if place:
                steps[place](feed, ())
            else:
                shown_step(number, feed)
            if stopped.is_set():
                return

    try:
        if len(shares) == 1:
            over(0)
        else:
            _together([partial(over, place) for place in range(len(shares))], shares, stopped)
    except BaseException:
        if watch is not None:
            watch.give_up()
        raise
    if watch is not None:
        watch.end()


def _recorded(batches: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The batches; for the report of a run also how long each was read and put together."""
    recorder = profiling.detailed()
    if recorder is None:
        return batches
    return iter(partial(recorder.timed, "reading", partial(next, iter(batches), None)), None)


def _together(works: Sequence[Callable[[], None]], shares: Sequence[Share], stopped: threading.Event) -> None:
    """Run functions in threads of their own; the first error ends all."""
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
        for number, work in enumerate(works)
    ]
    for thread in threads:
        thread.start()
    recorder = profiling.detailed()
    try:
        with nullcontext() if recorder is None else recorder.span(profiling.TRAINERS):
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.1)  # so that Ctrl-C is heard
    except BaseException:
        stop()
        for thread in threads:
            thread.join(1)
        raise
    if errors:
        raise errors[0]
