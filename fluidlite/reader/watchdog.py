"""`fluid.dataloader.dataloader_iter`: how workers of loaders notice the end of their parent."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable, Sequence
from queue import Empty
from typing import Any

from ..base import missing

__all__ = ["MP_INDICES_CHECK_INTERVAL", "ParentWatchDog"]

MP_INDICES_CHECK_INTERVAL = 5
"""Seconds after which a worker of Fluid checks whether its parent still runs."""


class ParentWatchDog:
    """Tells whether the parent process is still the one at construction."""

    def __init__(self) -> None:
        self._parent_pid = os.getppid()
        self._parent_alive = True

    def is_alive(self) -> bool:
        if self._parent_alive:
            self._parent_alive = os.getppid() == self._parent_pid
        return self._parent_alive


multiprocess_queue_set: set[Any] = set()
"""Queues between processes that are to be emptied at the end; loaders here empty theirs by themselves."""


class CleanupFuncRegistrar:
    """Functions for the end of the process, each called once (`fluid.multiprocess_utils.CleanupFuncRegistrar`)."""

    _executed_func_set: set[Callable[[], Any]] = set()
    _registered_func_set: set[Callable[[], Any]] = set()

    @classmethod
    def register(cls, function: Callable[[], Any], signals: Sequence[int] = ()) -> None:
        """Call `function` at the end of the process and at `signals`, before what handled these so far.

        Raises TypeError for what cannot be called, ValueError for signals that there are not.
        """
        if not callable(function):
            raise TypeError(f"{function} is not callable object.")

        def once() -> None:
            if function not in cls._executed_func_set:
                cls._executed_func_set.add(function)
                function()

        for number in signals:
            before = signal.getsignal(number)

            def handle(caught: int, frame: Any, before: Any = before) -> None:
                once()
                if callable(before):
                    before(caught, frame)
                else:
                    sys.exit(0)

            signal.signal(number, handle)
        if function not in cls._registered_func_set:
            atexit.register(once)
            cls._registered_func_set.add(function)


def _cleanup() -> None:
    """Empty and close the queues in `multiprocess_queue_set`."""
    while multiprocess_queue_set:
        waiting = multiprocess_queue_set.pop()
        try:
            while True:
                waiting.get_nowait()
        except (Empty, OSError, ValueError):  # there is nothing more, or it was closed
            waiting.close()


__getattr__ = missing.reporter(__name__)
