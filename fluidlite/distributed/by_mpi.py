"""The processes of a run through mpi4py; importing this module starts MPI.

Whoever waits looks from time to time whether somebody has left: each process says so when it ends. So nobody waits for
what will never come, and the error names the one that is gone. A process that fails ends the others.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any

import numpy as np
from mpi4py import MPI

from .communicator import Communicator, DistributedError, RankLost, check_reduction
from .neighbour import LOOKS, Neighbour, numbers_here

_KINDS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "exchange", "barrier")
_REDUCTIONS = {"sum": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN}

_BUSY = 0.05
"""For how many seconds a process that waits does nothing else; after that it sleeps between its looks."""

_RATE = 2e8
"""How many bytes per second arrive at least while everybody is there: for so long nobody sleeps between looks."""

_PAUSE = 0.0002
_LOOK = 0.02
"""How often, in seconds, it looks whether somebody has left."""

_STOPPED_FOR = 2.0
"""For how many seconds a process of this machine is seen to be stopped before it is lost."""

_GRACE = 1.0
"""What a process has sent before it left may take so many seconds to arrive."""

_ENDED, _FAILED = 0, 1
_STEP = 12
"""Where in what precedes a message the step of the sender stands."""


class ByMPI(Communicator):
    """See `Communicator`. There is one of it in a process (`communicator.world`)."""

    def __init__(self) -> None:
        self._comm, self._beside, self._farewells = (MPI.COMM_WORLD.Dup() for _ in range(3))
        for comm in (self._comm, self._beside):
            comm.Set_errhandler(MPI.ERRORS_RETURN)
        self.rank, self.size = self._comm.rank, self._comm.size
        self.owner = os.getpid()
        self._lock, self._ears = threading.RLock(), threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._awaited = False
        self._messages, self._waited = 0, 0.0
        self._left: dict[int, tuple[int, float]] = {}
        self._said = False
        self.step, self._exchanged = 0, False
        self._steps = np.zeros(self.size, np.int64)
        self._beside_us: dict[int, Neighbour] = {}
        self._looked = 0.0
        name = np.frombuffer(socket.gethostname().encode()[:64].ljust(64), np.uint8)
        told = np.empty((self.size, 64), np.uint8)
        self._wait(self._comm.Iallgather(name, told))
        self.hosts = [row.tobytes().decode().rstrip() for row in told]
        self._beside_us = self._neighbours()
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self._terminated)
                os.register_at_fork(after_in_child=_end_at_sigterm)
        self._previous_hook = sys.excepthook
        sys.excepthook = self._report
        atexit.register(self._end)

    def _neighbours(self) -> dict[int, Neighbour]:
        """The other processes whose state this machine tells."""
        own = numbers_here()
        told = np.empty((self.size, len(own)), np.int64)
        self._wait(self._comm.Iallgather(own, told))
        return {
            rank: Neighbour(int(pid))
            for rank, (pid, space) in enumerate(told)
            if rank != self.rank and space == own[1] != 0 and self.hosts[rank] == self.hosts[self.rank]
        }

    def all_reduce(self, array: np.ndarray, reduction: str = "sum") -> np.ndarray:
        check_reduction(reduction)
        with self._lock:
            return self._reduced(self._comm, _plain(array), reduction)

    def _reduced(self, comm: Any, source: np.ndarray, reduction: str, owned: bool = False) -> np.ndarray:
        """`owned`: whether the result may take the place of `source`."""
        self._agree("all_reduce", source, list(_REDUCTIONS).index(reduction), comm)
        if owned and source.dtype != bool and source.dtype != np.float16:
            self._wait(comm.Iallreduce(MPI.IN_PLACE, source, _REDUCTIONS[reduction]), source.nbytes)
            return source
        wide = source.astype(np.float32) if source.dtype == np.float16 else source
        out = np.empty_like(wide)
        sent, received = (wide.view(np.uint8), out.view(np.uint8)) if wide.dtype == bool else (wide, out)
        if wide.dtype == bool:
            reduction = {"sum": "max", "prod": "min"}.get(reduction, reduction)
        self._wait(comm.Iallreduce(sent, received, _REDUCTIONS[reduction]), wide.nbytes)
        return out.astype(source.dtype, copy=False)

    def _begin(self, array: np.ndarray) -> Callable[[], np.ndarray]:
        """A thread makes these sums, one after the other, on a line of its own."""
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            return super()._begin(array)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "fluidlite-sums")
        found = self._thread.submit(self._reduced, self._beside, _plain(array), "sum", True)

        def total() -> np.ndarray:
            self._awaited = True
            try:
                return found.result()
            finally:
                self._awaited = False

        return total

    def broadcast(self, array: np.ndarray, root: int = 0) -> np.ndarray:
        self.check_root(root)
        out = np.array(array, order="C")
        with self._lock:
            self._agree("broadcast", out, extra=root)
            self._wait(self._comm.Ibcast(_bytes(out), root), out.nbytes)
        return out

    def all_gather(self, array: np.ndarray) -> np.ndarray:
        source = _plain(array)
        if source.ndim == 0:
            source = source.reshape(1)
        with self._lock:
            rows = self._agree("all_gather", source[:0], extra=len(source))
            out = np.empty((sum(rows), *source.shape[1:]), source.dtype)
            width = _width(source)
            counts = [count * width for count in rows]
            self._wait(self._comm.Iallgatherv(_bytes(source), _places(out, counts)), out.nbytes)
        return out

    def reduce_scatter(self, array: np.ndarray) -> np.ndarray:
        source = _plain(array)
        if source.ndim == 0 or len(source) % self.size:
            raise DistributedError(
                f"an array of shape {list(source.shape)} cannot be shared out among {self.size} processes: its rows "
                "must be a multiple of that"
            )
        share = len(source) // self.size
        return self.all_reduce(source)[self.rank * share : (self.rank + 1) * share].copy()

    def exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        sources = [_plain(part) for part in parts]
        kinds = {(part.dtype, part.ndim) for part in sources}
        if len(sources) != self.size or len(kinds) != 1 or sources[0].ndim != 1:
            raise DistributedError(
                f"a process has one array of one dimension for each of {self.size}, all of one type, got "
                f"{[f'{part.dtype} {list(part.shape)}' for part in sources]}"
            )
        with self._lock:
            self._agree("exchange", sources[0][:0])
            counts = np.array([len(part) for part in sources], np.int64)
            coming = np.empty_like(counts)
            self._wait(self._comm.Ialltoall(counts, coming))
            joined = np.concatenate(sources)
            out = np.empty(int(coming.sum()), joined.dtype)
            size = joined.itemsize
            self._wait(
                self._comm.Ialltoallv(
                    _places(joined, [int(n) * size for n in counts]),
                    _places(out, [int(n) * size for n in coming]),
                ),
                joined.nbytes + out.nbytes,
            )
        return np.split(out, np.cumsum(coming)[:-1])

    def barrier(self) -> None:
        with self._lock:
            self._agree("barrier", np.empty(0, np.uint8))

    def stats(self) -> dict[str, Any]:
        messages, waited = self._messages, self._waited
        seconds = self.all_gather(np.array([waited]))
        return {
            "host": list(self.hosts),
            "messages": self.all_gather(np.array([messages])).tolist(),
            "waited": seconds.tolist(),
            "slowest": int(seconds.argmin()),
        }

    def _agree(self, kind: str, array: np.ndarray, extra: int = 0, comm: Any = None) -> list[int]:
        """Say what comes next, and hear it from the others; returns their `extra`s.

        Raises DistributedError if they are about to do something else. Of `all_gather` the extra may differ.
        """
        own = np.zeros(_STEP + 1, np.int64)
        own[_STEP] = self.step
        own[:4] = _KINDS.index(kind), extra, array.dtype.num, array.ndim
        shape = array.shape[1:] if kind == "all_gather" else array.shape
        own[4 : 4 + len(shape)] = shape
        told = np.empty((self.size, len(own)), np.int64)
        self._wait((comm or self._comm).Iallgather(own, told))
        self._steps = told[:, _STEP]
        self._exchanged |= kind in ("all_reduce", "all_gather")
        same = told[:, :_STEP].copy()
        if kind == "all_gather":
            same[same[:, 0] == own[0], 1] = 0
        if (same != same[0]).any():
            differing = int(np.flatnonzero((same != same[0]).any(axis=1))[0])
            raise DistributedError(
                f"the processes do not do the same: rank 0 is at {_described(told[0])}, rank {differing} at "
                f"{_described(told[differing])}"
            )
        return [int(n) for n in told[:, 1]]

    def _wait(self, request: Any, size: int = 0) -> None:
        """Wait for the end of a message of `size` bytes; RankLost if somebody has left who has not sent their part."""
        self._messages += 1
        if request.Test():
            return
        begin = looked = time.perf_counter()
        busy = _BUSY + size / _RATE
        while not request.Test():
            now = time.perf_counter()
            beside = not self._awaited and threading.current_thread() is not threading.main_thread()
            if beside or now - begin > busy:
                time.sleep(_PAUSE)
            else:
                os.sched_yield()
            if now - looked > _LOOK:
                looked = now
                self._look(now)
        self._waited += time.perf_counter() - begin

    def _look(self, now: float) -> None:
        """Hear who has left; raise RankLost if somebody did so long enough ago."""
        status = MPI.Status()
        if now - self._looked > _STOPPED_FOR / LOOKS:
            self._looked = now
            for rank, neighbour in self._beside_us.items():
                if neighbour.looks_stopped() >= LOOKS:
                    raise RankLost(f"rank {rank} on {self.hosts[rank]} is stopped, {self._awaiting(rank)}")
        with self._ears:
            while self._farewells.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG, status):
                word = np.empty(1, np.int64)
                self._farewells.Recv(word, status.Get_source(), status.Get_tag())
                self._left[status.Get_source()] = int(word[0]), now
        for rank, (how, since) in sorted(self._left.items(), key=lambda item: -item[1][0]):
            if how == _FAILED or now - since > _GRACE:
                raise RankLost(
                    f"rank {rank} on {self.hosts[rank]} has {'failed' if how == _FAILED else 'ended'}, "
                    f"{self._awaiting(rank)}"
                )

    def _awaiting(self, rank: int) -> str:
        return (
            f"and rank {self.rank} waits for it in step {self.step}; the last step that it has told of is "
            f"{self._steps[rank]}"
        )

    def begin_step(self) -> None:
        if self._exchanged:
            self.step, self._exchanged = self.step + 1, False

    def _terminated(self, *_: object) -> None:
        """At the end of a run that has failed: leave behind which steps this process knows of, and end."""
        known = self._steps.copy()
        known[self.rank] = self.step
        os.write(2, f"fluidlite: rank {self.rank} knows of steps {' '.join(map(str, known))}\n".encode())
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def _say(self, how: int) -> None:
        """Tell the others that this process leaves."""
        if self._said:
            return
        self._said = True
        word = np.array([how], np.int64)
        for rank in range(self.size):
            if rank != self.rank:
                self._farewells.Isend(word, rank)
        self._word = word  # until it is sent

    def _end(self) -> None:
        if os.getpid() == self.owner and not MPI.Is_finalized():
            self._say(_ENDED)

    def _report(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        """What `sys.excepthook` does: tell the error, then the others, and end the run."""
        if os.getpid() != self.owner:
            self._previous_hook(kind, error, traceback)
            return
        if isinstance(error, RankLost):
            print(f"fluidlite: {error}", file=sys.stderr)
            time.sleep(_GRACE)  # whoever failed ends the run
        else:
            self._previous_hook(kind, error, traceback)
            where = f"rank {self.rank} failed on {self.hosts[self.rank]} in step {self.step}"
            print(f"fluidlite: {where}: {kind.__name__}: {error}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        self._say(_FAILED)
        time.sleep(10 * _LOOK)  # the others see who it was
        os._exit(1)  # whereupon mpiexec ends them


def _end_at_sigterm() -> None:
    """What a forked process does: end at once, also while it waits in C."""
    if getattr(signal.getsignal(signal.SIGTERM), "__func__", None) is ByMPI._terminated:
        with suppress(ValueError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _plain(array: np.ndarray) -> np.ndarray:
    """An array in the order of C whose elements MPI knows."""
    found = np.ascontiguousarray(array).reshape(np.shape(array))
    if found.dtype.kind not in "biuf" or found.dtype.itemsize > 8 or found.ndim > 8:
        raise DistributedError(
            "processes exchange arrays of integers and reals of up to 8 dimensions, got "
            f"{found.dtype} {list(found.shape)}"
        )
    return found


def _width(array: np.ndarray) -> int:
    """How many bytes a row has."""
    return int(np.prod(array.shape[1:], dtype=np.int64)) * array.itemsize


def _bytes(array: np.ndarray) -> list[Any]:
    return [array.reshape(-1).view(np.uint8), MPI.BYTE]


def _places(array: np.ndarray, counts: list[int]) -> list[Any]:
    """An array as parts of so many bytes each, for MPI."""
    starts = [0, *np.cumsum(counts)[:-1].tolist()]
    return [array.reshape(-1).view(np.uint8), (counts, starts), MPI.BYTE]


def _described(told: np.ndarray) -> str:
    """A message as an error tells it."""
    kind, extra, number, ndim = (int(n) for n in told[:4])
    name = _KINDS[kind] if 0 <= kind < len(_KINDS) else f"message {kind}"
    if name == "barrier":
        return name
    dtype = next((np.dtype(code) for code in "?bBhHiIlLqQefd" if np.dtype(code).num == number), number)
    shape = told[4 : 4 + (ndim - 1 if name == "all_gather" else ndim)].tolist()
    what = {
        "all_reduce": f" ({list(_REDUCTIONS)[extra] if extra < 4 else extra})",
        "broadcast": f" (from rank {extra})",
    }
    rows = [extra, *shape] if name == "all_gather" else shape
    return f"{name}{what.get(name, '')} of {dtype} {rows}"
