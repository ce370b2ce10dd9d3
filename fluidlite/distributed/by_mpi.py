"""Communication through mpi4py; importing this module starts MPI.

Each process sends a farewell when it ends, and waiting processes check for these regularly. So a wait does not hang,
and its error names the process that ended. A process that fails ends the others.
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
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from mpi4py import MPI

from .communicator import Communicator, DistributedError, RankLost, check_reduction

LOOKS = 4
"""Consecutive checks that must find a process stopped: Ctrl-Z stops all of them for a while."""


class Neighbour:
    """The process `pid`."""

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/stat")
        self._stopped = 0

    def looks_stopped(self) -> int:
        """The number of consecutive checks, including this one, that found it stopped; 0 without /proc."""
        with suppress(OSError, IndexError):
            state = self._path.read_bytes().rpartition(b")")[2].split()[0]
            self._stopped = self._stopped + 1 if state == b"T" else 0
        return self._stopped


def numbers_here() -> np.ndarray:
    """The PID of this process, and the number of its PID namespace, 0 if unknown."""
    space = 0
    with suppress(OSError):
        space = os.stat("/proc/self/ns/pid").st_ino
    return np.array([os.getpid(), space], np.int64)


_KINDS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "exchange", "barrier")
_REDUCTIONS = {"sum": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN}

_BUSY = 0.05
"""Seconds of busy waiting; after that a waiting process sleeps between checks."""

_RATE = 2e8
"""Bytes per second at least expected from a transfer; busy waiting is extended accordingly."""

_PAUSE = 0.0002
_LOOK = 0.02
"""Seconds between checks for processes that have ended."""

_STOPPED_FOR = 2.0
"""Seconds that a process of this machine may be stopped (SIGSTOP) before it counts as lost."""

_GRACE = 1.0
"""Seconds for the last messages of a process that has ended to arrive."""

_ENDED, _FAILED = 0, 1
_STEP = 12
"""The index of the sender's step in a header."""


