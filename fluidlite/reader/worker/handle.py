"""A worker process as its parent sees it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from typing import Any

from ..._ext.shm import Window, create_file, unpack
from ...base import callsite
from ...base.reports import profiling
from .channel import Channel
from .process import BATCH, Descriptor, Setup, blas_switches, main

_short: set[str] = set()  # pools that were warned about


def warn_of_shortage(label: str, pool: str, needed: int, available: int) -> None:
    """Warn once for each pool of workers that its batches do not fit into shared memory."""
    if pool in _short:
        return
    _short.add(pool)
    callsite.warn(
        f"{label}: shared memory is too small: {needed / 1e6:.1f} MB are needed, about {available / 1e6:.1f} MB are "
        "available. A pipe is slower: give it more, or read smaller batches, or fewer ahead (prefetch_factor)",
        RuntimeWarning,
    )


class Worker:
    """One process as its parent sees it."""

    def __init__(self, label: str, pool: str) -> None:
        self.label = label
        self._pool = pool
        self._spawned = False
        self.process: BaseProcess | None = None
        self.channel: Channel | None = None
        self.file = -1  # of the shared memory
        self.exit = -1  # readable when the process has ended
        self.window: Window | None = None
        self.arrived: deque[tuple[int, Any]] = deque()  # results read from the channel ahead of time
        self.skip = 0
        self.ended = False  # its last result has arrived
        self.clock: Sequence[float] = (0.0, 0.0, 0.0)
        self.batches = self.bytes = self.piped = 0

    def start(self, method: str, shared: bool, setup: Callable[[Channel, Descriptor | None], Setup]) -> None:
        """Start the process; `setup` makes its arguments."""
        context: Any = multiprocessing.get_context(method)
        self._spawned = method != "fork"
        self.channel, theirs = Channel.pair()
        file: Descriptor | None = None
        try:
            if shared:
                self.file = create_file()
                self.window = Window(self.file)
                theirs.ringed = self.channel.share(self.file)
                # A copy, because a forked child closes the descriptors of its parent's pools.
                file = Descriptor(os.dup(self.file))
            blas_switches("scipy.linalg" in sys.modules)  # searched once here instead of in every child
            process = context.Process(target=main, args=(setup(theirs, file),), daemon=True)
            with warnings.catch_warnings():
                # Python 3.12 warns of forks in threaded processes; this child runs only its own code.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            self.process = process
        finally:
            theirs.close()
            if file is not None:
                file.close()
        try:
            self.exit = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            # A kernel without pidfd. The pipe used instead may be held open by the worker's own children.
            self.exit = os.dup(process.sentinel)

    def take(self) -> tuple[int, Any] | None:
        """The next result that has arrived, as (kind, value); None if there is none. HungUp if there will be none."""
        return self.arrived.popleft() if self.arrived else self._read()

    def _read(self) -> tuple[int, Any] | None:
        assert self.channel is not None
        while (message := self.channel.take()) is not None:
            # Safe to unpickle: only our own worker has the other end of the channel.
            value, (kind, pickled, self.clock, gone, shortage), shared = unpack(self.window, message)
            recorder = profiling.detailed()
            if recorder is not None:
                recorder.heard(self.label, self.clock)
            if pickled:
                contents, places, gone_before = value
                gone += gone_before
                leases = [self.window.lease(*place) for place in places] if self.window is not None else []
                shared = sum(place[-1] for place in places)
            for slot in gone:
                assert self.window is not None
                self.window.forget(slot)
            if shortage is not None:
                warn_of_shortage(self.label, self._pool, *shortage)
            if kind == BATCH and self.skip:
                self.skip -= 1
                continue
            if kind == BATCH:
                self.batches += 1
                self.bytes += shared
                self.piped += len(message)
            else:
                self.ended = True
            return kind, pickle.loads(contents, buffers=leases) if pickled else value
        return None

    def exit_status(self) -> int | None:
        """The exit status of the process, which has ended; None if it is unknown."""
        assert self.process is not None
        self.process.join()
        # A thread that starts a process may reap this one; its status is set a moment later.
        for _ in range(200):
            if self.process.exitcode is not None:
                break
            time.sleep(0.001)
        return self.process.exitcode

    def obituary(self) -> str:
        """Describe how the process ended."""
        assert self.process is not None
        code = self.exit_status()
        how = f"exited with status {code}"
        if code is not None and code < 0:
            names = {number: number.name for number in signal.Signals}
            how = f"was killed by {names.get(-code, f'signal {-code}')}"  # type: ignore[call-overload]
            if code == -signal.SIGKILL:
                how += " (the system does that when memory runs out)"
        if self._spawned and not self.batches and code == 1:
            how += " (if it could not start, the reason is above: what workers need must be importable, defined at the "
            how += "top of a module and outside of `if __name__ == '__main__'`)"
        return f"{self.label} (process {self.process.pid}) {how} before it was done"

    def gone(self, seconds: float) -> bool:
        """Whether the process ends within `seconds`."""
        if self.process is None:
            return True
        poller = select.poll()
        poller.register(self.exit, select.POLLIN)
        return bool(poller.poll(max(seconds, 0) * 1000))

    def release(self) -> None:
        """Release all resources of the ended process but the memory of arrays in use."""
        self.abandon()
        if self.process is not None:
            if self.exit_status() is not None:
                self.process.close()
            self.process = None

    def abandon(self) -> None:
        """Close the descriptors."""
        if self.channel is not None:
            self.channel.close()
        # Cleared first: the child of a concurrent fork must not close them a second time.
        descriptors, self.file, self.exit = (self.file, self.exit), -1, -1
        for descriptor in descriptors:
            if descriptor >= 0:
                os.close(descriptor)
        self.window = None
        self.arrived.clear()
