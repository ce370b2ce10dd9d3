"""Messages and errors between a process and its workers: a ring in shared memory, and tracebacks."""

from __future__ import annotations

import pickle
import socket
import struct
import traceback
from collections.abc import Callable
from typing import Any

from ..._ext.shm import Ring
from ...base.errors import public
from ...base.reports import tracebacks

_SIZE = struct.Struct("<Q")
_CHUNK = 1 << 16
_QUIETLY = socket.MSG_NOSIGNAL  # an error instead of SIGPIPE, for which the user's program may have a handler


class HungUp(Exception):
    """The peer has closed the connection or died."""


class Channel:
    """One end of a connection that carries whole messages (bytes) in both directions.

    The side that may wait uses `send` and `receive`; the one that must not uses `post`, `flush` and `take`, and polls
    `fileno()` if `doze` lets it. Both get HungUp when the other side is gone, after all that it sent.

    After `share`, what the first side sends goes through a ring where it fits, without system calls while the other is
    at work. Through the sockets go besides big messages, and empty ones as a sign for the one that polls. `ringed`:
    whether the other side has the ring, so that this one may.
    """

    def __init__(self, end: socket.socket, ringed: bool = True) -> None:
        self.ringed = ringed
        self._ring: Ring | None = None
        self._sent = self._taken = 0  # counts of messages, which number them in the ring
        self._early: bytes | None = (
            None  # taken from the socket, to be returned after the messages in the ring
        )
        self._socket = end
        self._chunk = memoryview(bytearray(_CHUNK))
        self._received = bytearray()
        self._start = 0  # offset in `_received` at which the next message begins
        self._outgoing = bytearray()

    @staticmethod
    def pair() -> tuple[Channel, Channel]:
        """Two connected ends."""
        one, other = socket.socketpair()
        return Channel(one), Channel(other)

    def __reduce__(self) -> tuple[type[Channel], tuple[socket.socket, bool]]:
        return Channel, (self._socket, self.ringed)  # while a process is spawned, sockets can be pickled

    def share(self, file: int) -> bool:
        """Use the ring in this file; False if there is no memory for it."""
        if self.ringed:
            try:
                self._ring = Ring(file)
            except (OSError, MemoryError):
                pass
        return self._ring is not None

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: bytes) -> None:
        """Send one message."""
        number, self._sent = self._sent, self._sent + 1
        try:
            if self._ring is not None and self._ring.put(number, message):
                if self._ring.wanted():
                    self._socket.sendall(_SIZE.pack(0), _QUIETLY)
            elif len(message) <= _CHUNK:
                # One send: each wakes the peer, which costs more than copying.
                self._socket.sendall(_SIZE.pack(len(message)) + message, _QUIETLY)
            else:
                self._socket.sendall(_SIZE.pack(len(message)), _QUIETLY)
                self._socket.sendall(message, _QUIETLY)
        except ConnectionError:
            raise HungUp from None

    def receive(self) -> bytes:
        """The next message, waiting for it."""
        message = self._next(0)
        assert message is not None
        return message

    def take(self) -> bytes | None:
        """The next message if it is there, else None."""
        ring, number = self._ring, self._taken
        if ring is None:
            return self._next(socket.MSG_DONTWAIT)
        message = ring.take(number)
        while message is None:
            if self._early is None:
                hung_up = None
                try:
                    self._early = self._next(socket.MSG_DONTWAIT)
                except HungUp as error:
                    hung_up = error
                # Messages in the ring were written before that was sent, or before the peer left.
                message = ring.take(number)
                if message is not None:
                    break
                if hung_up is not None:
                    raise hung_up
                if self._early is None:
                    return None
            message, self._early = self._early or None, None
        self._taken += 1
        return message

    def doze(self) -> bool:
        """Whether the receiver may poll now: the sender will wake it for the next message."""
        return self._ring is None or self._ring.doze()

    def _next(self, flags: int) -> bytes | None:
        while True:
            have = len(self._received) - self._start - _SIZE.size
            if have >= 0:
                (size,) = _SIZE.unpack_from(self._received, self._start)
                if have >= size:
                    return self._cut(size)
            try:
                count = self._socket.recv_into(self._chunk, 0, flags)
            except BlockingIOError:
                return None
            except ConnectionError:
                raise HungUp from None
            if not count:
                raise HungUp
            self._received += self._chunk[:count]

    def _cut(self, size: int) -> bytes:
        begin = self._start + _SIZE.size
        with memoryview(self._received) as view:
            message = bytes(view[begin : begin + size])
        self._start = begin + size
        if self._start == len(self._received):
            self._received.clear()
            self._start = 0
        elif self._start > _CHUNK:
            del self._received[: self._start]
            self._start = 0
        return message

    def post(self, message: bytes) -> None:
        """Send a message without blocking; the rest that the socket does not accept is left for `flush`."""
        self._outgoing += _SIZE.pack(len(message)) + message
        self.flush()

    def flush(self) -> None:
        """Send as much of the posted messages as the socket accepts; drop them if the peer is gone."""
        while self._outgoing:
            try:
                sent = self._socket.send(self._outgoing, socket.MSG_DONTWAIT | _QUIETLY)
            except BlockingIOError:
                return
            except OSError:
                self._outgoing.clear()  # a receiver will raise HungUp
                return
            del self._outgoing[:sent]

    @property
    def pending(self) -> bool:
        """Whether posted messages are left for `flush`."""
        return bool(self._outgoing)

    def hang_up(self) -> None:
        """Shut the connection down, which wakes both sides. The descriptor stays open until `close`."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the peer is gone

    def close(self) -> None:
        """Release the descriptor and the ring."""
        self._socket.close()
        self._ring = None


# (pickled recipe of the error, or None if it has none; type and message; traceback)
Portable = tuple[bytes | None, str, str]


@public
class WorkerTraceback(Exception):
    """The traceback of an error in a worker process as text; it is the cause of the error raised here."""

    def __str__(self) -> str:
        return f"\n\nin the worker process:\n{self.args[0]}"


class WorkerDone(Exception):
    """A worker has ended regularly; `value` is the return value of its function, `worker` its number."""

    def __init__(self, value: Any, worker: int) -> None:
        super().__init__(value, worker)
        self.value = value
        self.worker = worker


@public
class WorkerDied(RuntimeError):
    """A worker process was killed, or exited, before it was done."""


@public
class WorkerTimeout(RuntimeError, TimeoutError):
    """A worker gave no result within the pool's timeout."""


