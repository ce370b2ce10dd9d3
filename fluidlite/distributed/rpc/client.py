"""The trainer's side: a client of the parameter servers that programs name."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from .transport import Line, Message, RpcError, ServerLost

PATIENCE = 180.0
"""Seconds that a trainer waits for a server to start."""

_NOTICED = 5.0
"""Seconds to wait, after a failed call, for the end of the connection to be noticed."""


@dataclass
class _Asked:
    """A request: its connection, its data, and the call whose result is the reply."""

    line: Line
    data: bytes
    call: Any


class Client:
    """The connections of a trainer, made when needed.

    All methods raise ServerLost when a server has ended, and RpcError with a server's error, or if it refuses this
    trainer. If a server is going to be restarted, requests wait for it and are repeated. After `flush` everything sent
    has arrived.
    """

    def __init__(self, trainer: int) -> None:
        self.trainer = trainer
        self.step = 0
        self._lines: dict[str, Line] = {}
        self._sent: list[tuple[str, str, _Asked]] = []
        self._lock = threading.RLock()

    def _line(self, endpoint: str) -> Line:
        with self._lock:
            line = self._lines.get(endpoint)
            if line is not None and line.returns and line.lost.is_set():
                self._forget(endpoint)
                line = None
            if line is None:
                try:
                    line = Line(endpoint, self.trainer, PATIENCE)
                except TimeoutError as error:
                    raise ServerLost(f"trainer {self.trainer}: {error}") from None
                self._lines[endpoint] = line
            return line

    def _begin(self, endpoint: str, message: Message) -> _Asked:
        message.trainer = self.trainer
        message.info.setdefault("step", self.step)
        return self._ask(endpoint, message.encode())

    def _ask(self, endpoint: str, data: bytes) -> _Asked:
        line = self._line(endpoint)
        return _Asked(line, data, line.begin(data))

    def _result(self, endpoint: str, what: str, asked: _Asked) -> Message:
        while True:
            try:
                reply = Message.decode(asked.call.result())
                break
            except asked.line.grpc.RpcError as error:
                if not (asked.line.returns and asked.line.lost.wait(_NOTICED)):
                    raise ServerLost(
                        f"{self._loss(endpoint)}, in a request to {what}: {error.details() or error.code().name}"
                    ) from None
            with self._lock:
                if self._lines.get(endpoint) is asked.line:
                    self._forget(endpoint)
            asked = self._ask(endpoint, asked.data)
        if reply.command == "error":
            raise RpcError(
                f"parameter server {endpoint}, asked by trainer {self.trainer} to {what}: {reply.info['text']}"
            )
        return reply

    def _loss(self, endpoint: str) -> str:
        return f"trainer {self.trainer} has lost parameter server {endpoint} at step {self.step}"

    def _forget(self, endpoint: str) -> None:
        """Drop the connection to a server that has died; the next call waits for its replacement."""
        del self._lines[endpoint]
        print(
            f"fluidlite: {self._loss(endpoint)}, and waits for it to come back", file=sys.stderr, flush=True
        )

    def send(self, endpoint: str, arrays: dict[str, Any], **info: Any) -> None:
        """Send arrays or SelectedRows, asynchronously."""
        asked = self._begin(endpoint, Message("send", info=info, arrays=arrays))
        with self._lock:
            self._sent.append((endpoint, f"take {', '.join(arrays)}", asked))

    def flush(self) -> None:
        """Wait until everything sent has arrived."""
        with self._lock:
            waiting, self._sent = self._sent, []
        for endpoint, what, asked in waiting:
            self._result(endpoint, what, asked)

    def _all(self, endpoints: Sequence[str], what: str, messages: Sequence[Message]) -> list[Message]:
        asked = [(e, self._begin(e, message)) for e, message in zip(endpoints, messages, strict=True)]
        return [self._result(endpoint, what, one) for endpoint, one in asked]

    def barrier(self, endpoints: Sequence[str]) -> None:
        """Send the end of this trainer's gradients of a step to servers."""
        self.flush()
        self._all(endpoints, "take the end of a step", [Message("send_barrier") for _ in endpoints])
        self.step += 1

    def get(self, endpoints: Sequence[str], names: Sequence[str]) -> list[Any]:
        """The values of `names`, each from the server of the same index."""
        self.flush()
        by_server: dict[str, list[str]] = {}
        for endpoint, name in zip(endpoints, names, strict=True):
            by_server.setdefault(endpoint, []).append(name)
        asked = [Message("get", info={"names": wanted}) for wanted in by_server.values()]
        replies = self._all(list(by_server), f"give {', '.join(names)}", asked)
        values = dict(zip(by_server, replies, strict=True))
        return [values[endpoint].arrays[name] for endpoint, name in zip(endpoints, names, strict=True)]

    def rows(self, endpoints: Sequence[str], tables: Sequence[str], ids: Sequence[np.ndarray]) -> list[Any]:
        """The rows `ids` of each table, from its server."""
        wanted = [(e, t, i) for e, t, i in zip(endpoints, tables, ids, strict=True)]
        asked = [Message("rows", info={"table": t}, arrays={"ids": i}) for _, t, i in wanted]
        replies = self._all(endpoints, f"look rows of {', '.join(tables)} up", asked)
        return [reply.arrays["rows"] for reply in replies]

    def changes(self, endpoints: Sequence[str], tables: Sequence[str]) -> list[Any]:
        """The rows of each table that have changed since this trainer's last request, as SelectedRows."""
        self.flush()
        asked = [Message("changes", info={"table": table}) for table in tables]
        replies = self._all(endpoints, f"give what has changed of {', '.join(tables)}", asked)
        return [reply.arrays["rows"] for reply in replies]

    def save(self, endpoints: Sequence[str], folder: str, table: str) -> None:
        """Make servers save their parts of `table` (all parameters if empty) in `folder`."""
        asked = [Message("save", info={"dir": folder, "table": table}) for _ in endpoints]
        self._all(endpoints, f"save to {folder}", asked)

    def complete(self, command: str = "complete") -> None:
        """Send the end of this trainer to the servers, and close the connections."""
        try:
            self.flush()
            for endpoint in list(self._lines):
                self._result(endpoint, "let it go", self._begin(endpoint, Message(command)))
        finally:
            with self._lock:
                lines, self._lines = self._lines, {}
            for line in lines.values():
                line.close()


_clients: dict[int, Client] = {}
_guard = threading.Lock()


def client(trainer: int) -> Client:
    """The client of this process as trainer `trainer`."""
    with _guard:
        existing = _clients.get(trainer)
        if existing is None:
            existing = _clients[trainer] = Client(trainer)
        return existing


def complete_all() -> None:
    """Send the end of all trainers in this process to the servers."""
    with _guard:
        clients = list(_clients.values())
        _clients.clear()
    for one in clients:
        one.complete()


@atexit.register
def _leave() -> None:
    """At exit without an error, send "leave" for trainers that have not been completed.

    Many scripts end without `Executor.close()`; servers go on serving other trainers, for instance to save a model.
    """
    if getattr(sys, "last_value", None) is None:
        for one in list(_clients.values()):
            with suppress(RpcError):
                one.complete("leave")
