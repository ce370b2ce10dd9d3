"""`WorkerPool`: processes that make batches and hand them over through shared memory."""

from __future__ import annotations

import atexit
import functools
import multiprocessing
import multiprocessing.process
import os
import pickle
import select
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from ..._ext.queue import QueueForked
from ..threaded import PATIENCE, finalize
from .channel import HungUp, PoolClosed, WorkerDied, WorkerDone, WorkerTimeout, rebuilt
from .handle import Worker
from .process import BATCH, DONE, FINISH, Run, Setup

if TYPE_CHECKING:
    from ..loader.source import FetchedBatch

# Most seconds to sleep before signals are checked: a system call is not interrupted by a signal that arrives just
# before it, or in another thread.
_SIGNALS = 0.5

# Processes are started one at a time: a child that inherits the descriptors of another one would keep its
# connection open.
_starting = threading.Lock()
_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


class WorkerPool:
    """`count` processes that each run `run(info, requests)`, a generator function.

    `info` is a `WorkerInfo`; `requests` iterates over the parent's requests to this worker and ends when the parent
    calls `finish`; the generator is closed when the parent closes the pool or dies. `run` yields batches:
    any picklable objects. Big arrays in it (also nested: in lists, dicts, LoDTensors) travel through shared
    memory: one copy in the worker (none if the array was made by `info.empty` or by a Collator with
    `memory=info.memory`), none in the parent, whose arrays are views that stay valid as long as they are held, also
    after `close`. How many batches are made ahead is up to the parent: a worker does nothing without requests.

    `payload`: data for `run`, as `info.payload` (closures are fine if the start method is fork).
    `name`, `label`: the names of the pool, e.g. 'DataLoader', and of a worker in messages.
    `ahead`: the expected number of waiting batches of one worker, for which shared memory is kept for reuse.
    `timeout`: seconds that `receive` waits at most, 0 for ever.
    `seed`: workers seed `random` and `numpy.random` with seed + id; None leaves them as they were inherited.
    `worker_init`: called with the worker's id first, in the worker.
    `method`: 'fork', 'spawn' or 'forkserver'; by default that of `multiprocessing.set_start_method`, else fork, even
    where 'forkserver' is Python's own default.
    `use_shared_memory`: False sends everything through pipes. `memory_limit`: bytes of shared memory that one worker
    may use (None: all available); beyond it batches are copied through pipes, with one RuntimeWarning.

    Raises TypeError if `run` or `payload` cannot be sent to a process that is spawned, ValueError for an unknown
    method, AssertionError (as multiprocessing does) in a worker process, which cannot have workers of its own.
    """

    def __init__(
        self,
        count: int,
        run: Run,
        payload: Any = None,
        *,
        name: str = "worker pool",
        label: str = "worker",
        ahead: int = 2,
        timeout: float = 0.0,
        seed: int | None = None,
        worker_init: Callable[[int], Any] | None = None,
        method: str | None = None,
        use_shared_memory: bool = True,
        memory_limit: int | None = None,
    ) -> None:
        self.count = count
        self.timeout = timeout
        self.closed = False
        self.forked = False
        self._waited = 0.0
        self._receiving = threading.RLock()
        self._closing = threading.RLock()
        self._pollers: dict[tuple[int, ...], select.poll] = {}
        self._alive = set(range(count))  # workers whose end is not handled yet
        self._next_first = 0
        self._workers = [Worker(f"{label} {i} of {count} of {name}", name) for i in range(count)]
        if multiprocessing.current_process().daemon:
            raise AssertionError(
                f"{name}: daemonic processes are not allowed to have children, and this one is a worker itself; read "
                "without worker processes here (num_workers=0, use_multiprocess=False)"
            )
        if method is None:
            method = multiprocessing.get_start_method(allow_none=True) or "fork"
            # Python's default from 3.14 on, which is set as soon as a context was used.
            if method == "forkserver" == multiprocessing.get_all_start_methods()[0]:
                method = "fork"
        _close_at_exit()
        with _starting:
            _pools.add(self)
            try:
                for i, worker in enumerate(self._workers):
                    setup = functools.partial(
                        Setup,
                        id=i,
                        count=count,
                        run=run,
                        payload=payload,
                        seed=seed,
                        worker_init=worker_init,
                        ahead=ahead,
                        memory_limit=memory_limit,
                    )
                    worker.start(method, use_shared_memory, setup)
            except BaseException as error:
                self.close()
                if method != "fork" and isinstance(error, (pickle.PicklingError, AttributeError, TypeError)):
                    raise TypeError(
                        f"{name}: what the workers run cannot be sent to a process started by {method!r} ({error}); "
                        "define functions and classes at the top of a module, or use the start method 'fork'"
                    ) from error
                raise

    def send(self, worker: int, request: Any) -> None:
        """Send a request, any picklable object, to worker number `worker` (0 to count - 1).

        Does not wait for the worker (but for another thread that is receiving).
        """
        self._post(worker, pickle.dumps(request, pickle.HIGHEST_PROTOCOL))

    def finish(self, worker: int) -> None:
        """No more requests for this worker: `requests` ends there after those that were sent."""
        self._post(worker, FINISH)

    def _post(self, worker: int, message: bytes) -> None:
        with self._receiving:
            self._check()
            channel = self._workers[worker].channel
            assert channel is not None
            channel.post(message)

    def receive(self, worker: int) -> Any:
        """The next item that `worker` yields, in order.

        Raises WorkerDone (with `value`, the result of `run`) at its end, the error that `run` raised (its cause is a
        WorkerTraceback), WorkerDied (a RuntimeError) if any process of the pool was killed or exited,
        WorkerTimeout (a RuntimeError and TimeoutError) after `timeout` seconds, PoolClosed if the pool is or gets
        closed by another thread meanwhile, QueueForked in the child of a fork. After WorkerTimeout one may go on
        waiting.
        """
        return self._receive((worker,))[1]

    def receive_any(self, workers: Sequence[int]) -> tuple[int, Any]:
        """(worker, item) from the first of `workers` that has an item; round-robin if several have.

        Raises as `receive`; a WorkerDone names its worker.
        """
        return self._receive(tuple(workers))

    def _receive(self, numbers: tuple[int, ...]) -> tuple[int, Any]:
        with self._receiving:
            found = self._take(numbers)
            if found is None:
                begin = time.perf_counter()
                try:
                    found = self._wait(numbers)
                finally:
                    self._waited += time.perf_counter() - begin
        number, (kind, value) = found
        if kind == BATCH:
            return number, value
        if kind == DONE:
            raise WorkerDone(value, number)
        raise rebuilt(value, self._workers[number].label)

    def _take(self, numbers: tuple[int, ...]) -> tuple[int, tuple[int, Any]] | None:
        self._check()
        for k in range(len(numbers)):
            number = numbers[(self._next_first + k) % len(numbers)]
            try:
                result = self._workers[number].take()
            except HungUp:
                self._check()
                if self._workers[number].ended:
                    raise WorkerDone(None, number) from None
                raise WorkerDied(self._workers[number].obituary()) from None
            if result is not None:
                self._next_first = (self._next_first + k + 1) % len(numbers)
                return number, result
        return None

    def _wait(self, numbers: tuple[int, ...]) -> tuple[int, tuple[int, Any]]:
        deadline = time.monotonic() + self.timeout if self.timeout > 0 else None
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            if not all(channel.doze() for number in numbers if (channel := self._workers[number].channel)):
                found = self._take(numbers)
                if found is not None:
                    return found
                continue
            pause = _SIGNALS if left is None else min(left, _SIGNALS)
            events = self._poller(numbers).poll(pause * 1000)
            for worker in self._workers:
                if worker.channel is not None and worker.channel.pending:
                    worker.channel.flush()
            found = self._take(numbers)
            if found is not None:
                return found
            self._check_exits({descriptor for descriptor, _ in events})
            if not events and left == pause:
                names = ", ".join(self._workers[number].label for number in numbers)
                raise WorkerTimeout(
                    f"{names} gave nothing for {self.timeout:g} s (timeout={self.timeout:g}): it hangs, or needs "
                    "longer for one batch"
                )

    def _poller(self, numbers: tuple[int, ...]) -> select.poll:
        """A poll object for the channels of these workers and for the end of any worker."""
        pending = [worker.channel for worker in self._workers if worker.channel and worker.channel.pending]
        poller = None if pending else self._pollers.get(numbers)
        if poller is None:
            poller = select.poll()
            for number in self._alive:
                poller.register(self._workers[number].exit, select.POLLIN)
            for channel in pending:
                poller.register(channel, select.POLLOUT)
            for number in numbers:
                wanted = self._workers[number].channel
                assert wanted is not None
                poller.register(wanted, select.POLLIN | (select.POLLOUT if wanted.pending else 0))
            if not pending:
                self._pollers[numbers] = poller
        return poller

    def _check_exits(self, descriptors: set[int]) -> None:
        """Raise WorkerDied if one of these descriptors is that of a process that ended too early."""
        for number in list(self._alive):
            worker = self._workers[number]
            if worker.exit in descriptors:
                if worker.exit_status() != 0 and not worker.ended:
                    raise WorkerDied(worker.obituary())
                # Its last messages, or their absence, are handled when it is received from.
                self._alive.discard(number)
                self._pollers.clear()

    def require_own(self) -> None:
        """Raise QueueForked in the child of a fork."""
        if self.forked:
            raise QueueForked(
                "these workers were started before the process was forked and belong to its parent; begin anew in "
                "this process"
            )

    def _check(self) -> None:
        self.require_own()
        if self.closed:
            raise PoolClosed("the worker pool is closed")

    def usable(self) -> bool:
        """Whether all processes run and belong to this process."""
        return not self.closed and not self.forked and len(self.processes()) == self.count

    def ready(self, worker: int) -> bool:
        """Whether `receive(worker)` would return or raise at once; False while another thread is receiving."""
        if not self._receiving.acquire(blocking=False):
            return False
        try:
            if self.closed or self.forked:
                return True
            mine = self._workers[worker]
            try:
                result = mine.take()
            except HungUp:
                return True
            if result is not None:
                mine.arrived.appendleft(result)
            return result is not None
        finally:
            self._receiving.release()

    def discard(self, worker: int, count: int) -> None:
        """Discard the next `count` items of `worker`, without waiting for them.

        Errors and the end are not thrown away. For workers that go on when the consumer leaves an epoch early.
        """
        with self._receiving:
            mine = self._workers[worker]
            while count and mine.arrived and mine.arrived[0][0] == BATCH:
                mine.arrived.popleft()
                count -= 1
            mine.skip += count

    def close(self) -> None:
        """End the processes, at any time, from any thread; does nothing the second time.

        Workers that wait for requests end by themselves at once, and generators are closed; those that do not within
        half a second are terminated. Also called when the pool is garbage collected, and when the interpreter ends.
        """
        if self.forked:
            return
        with self._closing:
            if self.closed:
                return
            self.closed = True
            # The descriptors stay open for now: another thread may be polling them, and wakes up.
            for worker in self._workers:
                if worker.channel is not None:
                    worker.channel.hang_up()
            try:
                self._end_processes(time.monotonic() + PATIENCE)
            except BaseException:  # Ctrl-C
                for process in self.processes():
                    process.kill()
                raise
            finally:
                with self._receiving:
                    for worker in self._workers:
                        worker.release()
                _pools.discard(self)

    def _end_processes(self, deadline: float) -> None:
        left = self._running_after(deadline)
        for process in left:
            process.terminate()
        for process in self._running_after(deadline + PATIENCE / 5) if left else ():
            process.kill()

    def _running_after(self, deadline: float) -> list[BaseProcess]:
        """The processes that have not ended by the deadline."""
        slow = [worker for worker in self._workers if not worker.gone(deadline - time.monotonic())]
        return [worker.process for worker in slow if worker.process is not None]

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_workers"):
            finalize(self.close)

    def stats(self) -> dict[str, float]:
        """`batches` received; `bytes` of them in shared memory and `piped_bytes`; seconds: `waited` by the consumer for
        batches, `working`, `sending` and `idle` (without a request) by the workers, all of them together.
        """
        clocks = [worker.clock for worker in self._workers]
        return {
            "batches": sum(worker.batches for worker in self._workers),
            "bytes": sum(worker.bytes for worker in self._workers),
            "piped_bytes": sum(worker.piped for worker in self._workers),
            "waited": self._waited,
            "working": sum(clock[0] for clock in clocks),
            "sending": sum(clock[1] for clock in clocks),
            "idle": sum(clock[2] for clock in clocks),
        }

    def processes(self) -> list[BaseProcess]:
        """The processes that run."""
        found = [worker.process for worker in self._workers]
        return [process for process in found if process is not None and process.is_alive()]


