"""The main function of a worker process of a `WorkerPool`."""

from __future__ import annotations

import ctypes
import functools
import gc
import io
import itertools
import math
import os
import pickle
import random
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import reduction
from pathlib import Path
from typing import Any

import numpy as np

from ..._ext import threads
from ..._ext.shm import Arena, pack
from ...base.place import CPUPlace
from ...framework import mode
from ..threaded import PATIENCE, without_frames
from .channel import Channel, HungUp, portable

BATCH, DONE, ERROR = range(3)  # kinds of messages to the parent
FINISH = b""  # the message that no more requests come

Run = Callable[["WorkerInfo", Iterator[Any]], Generator[Any, None, Any]]


class Descriptor:
    """A file descriptor handed to a process that is being started; the parent closes its copy afterwards."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[[Any], Descriptor], tuple[Any]]:
        return _received, (reduction.DupFd(self.number),)

    def close(self) -> None:
        os.close(self.number)


def _received(duplicate: Any) -> Descriptor:
    return Descriptor(duplicate.detach())


class WorkerInfo:
    """The description of a worker: `id`, `num_workers`, `seed` (base seed + id, or None), `payload`.

    `memory` is for `Collator(..., memory=info.memory)`: batches are put together in shared memory; None if there is
    none.
    """

    def __init__(
        self, id: int, num_workers: int, seed: int | None, payload: Any, memory: Arena | None
    ) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.payload = payload
        self.memory = memory

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array whose memory can be handed over without a copy.

        (Ordinary memory if the array is small or shared memory is used up.) Once it was yielded it must not be
        written any more.
        """
        kind = np.dtype(dtype)
        block: Any = None
        if self.memory is not None and not kind.hasobject:
            block = self.memory.block(math.prod(shape) * kind.itemsize)
        return np.empty(shape, kind) if block is None else np.ndarray(shape, kind, block)


@dataclass
class Setup:
    """The arguments of a worker process."""

    channel: Channel
    file: Descriptor | None
    id: int
    count: int
    run: Run
    payload: Any
    seed: int | None
    worker_init: Callable[[int], Any] | None
    ahead: int
    memory_limit: int | None


_current: WorkerInfo | None = None


def current_worker() -> WorkerInfo | None:
    """The WorkerInfo of the current worker process; None elsewhere."""
    return _current


class _Clock:
    """Seconds spent working, sending and idle."""

    def __init__(self) -> None:
        self.seconds = [0.0, 0.0, 0.0]
        self._since = time.perf_counter()

    def spent(self, on: int) -> None:
        """Add the time since the last call to the counter `on`."""
        now = time.perf_counter()
        self.seconds[on] += now - self._since
        self._since = now


WORKING, SENDING, IDLE = range(3)


class _Pickler(pickle.Pickler):
    """Plain arrays become a buffer, the name of a type and a shape: less work than NumPy's own way, on both sides.
    Those with gaps are made contiguous, so that they can travel through shared memory too.
    """

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not np.ndarray:
            return NotImplemented
        flags = obj.flags
        if flags.c_contiguous:
            if obj.dtype.kind in "biufc":
                return array_over, (pickle.PickleBuffer(obj), obj.dtype.str, obj.shape)  # type: ignore[arg-type]
        elif not flags.f_contiguous and not obj.dtype.hasobject:
            return self.reducer_override(np.ascontiguousarray(obj))
        return NotImplemented if obj.dtype.hasobject else obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL)


