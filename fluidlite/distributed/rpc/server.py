"""`ParameterServer`: the protocol on the server's side. A `Store` keeps and updates the parameters.

With barriers (`sync`) a round is: every trainer sends its gradients and then `send_barrier`; when the last one has, the
store updates; what a trainer gets after its barrier waits for that. Without, each gradient updates when it arrives.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ...base import flags
from .transport import Listener, Message, RpcError, Stream, TrainerLost

TRAINERS_RETURN = "FLUIDLITE_TRAINERS_RETURN"
"""The variable by which a launcher announces that it restarts trainers and servers that have ended."""

WITH_BARRIERS = "fluidlite: trainers of this server wait for each other"
"""Printed by a server with barriers for such a launcher: a single one of its trainers cannot be restarted."""

_STREAMS = 2
"""At most this many connections of a trainer: it may be restarted before the end of its old one is noticed."""

_TELLS_FOR = 3.0
"""Seconds that a server that has failed waits for trainers' requests, to answer them with the error."""


class Store(Protocol):
    """The parameters and their updates; calls are serialised."""

    def take(self, name: str, value: Any, trainer: int) -> None:
        """Keep a gradient for the next update, or apply it at once."""

    def update(self) -> None:
        """Update all parameters with the gradients taken."""

    def get(self, name: str, trainer: int) -> Any:
        """A copy of a variable. Raises KeyError if it does not exist."""

    def rows(self, table: str, ids: Any) -> Any:
        """Rows of a table."""

    def changes(self, table: str, trainer: int) -> Any:
        """The rows of a table that have changed since a trainer's last request, as SelectedRows."""

    def save(self, folder: str, table: str) -> None:
        """Save parameters to files in `folder`."""