def live_processes() -> int:
    """How many worker processes of this process are running."""
    return sum(len(pool.processes()) for pool in list(_pools))


def _forget_parents_workers() -> None:
    """In the child of a fork: the pools are its parent's. With the descriptors closed, the workers notice when the
    parent is gone, whatever becomes of this child.
    """
    global _starting
    _starting = threading.Lock()  # held by the thread that forked
    children: set[Any] = getattr(multiprocessing.process, "_children", set())
    for pool in list(_pools):
        pool.forked = True
        pool._receiving = threading.RLock()  # may be held by a thread that the child lacks
        for worker in pool._workers:
            worker.abandon()
            children.discard(worker.process)  # the end of this process would terminate them
    _pools.clear()


os.register_at_fork(after_in_child=_forget_parents_workers)


@functools.cache
def _close_at_exit() -> None:
    """Have the pools closed when the interpreter ends, before multiprocessing waits for the processes.

    Its handler, which is registered when a process is started first, asks daemons to end and waits for them: for ever
    if one is stopped, or ignores that. Handlers run in the reverse order in which they were registered.
    """
    import multiprocessing.util  # noqa: F401 - registers its handler; slow to import

    atexit.register(_close_all)


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


class BatchRequests:
    """The batches of an epoch, requested from the processes of `pool`."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool

    def get(self) -> FetchedBatch:
        """The next batch. Raises QueueClosed at the end of the epoch, and the errors of `WorkerPool.receive`."""
        raise NotImplementedError

    def waiting(self) -> int:
        """The number of requested batches that have not been taken."""
        raise NotImplementedError

    def leave(self) -> None:
        """Abandon the epoch: outstanding batches are discarded, and the workers go on."""
        raise NotImplementedError

    def close(self) -> None:
        """End the processes. May be called at any time, from any thread, any number of times."""
        self.pool.close()