def array_over(buffer: Any, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array over the memory of `buffer`."""
    return np.ndarray(shape, dtype, buffer)


class _Outbox:
    """Sends results to the parent."""

    def __init__(self, channel: Channel, arena: Arena | None, clock: _Clock) -> None:
        self.channel = channel
        self.arena = arena
        self.clock = clock

    def send(self, kind: int, value: Any) -> None:
        """Send a result; its big arrays go to shared memory. Raises TypeError for what cannot be pickled.

        Arrays, numbers and strings in lists, tuples and dicts need no pickle.
        """
        message = pack(self.arena, (kind, False, self.clock.seconds), value)
        if message is None:
            message = pack(self.arena, (kind, True, self.clock.seconds), self._pickled(value))
            assert message is not None
        self.channel.send(message)
        self.clock.spent(SENDING)

    def _pickled(self, value: Any) -> tuple[bytes, list[Any], list[int]]:
        """The pickle, the places of its out-of-band buffers in shared memory, and the freed slots."""
        arena, contents = self.arena, io.BytesIO()
        try:
            place = None if arena is None else arena.place
            _Pickler(contents, pickle.HIGHEST_PROTOCOL, buffer_callback=place).dump(value)
        except BaseException as error:
            if arena is not None:
                arena.cancel()
            if isinstance(error, (pickle.PicklingError, AttributeError, TypeError)):
                raise TypeError(
                    f"a batch cannot be sent from its worker process to the training process: {error}. Batches hold "
                    "arrays, tensors, numbers, strings, and lists, tuples or dicts of these; read without worker "
                    "processes (num_workers=0, use_multiprocess=False) to hand on other things"
                ) from error
            raise
        return contents.getvalue(), *(([], []) if arena is None else arena.commit())


def main(setup: Setup) -> None:
    """The main function of the worker: returns when the work is done or the parent has closed the pool."""
    gc.freeze()  # collecting inherited objects would copy their pages, and finalize the parent's objects
    # Ctrl-C goes to the whole group; the parent handles it and ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(setup.channel.fileno(), done), daemon=True)
    watch.start()
    try:
        _work(setup)
    except HungUp:
        pass  # the parent has closed the pool
    finally:
        done.set()


def _watch(channel: int, done: threading.Event) -> None:
    """End this process soon after the parent has closed the channel or died, even if user code hangs."""
    poller = select.poll()
    poller.register(channel, 0)  # POLLHUP is always reported
    poller.poll()
    if not done.wait(PATIENCE):
        os._exit(1)


def _work(setup: Setup) -> None:
    global _current
    arena = None
    if setup.file is not None:
        arena = Arena(setup.file.number, setup.ahead + 2, setup.memory_limit)
        setup.channel.share(setup.file.number)
    clock = _Clock()
    outbox = _Outbox(setup.channel, arena, clock)
    seed = None if setup.seed is None else setup.seed + setup.id
    _current = WorkerInfo(setup.id, setup.count, seed, setup.payload, arena)
    try:
        mode.set_place(CPUPlace())  # a GPU that the parent has used cannot be used here
        _one_thread()
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed % 2**32)
        if setup.worker_init is not None:
            setup.worker_init(setup.id)
        with closing(setup.run(_current, _requests(setup.channel, clock))) as results:
            while True:
                try:
                    value = next(results)
                except StopIteration as stop:
                    returned = stop.value
                    break
                clock.spent(WORKING)
                outbox.send(BATCH, value)
                del value  # its memory can serve the next
        outbox.send(DONE, returned)
    except HungUp:
        raise
    except BaseException as error:
        outbox.send(ERROR, portable(without_frames(error, 1)))


def _requests(channel: Channel, clock: _Clock) -> Iterator[Any]:
    while True:
        clock.spent(WORKING)
        message = channel.receive()
        clock.spent(IDLE)
        if message == FINISH:
            return
        yield pickle.loads(message)  # safe: only our parent has the other end of the channel


def as_asked(items: Iterable[Any], requests: Iterator[int]) -> Generator[Any, None, None]:
    """Yield as many of `items` as requests ask for; each request is a number of items. For use in `run`."""
    wanted = 0
    for item in items:
        while not wanted:
            more = next(requests, None)
            if more is None:
                return
            wanted += more
        yield item
        wanted -= 1


def _one_thread() -> None:
    """Make kernels and OpenBLAS use one thread: parallelism comes from the processes."""
    threads.use(1)
    for switch in blas_switches("scipy.linalg" in sys.modules):
        switch(1)


@functools.cache
def blas_switches(with_scipy: bool) -> list[Callable[[int], None]]:
    """The functions that set the number of threads of the BLAS libraries in this process.

    Searched anew after the import of SciPy, which brings its own. Children of a fork inherit the result.
    """
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf8", errors="surrogateescape")
    except OSError:
        return []  # not Linux
    found = []
    for path in {line.split(maxsplit=5)[-1] for line in maps.splitlines() if "openblas" in line}:
        library = ctypes.CDLL(path)
        for prefix, suffix in itertools.product(("scipy_openblas", "openblas"), ("64_", "")):
            switch = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
            if switch is not None:
                found.append(switch)
                break
    return found