class ParameterServer:
    """Serves `store` to `trainers` trainers at `endpoint` until all of them are done.

    With barriers, `run` raises TrainerLost if a trainer has ended unexpectedly, or has left while another waits for it.
    Without barriers the others go on, and it may be restarted until they are done or, with FLUIDLITE_TRAINERS_RETURN=1
    in the environment, at any time; then trainers wait for another server if this one dies.

    A connection identifies its trainer before its first call; only after that call is the trainer's end an error.
    """

    def __init__(self, endpoint: str, trainers: int, store: Store, sync: bool) -> None:
        self.endpoint, self.trainers, self.store, self.sync = endpoint, trainers, store, sync
        self._state = threading.Condition()
        self._rounds = 0
        self._barriers = dict.fromkeys(range(trainers), 0)
        self._steps = dict.fromkeys(range(trainers), 0)
        self._streams: list[Stream] = []
        self._done: set[int] = set()
        self._ended: set[int] = set()
        self._gone: set[int] = set()
        self._failure: Exception | None = None
        self._informed: set[int] = set()
        self._return = flags.switch(TRAINERS_RETURN)
        self._commands: Mapping[str, Callable[[Message], Message]] = {
            "send": self._send,
            "send_barrier": self._send_barrier,
            "get": self._get,
            "rows": self._rows,
            "changes": self._changes,
            "save": self._save,
            "complete": self._complete,
            "leave": self._leave,
        }

    def run(self) -> None:
        """Serve until all trainers are done."""
        if self._return and self.sync:
            print(WITH_BARRIERS, file=sys.stderr, flush=True)
        threads = 4 * self.trainers + 8
        returns = self._return and not self.sync
        listener = Listener(self.endpoint, threads, self._answer, self._joined, self._left, returns)
        try:
            with self._state:
                while self._failure is None and not self._over():
                    self._state.wait(1.0)
                if self._failure is not None:
                    self._state.wait_for(self._all_know, _TELLS_FOR)
        finally:
            listener.close()
        if self._failure is not None:
            raise self._failure

    def _all_know(self) -> bool:
        """True if all connected trainers have received the error."""
        there = {stream.trainer for stream in self._streams if stream.called}
        return there <= self._informed | self._done

    def _over(self) -> bool:
        over = self._done | self._ended
        return len(over if self._return else over | self._gone) == self.trainers

    def _answer(self, data: bytes, peer: str) -> bytes:
        try:
            message = Message.decode(data)
            if not 0 <= message.trainer < self.trainers:
                raise self._unknown(message.trainer)
            self._identify(message.trainer, peer)
            command = self._commands.get(message.command)
            if command is None:
                raise RpcError(f"there is no command {message.command!r}")
            self._steps[message.trainer] = int(message.info.get("step", 0))
            return command(message).encode()
        except Exception as error:  # any error is sent to the trainer
            with self._state:
                if error is self._failure:
                    self._informed.add(message.trainer)
                    self._state.notify_all()
            return Message("error", info={"text": f"{type(error).__name__}: {error}"}).encode()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _send(self, message: Message) -> Message:
        with self._state:
            self._check()
            for name, value in message.arrays.items():
                self.store.take(name, value, message.trainer)
        return Message("ok")

    def _send_barrier(self, message: Message) -> Message:
        with self._state:
            self._check()
            self._barriers[message.trainer] += 1
            self._update_if_due()
            self._check_absent()
        return Message("ok")

    def _update_if_due(self) -> None:
        """Update if every trainer that still trains has completed the round."""
        waiting = [t for t in range(self.trainers) if t not in self._done]
        if not self.sync or not waiting or min(self._barriers[t] for t in waiting) <= self._rounds:
            return
        try:
            self.store.update()
        except Exception as error:
            self._failure = RpcError(f"parameter server {self.endpoint}: {error}")
            self._state.notify_all()
            raise
        self._rounds += 1
        self._state.notify_all()

    def _get(self, message: Message) -> Message:
        with self._state:
            self._wait_for_round(message.trainer)
            values = {name: self._found(name, message.trainer) for name in message.info["names"]}
        return Message("values", arrays=values)

    def _found(self, name: str, trainer: int) -> Any:
        try:
            return self.store.get(name, trainer)
        except KeyError:
            raise RpcError(f"the server {self.endpoint} has no variable {name!r} with a value") from None

    def _wait_for_round(self, trainer: int) -> None:
        while self.sync and self._rounds < self._barriers[trainer]:
            self._check()
            self._state.wait()
        self._check()

    def _rows(self, message: Message) -> Message:
        with self._state:
            self._wait_for_round(message.trainer)
            return Message(
                "rows", arrays={"rows": self.store.rows(message.info["table"], message.arrays["ids"])}
            )

    def _changes(self, message: Message) -> Message:
        with self._state:
            self._check()
            rows = self.store.changes(message.info["table"], message.trainer)
        return Message("rows", arrays={"rows": rows})

    def _save(self, message: Message) -> Message:
        with self._state:
            self._check()
            self.store.save(message.info["dir"], message.info["table"])
        return Message("ok")

    def _complete(self, message: Message) -> Message:
        with self._state:
            self._done.add(message.trainer)
            self._gone.discard(message.trainer)
            if self._failure is None:
                self._update_if_due()
            self._state.notify_all()
        return Message("ok")

    def _leave(self, message: Message) -> Message:
        """A trainer's process has ended without `complete`: an error only if another trainer waits for it."""
        with self._state:
            self._ended.add(message.trainer)
            self._check_absent()
            self._state.notify_all()
        return Message("ok")

    def _check_absent(self) -> None:
        """Fail if trainers wait at a barrier for one that has ended."""
        if not self.sync or max(self._barriers.values()) <= self._rounds:
            return
        for trainer in self._ended - self._done:
            if self._barriers[trainer] <= self._rounds:
                self._failure = self._failure or self._loss(trainer)
                self._state.notify_all()

    def _unknown(self, trainer: int) -> RpcError:
        return RpcError(f"there are {self.trainers} trainers, none with number {trainer}")

    def _joined(self, stream: Stream) -> None:
        """Add the connection of a trainer. Raises RpcError for an unknown trainer, or too many connections."""
        if stream.trainer >= self.trainers:
            raise self._unknown(stream.trainer)
        with self._state:
            others = [other for other in self._streams if other.trainer == stream.trainer]
            if len(others) >= _STREAMS:
                idle = next((other for other in others if not other.called), None)
                if idle is None:
                    raise RpcError(f"trainer {stream.trainer} has {len(others)} connections already")
                self._streams.remove(idle)
                idle.over.set()
            self._streams.append(stream)

    def _identify(self, trainer: int, peer: str) -> None:
        """Find the stream of a trainer that calls; the first call marks the trainer as present."""
        with self._state:
            streams = [one for one in self._streams if (one.trainer, one.peer) == (trainer, peer)]
            if not streams:
                raise RpcError(f"this connection has not identified itself as trainer {trainer}'s")
            if any(stream.called for stream in streams):
                return
            streams[-1].called = True
            if trainer in self._gone | self._ended:
                for noted in (self._gone, self._ended, self._done):
                    noted.discard(trainer)

    def _left(self, stream: Stream) -> None:
        """The stream of a trainer has ended."""
        trainer = stream.trainer
        with self._state:
            if stream in self._streams:
                self._streams.remove(stream)
            there = any(other.called for other in self._streams if other.trainer == trainer)
            if not stream.called or there or trainer in self._done | self._ended:
                return
            self._gone.add(trainer)
            if self.sync:
                self._failure = self._failure or self._loss(trainer)
            else:
                print(self._loss(trainer), file=sys.stderr, flush=True)
            self._state.notify_all()

    def _loss(self, trainer: int) -> TrainerLost:
        return TrainerLost(
            f"parameter server {self.endpoint} has lost trainer {trainer} of {self.trainers}; the last step "
            f"that it reported is {self._steps.get(trainer, 0)}"
        )
