"""`cupy.cuda.nccl`: collective operations of simulated devices.

An operation of one rank happens when its stream gets there and the streams of all other ranks get to theirs; ranks that
never do, and calls that would wait for each other in one thread, are errors here.
"""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import devices, errors, streams
from .errors import CUDARuntimeError
from .machine import machine
from .memory import device_view
from .queues import NotYet

TYPES = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64]
CONSTANTS = {
    "NCCL_SUM": 0, "NCCL_PROD": 1, "NCCL_MAX": 2, "NCCL_MIN": 3,
    "NCCL_INT8": 0, "NCCL_CHAR": 0, "NCCL_UINT8": 1, "NCCL_INT32": 2, "NCCL_INT": 2, "NCCL_UINT32": 3, "NCCL_INT64": 4,
    "NCCL_UINT64": 5, "NCCL_FLOAT16": 6, "NCCL_HALF": 6, "NCCL_FLOAT32": 7, "NCCL_FLOAT": 7, "NCCL_FLOAT64": 8,
    "NCCL_DOUBLE": 8, "NCCL_BFLOAT16": 9,
}  # fmt: skip
REDUCE = (np.add, np.multiply, np.maximum, np.minimum)
INVALID_ARGUMENT, INVALID_USAGE = 4, 5
NAMES_OF_ERRORS = {4: "NCCL_ERROR_INVALID_ARGUMENT", 5: "NCCL_ERROR_INVALID_USAGE"}

_ids = itertools.count(1)
_cliques: dict[Any, "Clique"] = {}
_local = threading.local()


class NcclError(RuntimeError):
    """What NCCL answers; `status` is its number."""

    def __init__(self, status: int, detail: str = "") -> None:
        self.status = status
        super().__init__(f"{NAMES_OF_ERRORS[status]}: [simulated: {detail}]")


class Operation:
    """One rank's part of a collective operation: what must be the same on all ranks, and its own memory."""

    def __init__(self, same: tuple[Any, ...], send: np.ndarray | None, receive: np.ndarray | None) -> None:
        self.same, self.send, self.receive = same, send, receive
        self.done = False


class Clique:
    """The ranks that work together."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.devices: list[int | None] = [None] * size
        self.arrived: list[deque[Operation]] = [deque() for _ in range(size)]
        self.queues: list[Any] = [None] * size
        self.threads: dict[int, int] = {}
        self.joined = threading.Barrier(size)

    def arrive(self, rank: int, operation: Operation) -> None:
        """The stream of a rank has got to its operation: do it, once all others have got there."""
        self.arrived[rank].append(operation)
        try:
            self._meet(operation)
        except NotYet:
            if not operation.done:
                self.arrived[rank].remove(operation)
                raise

    def _meet(self, operation: Operation) -> None:
        while not operation.done:
            for other, waiting in enumerate(self.arrived):
                if not waiting and not operation.done:
                    self._bring(other, operation)
            if not operation.done:
                perform([waiting.popleft() for waiting in self.arrived])

    def _bring(self, rank: int, operation: Operation) -> None:
        """Have another rank's streams work until it arrives, which may do the operation of all."""
        m = machine()
        first = self.queues[rank]
        rest = [q for q in m.queues.values() if q.device == self.devices[rank] and q is not first]
        for queue in ([first] if first is not None else []) + rest:
            while not (self.arrived[rank] or operation.done or queue.busy) and queue.step():
                pass
            if self.arrived[rank] or operation.done:
                return
        if m.advancing:
            raise NotYet
        raise CUDARuntimeError(
            errors.LAUNCH_FAILURE, f"NCCL: rank {rank} never joins an operation of the others"
        )


def perform(operations: list[Operation]) -> None:
    """Do an operation that all ranks have arrived at."""
    if any(each.same != operations[0].same for each in operations):
        shown = "; ".join(str(each.same) for each in operations)
        raise CUDARuntimeError(errors.LAUNCH_FAILURE, f"NCCL: the ranks do different things: {shown}")
    kind, _, _, op, root = operations[0].same
    sent = [np.array(each.send) for each in operations if each.send is not None]
    for rank, each in enumerate(operations):
        each.done = True
        if each.receive is None:
            continue
        if kind == "broadcast":
            each.receive[...] = sent[root]
        elif kind == "allGather":
            each.receive[...] = np.concatenate(sent)
        elif kind != "reduce" or rank == root:
            total = sent[0]
            for part in sent[1:]:
                total = REDUCE[op](total, part)
            count = each.receive.size
            each.receive[...] = total[rank * count : (rank + 1) * count] if kind == "reduceScatter" else total