class PoolClosed(Exception):
    """The pool was closed, perhaps by another thread while this one waited."""


def portable(error: BaseException) -> Portable:
    """An error of this process in a form that can be pickled; its traceback has the user's frames (`tracebacks`)."""
    tracebacks.shorten(error, tracebacks.is_full())
    described = "".join(traceback.format_exception_only(type(error), error)).strip()
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return _recipe(error), described, trace


def _recipe(error: BaseException) -> bytes | None:
    """Pickled: the error itself, or its type, arguments and attributes, whichever reconstructs an equal error.

    None if neither does, and for SystemExit and the like, which must not end the parent.
    """
    if not isinstance(error, Exception):
        return None
    for recipe in (error, (type(error), error.args, error.__dict__)):
        try:
            pickled = pickle.dumps(recipe)
            copy = _made(pickled)
            if type(copy) is type(error) and str(copy) == str(error):
                return pickled
        except Exception:
            continue
    return None


def _made(pickled: bytes) -> BaseException:
    recipe = pickle.loads(pickled)  # safe: only our own worker has the other end of the channel
    if isinstance(recipe, BaseException):
        return recipe
    kind, args, attributes = recipe
    # Not through __init__, whose parameters may differ from `args`.
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


def rebuilt(error: Portable, label: str) -> BaseException:
    """The error of a worker that messages call `label`; its cause is a WorkerTraceback, if that has frames to show.

    A RuntimeError with its type and message if it cannot be reconstructed.
    """
    pickled, described, trace = error
    copy: BaseException | None = None
    if pickled is not None:
        try:
            copy = _made(pickled)
        except Exception:
            pass  # its class cannot be imported here: it is described below
    if copy is None:
        copy = RuntimeError(f"{label} failed: {described}")
    copy.__cause__ = WorkerTraceback(trace) if trace.strip() != described else None
    return copy


def maker(error: BaseException) -> Callable[[], BaseException]:
    """A function that makes copies of the error. Keeping the error itself would keep, by its traceback, the local
    variables of every frame that it was raised through.
    """
    pickled, described, _ = portable(error)
    cause = error.__cause__ if isinstance(error.__cause__, WorkerTraceback) else None

    def make() -> BaseException:
        copy = RuntimeError(described) if pickled is None else _made(pickled)
        copy.__cause__ = cause
        return copy

    return make
