"""Stream capture and the graphs it makes.

A capture records every piece of work with what it depends on. A graph does them in some order that respects these
dependencies, chosen anew at every launch.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import errors
from .errors import CUDARuntimeError
from .machine import machine

if TYPE_CHECKING:
    from .streams import Queue

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2


class Capture:
    """A recording that goes on: its nodes, and of every stream in it the nodes that what follows depends on."""

    def __init__(self, origin: "Queue", mode: int) -> None:
        self.origin, self.mode, self.device = origin, mode, origin.device
        self.thread = threading.get_ident()
        self.nodes: list[tuple[Callable[[], None], frozenset[int]]] = []
        self.heads: dict[Queue, frozenset[int]] = {origin: frozenset()}
        self.invalid = False
        self.active = True
        origin.capture = self
        origin.machine.captures.append(self)
        origin.machine.counters.captures += 1

    def record(self, queue: "Queue", work: Callable[[], None]) -> None:
        """Add work of one of the streams."""
        if self.invalid:
            raise CUDARuntimeError(errors.CAPTURE_INVALIDATED)
        self.nodes.append((work, self.heads[queue]))
        self.heads[queue] = frozenset({len(self.nodes) - 1})

    def heads_of(self, queue: "Queue") -> frozenset[int]:
        return self.heads[queue]

    def join(self, queue: "Queue", heads: frozenset[int]) -> None:
        """Have a stream wait for nodes, which brings it into the recording."""
        if queue.capture not in (None, self):
            raise CUDARuntimeError(errors.CAPTURE_ISOLATION, "two captures cannot wait for each other")
        if queue.legacy:
            self.invalid = True
            raise CUDARuntimeError(errors.CAPTURE_IMPLICIT)
        queue.capture = self
        self.heads[queue] = self.heads.get(queue, frozenset()) | heads

    def end(self, queue: "Queue") -> "Graph":
        """The graph of what was recorded.

        Raises:
            CUDARuntimeError: something happened that cannot be recorded, or a stream was not joined again.
        """
        if queue is not self.origin:
            raise CUDARuntimeError(errors.CAPTURE_UNMATCHED)
        if self.mode != RELAXED and threading.get_ident() != self.thread:
            raise CUDARuntimeError(errors.CAPTURE_WRONG_THREAD)
        self.active = False
        queue.machine.captures.remove(self)
        for each in self.heads:
            each.capture = None
        if self.invalid:
            raise CUDARuntimeError(errors.CAPTURE_INVALIDATED)
        before = self.ancestors(self.heads[queue])
        if any(not heads <= before for heads in self.heads.values()):
            raise CUDARuntimeError(errors.CAPTURE_UNJOINED)
        return Graph._of(queue.machine, queue.device, self.nodes)

    def ancestors(self, heads: frozenset[int]) -> set[int]:
        found: set[int] = set()
        rest = list(heads)
        while rest:
            node = rest.pop()
            if node not in found:
                found.add(node)
                rest.extend(self.nodes[node][1])
        return found


class Graph:
    """Recorded work that can be done again and again."""

    graph: int
    graphExec: int
    _machine: Any
    _device: int
    _nodes: list[tuple[Callable[[], None], frozenset[int]]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "currently this class cannot be initiated by the user and must be created via stream capture"
        )

    @classmethod
    def _of(cls, owner: Any, device: int, nodes: list[tuple[Callable[[], None], frozenset[int]]]) -> "Graph":
        self = object.__new__(cls)
        self._machine, self._device, self._nodes = owner, device, nodes
        self.graph = self.graphExec = id(self)
        return self

    def launch(self, stream: Any = None) -> None:
        """Do the work, in a stream, in the current one by default."""
        from . import streams

        queue = (stream or streams.get_current_stream())._queue
        if queue.capture is not None:
            queue.capture.invalid = True
            raise CUDARuntimeError(
                errors.CAPTURE_UNSUPPORTED, "a graph is launched while another is captured"
            )
        if queue.device != self._device:
            raise CUDARuntimeError(errors.INVALID_VALUE, "the graph was captured on another device")
        self._machine.counters.graph_launches += 1
        streams.push(queue, self._run)

    def upload(self, stream: Any = None) -> None:
        """Prepare the next launch."""
        from . import streams

        streams.push((stream or streams.get_current_stream())._queue, lambda: None)

    def _run(self) -> list[Callable[[], Any]]:
        """The nodes, in an order that respects what they depend on."""
        waiting = [set(needs) for _, needs in self._nodes]
        ready = [i for i, needs in enumerate(waiting) if not needs]
        users: dict[int, list[int]] = {}
        for i, needs in enumerate(waiting):
            for need in needs:
                users.setdefault(need, []).append(i)
        order = []
        while ready:
            i = ready.pop(self._machine.random.randrange(len(ready)))
            order.append(self._nodes[i][0])
            for user in users.get(i, ()):
                waiting[user].discard(i)
                if not waiting[user]:
                    ready.append(user)
        return order


def forbid_in_capture(what: str) -> None:
    """Refuse what may make captures of this mode and thread fail (waiting, allocating), and spoil them."""
    m = machine()
    for capture in m.captures:
        if capture.mode == GLOBAL or (
            capture.mode == THREAD_LOCAL and capture.thread == threading.get_ident()
        ):
            capture.invalid = True
            raise CUDARuntimeError(errors.CAPTURE_UNSUPPORTED, f"{what} while a stream captures")