class NcclCommunicator:
    """One rank, on the device that was current when it was made."""

    def __init__(self, ndev: int, commId: Any, rank: int) -> None:  # noqa: N803
        if not 0 <= rank < ndev:
            raise NcclError(INVALID_ARGUMENT, f"rank {rank} of {ndev}")
        self._set(_cliques.setdefault(commId, Clique(ndev)), rank, machine().device)
        if not getattr(_local, "depth", 0):
            self._clique.joined.wait(timeout=30)

    def _set(self, clique: Clique, rank: int, device: int) -> None:
        self._clique, self._rank, self._device = clique, rank, device
        clique.devices[rank] = device

    @staticmethod
    def initAll(devices_: int | Sequence[int]) -> list["NcclCommunicator"]:  # noqa: N802
        """A communicator for each of some devices, by number, or for the first ones."""
        numbers = list(range(devices_)) if isinstance(devices_, int) else [int(n) for n in devices_]
        if len(set(numbers)) < len(numbers):
            raise NcclError(INVALID_USAGE, f"devices {numbers}")
        clique, made = Clique(len(numbers)), []
        for rank, number in enumerate(numbers):
            devices.check(number)
            one = object.__new__(NcclCommunicator)
            one._set(clique, rank, number)
            made.append(one)
        return made

    def destroy(self) -> None:
        self._clique = Clique(1)
        self._device = -1

    abort = destroy

    def device_id(self) -> int:
        return self._device

    def rank_id(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._clique.size

    def check_async_error(self) -> None:
        """Nothing fails here in the background."""

    def allReduce(  # noqa: N802
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int
    ) -> None:  # fmt: skip
        self._issue(("allReduce", count, datatype, op, 0), (sendbuf, count), (recvbuf, count), stream)

    def reduce(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int
    ) -> None:  # fmt: skip
        receive = (recvbuf, count) if self._rank == root else None
        self._issue(("reduce", count, datatype, op, root), (sendbuf, count), receive, stream)

    def broadcast(
        self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int
    ) -> None:  # fmt: skip
        # Only the root's values are sent; the others' memory may be null.
        send = (sendbuff if self._rank == root else recvbuff, count)
        self._issue(("broadcast", count, datatype, 0, root), send, (recvbuff, count), stream)

    def bcast(self, buff: int, count: int, datatype: int, root: int, stream: int) -> None:
        self.broadcast(buff, buff, count, datatype, root, stream)

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:  # noqa: N802
        receive = (recvbuf, count * self._clique.size)
        self._issue(("allGather", count, datatype, 0, 0), (sendbuf, count), receive, stream)

    def reduceScatter(  # noqa: N802
        self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int
    ) -> None:  # fmt: skip
        send = (sendbuf, recvcount * self._clique.size)
        self._issue(("reduceScatter", recvcount, datatype, op, 0), send, (recvbuf, recvcount), stream)

    def _issue(
        self, same: tuple[Any, ...], send: tuple[int, int], receive: tuple[int, int] | None, stream: int
    ) -> None:  # fmt: skip
        if self._device < 0:
            raise NcclError(INVALID_ARGUMENT, "the communicator was destroyed")
        m = machine()
        here = m.device
        m.device = self._device  # a stream of 0 is the default stream of the rank's device
        try:
            queue = streams.queue_of(stream)
        finally:
            m.device = here
        if queue.device != self._device:
            raise NcclError(INVALID_ARGUMENT, f"a stream of device {queue.device} for rank {self._rank}")
        kind, count, datatype, _, _ = same
        if not 0 <= datatype < len(TYPES):
            raise NcclError(INVALID_ARGUMENT, f"data type {datatype}")
        operation = (self._view(send, datatype), None if receive is None else self._view(receive, datatype))
        rank, clique = self._rank, self._clique

        def issue() -> None:
            clique.queues[rank] = queue
            streams.push(queue, lambda: clique.arrive(rank, Operation(same, *operation)))

        if getattr(_local, "depth", 0):
            _local.issues.append(issue)
            return
        other = clique.threads.setdefault(threading.get_ident(), rank)
        if other != rank:
            raise NcclError(
                INVALID_USAGE, f"ranks {other} and {rank} are called by one thread without a group"
            )
        issue()

    def _view(self, where: tuple[int, int], datatype: int) -> np.ndarray:
        if machine().device_of(where[0]) != self._device:
            raise NcclError(INVALID_ARGUMENT, f"{where[0]:#x} is not memory of device {self._device}")
        return device_view(where[0], (where[1],), TYPES[datatype])


def groupStart() -> None:  # noqa: N802
    """Collect the calls of this thread."""
    _local.depth = getattr(_local, "depth", 0) + 1
    if _local.depth == 1:
        _local.issues = []


def groupEnd() -> None:  # noqa: N802
    """Issue the calls that were collected."""
    if not getattr(_local, "depth", 0):
        raise NcclError(INVALID_USAGE, "groupEnd without groupStart")
    _local.depth -= 1
    if not _local.depth:
        issues: list[Callable[[], None]] = _local.issues
        for issue in issues:
            issue()


def get_unique_id() -> Any:
    """An identifier for communicators that are to work together."""
    found = next(_ids).to_bytes(128, "little")
    return found if machine().options.cupy_version >= "14" else tuple(found)


NAMES: dict[str, Any] = {
    **CONSTANTS,
    "NcclError": NcclError,
    "NcclCommunicator": NcclCommunicator,
    "groupStart": groupStart,
    "groupEnd": groupEnd,
    "get_unique_id": get_unique_id,
    "get_version": lambda: 22703,
    "get_build_version": lambda: 22703,
}
