"""The trainer's side of the line: what a process says to the parameter servers that its programs name."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from .messages import Message, RpcError, ServerLost
from .transport import Line

PATIENCE = 180.0
"""Seconds that a trainer waits for a server to come."""

_NOTICED = 5.0
"""Within so many seconds a connection is known to have ended, if that is why a call has failed."""


@dataclass
class _Asked:
    """What a server was asked, over which line, and the call that gives its reply."""

    line: Line
    data: bytes
    call: Any


class Client:
    """One trainer's connections, made when they are needed.

    All methods raise ServerLost when a server has ended, and RpcError with what a server has to say, or if it refuses
    this trainer. A server that has said that it returns is waited for, and asked again. What has been sent is known to
    have arrived after `flush`.
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
                        f"{self._loss(endpoint)}, when it wanted it to {what}: {error.details() or error.code().name}"
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
        """Drop the line to a server that has died; the next call waits for another in its place."""
        del self._lines[endpoint]
        print(
            f"fluidlite: {self._loss(endpoint)}, and waits for it to come back", file=sys.stderr, flush=True
        )

    def send(self, endpoint: str, arrays: dict[str, Any], **info: Any) -> None:
        """Send arrays or SelectedRows; returns before they have arrived."""
        asked = self._begin(endpoint, Message("send", info=info, arrays=arrays))
        with self._lock:
            self._sent.append((endpoint, f"take {', '.join(arrays)}", asked))

    def flush(self) -> None:
        """Wait until all that was sent has arrived."""
        with self._lock:
            waiting, self._sent = self._sent, []
        for endpoint, what, asked in waiting:
            self._result(endpoint, what, asked)

    def _all(self, endpoints: Sequence[str], what: str, messages: Sequence[Message]) -> list[Message]:
        asked = [(e, self._begin(e, message)) for e, message in zip(endpoints, messages, strict=True)]
        return [self._result(endpoint, what, one) for endpoint, one in asked]

    def barrier(self, endpoints: Sequence[str]) -> None:
        """Tell servers that this trainer has sent all of this step's gradients."""
        self.flush()
        self._all(endpoints, "take the end of a step", [Message("send_barrier") for _ in endpoints])
        self.step += 1

    def get(self, endpoints: Sequence[str], names: Sequence[str]) -> list[Any]:
        """The value of each of `names` at the server beside it."""
        self.flush()
        by_server: dict[str, list[str]] = {}
        for endpoint, name in zip(endpoints, names, strict=True):
            by_server.setdefault(endpoint, []).append(name)
        asked = [Message("get", info={"names": wanted}) for wanted in by_server.values()]
        replies = self._all(list(by_server), f"give {', '.join(names)}", asked)
        found = dict(zip(by_server, replies, strict=True))
        return [found[endpoint].arrays[name] for endpoint, name in zip(endpoints, names, strict=True)]

    def rows(self, endpoints: Sequence[str], tables: Sequence[str], ids: Sequence[np.ndarray]) -> list[Any]:
        """Of each table at its server the rows that its `ids` name."""
        wanted = [(e, t, i) for e, t, i in zip(endpoints, tables, ids, strict=True)]
        asked = [Message("rows", info={"table": t}, arrays={"ids": i}) for _, t, i in wanted]
        replies = self._all(endpoints, f"look rows of {', '.join(tables)} up", asked)
        return [reply.arrays["rows"] for reply in replies]

    def changes(self, endpoints: Sequence[str], tables: Sequence[str]) -> list[Any]:
        """Of each table at its server the rows that have changed since this trainer last asked, as SelectedRows."""
        self.flush()
        asked = [Message("changes", info={"table": table}) for table in tables]
        replies = self._all(endpoints, f"give what has changed of {', '.join(tables)}", asked)
        return [reply.arrays["rows"] for reply in replies]

    def save(self, endpoints: Sequence[str], folder: str, table: str) -> None:
        """Have servers save their parts of `table` (all parameters if empty) in `folder`."""
        asked = [Message("save", info={"dir": folder, "table": table}) for _ in endpoints]
        self._all(endpoints, f"save to {folder}", asked)

    def complete(self, command: str = "complete") -> None:
        """Tell the servers that this trainer is done, and hang up."""
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
    """This process' client as trainer `trainer`."""
    with _guard:
        found = _clients.get(trainer)
        if found is None:
            found = _clients[trainer] = Client(trainer)
        return found


def complete_all() -> None:
    """Tell all servers that the trainers in this process are done."""
    with _guard:
        found = list(_clients.values())
        _clients.clear()
    for one in found:
        one.complete()


@atexit.register
def _leave() -> None:
    """Tell servers that nobody has told so that this process ends, and not of an error.

    Many scripts end without `Executor.close()`; what others still want of the servers, as to save a model, goes on.
    """
    if getattr(sys, "last_value", None) is None:
        for one in list(_clients.values()):
            with suppress(RpcError):
                one.complete("leave")