class ByMPI(Communicator):
    """The Communicator by MPI; a process has one (`processes.world`)."""

    def __init__(self) -> None:
        self._comm, self._async_comm, self._farewells = (MPI.COMM_WORLD.Dup() for _ in range(3))
        for comm in (self._comm, self._async_comm):
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
        self._neighbours: dict[int, Neighbour] = {}
        self._looked = 0.0
        name = np.frombuffer(socket.gethostname().encode()[:64].ljust(64), np.uint8)
        names = np.empty((self.size, 64), np.uint8)
        self._wait(self._comm.Iallgather(name, names))
        self.hosts = [row.tobytes().decode().rstrip() for row in names]
        self._neighbours = self._find_neighbours()
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self._terminated)
                os.register_at_fork(after_in_child=_end_at_sigterm)
        self._previous_hook = sys.excepthook
        sys.excepthook = self._report
        atexit.register(self._end)

    def _find_neighbours(self) -> dict[int, Neighbour]:
        """The other processes of this machine's PID namespace, by rank."""
        own = numbers_here()
        numbers = np.empty((self.size, len(own)), np.int64)
        self._wait(self._comm.Iallgather(own, numbers))
        return {
            rank: Neighbour(int(pid))
            for rank, (pid, space) in enumerate(numbers)
            if rank != self.rank and space == own[1] != 0 and self.hosts[rank] == self.hosts[self.rank]
        }

    def all_reduce(self, array: np.ndarray, reduction: str = "sum") -> np.ndarray:
        check_reduction(reduction)
        with self._lock:
            return self._reduced(self._comm, _plain(array), reduction)

    def _reduced(self, comm: Any, source: np.ndarray, reduction: str, owned: bool = False) -> np.ndarray:
        """Reduce `source` over `comm`; `owned`: in place."""
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
        """Sum in a thread, one array after the other, on a communicator of its own."""
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            return super()._begin(array)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "fluidlite-sums")
        future = self._thread.submit(self._reduced, self._async_comm, _plain(array), "sum", True)

        def total() -> np.ndarray:
            self._awaited = True
            try:
                return future.result()
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
            row_bytes = int(np.prod(source.shape[1:], dtype=np.int64)) * source.itemsize
            counts = [count * row_bytes for count in rows]
            self._wait(self._comm.Iallgatherv(_bytes(source), _places(out, counts)), out.nbytes)
        return out

    def reduce_scatter(self, array: np.ndarray) -> np.ndarray:
        source = _plain(array)
        if source.ndim == 0 or len(source) % self.size:
            raise DistributedError(
                f"an array of shape {list(source.shape)} cannot be partitioned over {self.size} processes: its rows "
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
        """Exchange a header with the kind, type and shape of the next message; returns all `extra`s.

        Raises DistributedError if the headers differ, except for the extra of `all_gather`.
        """
        own = np.zeros(_STEP + 1, np.int64)
        own[_STEP] = self.step
        own[:4] = _KINDS.index(kind), extra, array.dtype.num, array.ndim
        shape = array.shape[1:] if kind == "all_gather" else array.shape
        own[4 : 4 + len(shape)] = shape
        headers = np.empty((self.size, len(own)), np.int64)
        self._wait((comm or self._comm).Iallgather(own, headers))
        self._steps = headers[:, _STEP]
        self._exchanged |= kind in ("all_reduce", "all_gather")
        same = headers[:, :_STEP].copy()
        if kind == "all_gather":
            same[same[:, 0] == own[0], 1] = 0
        if (same != same[0]).any():
            differing = int(np.flatnonzero((same != same[0]).any(axis=1))[0])
            raise DistributedError(
                f"the processes call different operations: rank 0 is at {_described(headers[0])}, rank {differing} at "
                f"{_described(headers[differing])}"
            )
        return [int(n) for n in headers[:, 1]]

    def _wait(self, request: Any, size: int = 0) -> None:
        """Wait for a message of `size` bytes. Raises RankLost if a process has ended or is stopped."""
        self._messages += 1
        if request.Test():
            return
        begin = looked = time.perf_counter()
        busy = _BUSY + size / _RATE
        while not request.Test():
            now = time.perf_counter()
            in_background = not self._awaited and threading.current_thread() is not threading.main_thread()
            if in_background or now - begin > busy:
                time.sleep(_PAUSE)
            else:
                os.sched_yield()
            if now - looked > _LOOK:
                looked = now
                self._look(now)
        self._waited += time.perf_counter() - begin

    def _look(self, now: float) -> None:
        """Receive farewells. Raises RankLost if a process has failed, is stopped, or ended `_GRACE` seconds ago."""
        status = MPI.Status()
        if now - self._looked > _STOPPED_FOR / LOOKS:
            self._looked = now
            for rank, neighbour in self._neighbours.items():
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
            f"and rank {self.rank} waits for it in step {self.step}; the last step that it reported is "
            f"{self._steps[rank]}"
        )

    def begin_step(self) -> None:
        if self._exchanged:
            self.step, self._exchanged = self.step + 1, False

    def _terminated(self, *_: object) -> None:
        """The handler of SIGTERM, which ends a failed run: print the last reported steps for the launcher, and end."""
        known = self._steps.copy()
        known[self.rank] = self.step
        os.write(2, f"fluidlite: rank {self.rank} has seen steps {' '.join(map(str, known))}\n".encode())
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def _say(self, how: int) -> None:
        """Send a farewell to the other processes."""
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
        """The `sys.excepthook`: print the error, send farewells, and end the run."""
        if os.getpid() != self.owner:
            self._previous_hook(kind, error, traceback)
            return
        if isinstance(error, RankLost):
            print(f"fluidlite: {error}", file=sys.stderr)
            time.sleep(_GRACE)  # the process that failed ends the run
        else:
            self._previous_hook(kind, error, traceback)
            where = f"rank {self.rank} failed on {self.hosts[self.rank]} in step {self.step}"
            print(f"fluidlite: {where}: {kind.__name__}: {error}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        self._say(_FAILED)
        time.sleep(10 * _LOOK)  # for the others to receive the farewell
        os._exit(1)  # then mpiexec ends them


def _end_at_sigterm() -> None:
    """Restore SIGTERM in a forked process, so that it ends at once, even while it waits in C."""
    if getattr(signal.getsignal(signal.SIGTERM), "__func__", None) is ByMPI._terminated:
        with suppress(ValueError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _plain(array: np.ndarray) -> np.ndarray:
    """A C-contiguous array of a type that MPI supports. Raises DistributedError for other types."""
    contiguous = np.ascontiguousarray(array).reshape(np.shape(array))
    if contiguous.dtype.kind not in "biuf" or contiguous.dtype.itemsize > 8 or contiguous.ndim > 8:
        raise DistributedError(
            "processes exchange arrays of integers and reals of up to 8 dimensions, got "
            f"{contiguous.dtype} {list(contiguous.shape)}"
        )
    return contiguous


def _bytes(array: np.ndarray) -> list[Any]:
    return [array.reshape(-1).view(np.uint8), MPI.BYTE]


def _places(array: np.ndarray, counts: list[int]) -> list[Any]:
    """An array as parts of `counts` bytes, for MPI."""
    starts = [0, *np.cumsum(counts)[:-1].tolist()]
    return [array.reshape(-1).view(np.uint8), (counts, starts), MPI.BYTE]


def _described(header: np.ndarray) -> str:
    """A header as text for errors."""
    kind, extra, number, ndim = (int(n) for n in header[:4])
    name = _KINDS[kind] if 0 <= kind < len(_KINDS) else f"message {kind}"
    if name == "barrier":
        return name
    dtype = next((np.dtype(code) for code in "?bBhHiIlLqQefd" if np.dtype(code).num == number), number)
    shape = header[4 : 4 + (ndim - 1 if name == "all_gather" else ndim)].tolist()
    what = {
        "all_reduce": f" ({list(_REDUCTIONS)[extra] if extra < 4 else extra})",
        "broadcast": f" (from rank {extra})",
    }
    rows = [extra, *shape] if name == "all_gather" else shape
    return f"{name}{what.get(name, '')} of {dtype} {rows}"
