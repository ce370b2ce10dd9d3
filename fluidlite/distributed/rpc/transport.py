"""Messages, commands with named arrays, and their transport by gRPC."""

from __future__ import annotations

import hmac
import json
import os
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from math import prod
from queue import SimpleQueue
from typing import Any

import numpy as np

from ...base.errors import EnforceNotMet, FormatError, NotSupportedError, public
from ...base.selected_rows import SelectedRows

# `Message`: a command with named arrays, as bytes.
#
#     magic 'FLP1' | header: the size of a JSON text (uint32), the text | the elements of each array, in turn
#
# The text holds the command, the sender, and each array's name, type, shape and, for rows of a table, its height.
# Sizes are checked against the number of bytes before anything is read.

_MAGIC = b"FLP1"
_TYPES = frozenset("bool int8 uint8 int16 int32 int64 float16 float32 float64".split())


@public
class RpcError(EnforceNotMet, RuntimeError):
    """A request between trainer and parameter server has failed."""


@public
class ServerLost(RpcError):
    """A parameter server has ended while a trainer needs it; the message names both, and the last step."""


@public
class TrainerLost(RpcError):
    """A trainer has ended unexpectedly; the message names it, and its last step."""


@dataclass
class Message:
    """A command (`send`, `get`, ...), the index of the trainer, options, and arrays or SelectedRows by name."""

    command: str
    trainer: int = 0
    info: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The message as bytes."""
        listed, data = [], []
        for name, value in self.arrays.items():
            if isinstance(value, SelectedRows):
                rows = np.ascontiguousarray(value.rows, "<i8")
                values = np.ascontiguousarray(value.values)
                listed.append([name, values.dtype.name, list(values.shape), value.height])
                data += [rows.tobytes(), values.tobytes()]
            else:
                array = np.ascontiguousarray(value)
                listed.append([name, array.dtype.name, list(np.shape(value)), None])
                data.append(array.tobytes())
        head = json.dumps([self.command, self.trainer, self.info, listed]).encode()
        return b"".join([_MAGIC, struct.pack("<I", len(head)), head, *data])

    @classmethod
    def decode(cls, data: bytes) -> Message:
        """Parse a message. Raises FormatError if it is malformed."""
        if data[:4] != _MAGIC or len(data) < 8:
            raise FormatError(f"a message of fluidlite begins with {_MAGIC!r}, got {data[:4]!r}")
        (size,) = struct.unpack_from("<I", data, 4)
        if size > len(data) - 8:
            raise FormatError(f"a message of {len(data)} bytes cannot have a header of {size}")
        try:
            command, trainer, info, listed = json.loads(data[8 : 8 + size])
            layouts = [
                (str(n), str(t), tuple(map(int, s)), h if h is None else int(h)) for n, t, s, h in listed
            ]
            message = cls(str(command), int(trainer), dict(info))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise FormatError(f"the header of a message cannot be read: {error}") from None
        at = 8 + size
        for name, kind, shape, height in layouts:
            if kind not in _TYPES or any(n < 0 for n in shape):
                raise FormatError(
                    f"{name!r} has elements of type {kind!r} and shape {list(shape)} in a message"
                )
            if height is None:
                message.arrays[name], at = _taken(data, at, kind, shape, name)
                continue
            if not shape:
                raise FormatError(f"{name!r} are rows without a shape in a message")
            rows, at = _taken(data, at, "int64", shape[:1], name)
            values, at = _taken(data, at, kind, shape, name)
            if len(rows) and not 0 <= rows.min() <= rows.max() < height:
                raise FormatError(
                    f"{name!r} has rows from {rows.min()} to {rows.max()} of {height} in a message"
                )
            message.arrays[name] = SelectedRows(rows, values, height)
        if at != len(data):
            raise FormatError(f"a message has {len(data) - at} bytes more than its header says")
        return message


def _taken(data: bytes, at: int, kind: str, shape: tuple[int, ...], name: str) -> tuple[np.ndarray, int]:
    dtype = np.dtype(kind)
    count = prod(shape)
    end = at + count * dtype.itemsize
    if end > len(data):
        raise FormatError(f"a message ends before the {count} elements of {name!r}")
    return np.frombuffer(data, dtype, count, at).reshape(shape).copy(), end  # aligned, and may be written to


# The transport by gRPC: a unary method `Call` for messages, and a stream `Watch` that lasts as long as a trainer.
#
# A trainer first opens `Watch` and identifies itself; its calls use the same connection. When either side dies, the
# other one sees the end of the connection at once; a machine that has gone is detected by keepalives within 5
# seconds.

CALL, WATCH = "Call", "Watch"
_SERVICE = "fluidlite.ParameterServer"
_HERE, _RETURNS = b"here", b"here, and back if I am lost"
_DIGITS = 9
_TOKEN = "fluidlite-token-bin"  # metadata of gRPC that are bytes end so
_OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.keepalive_time_ms", 2000),
    ("grpc.keepalive_timeout_ms", 2500),
    ("grpc.http2.ping_timeout_ms", 2500),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.so_reuseport", 0),
    ("grpc.enable_http_proxy", 0),
]


def _secret() -> bytes:
    """The shared token of servers and trainers (FLUIDLITE_PS_TOKEN); empty if it is not set."""
    return os.environ.get("FLUIDLITE_PS_TOKEN", "").encode()


def _grpc() -> Any:
    try:
        import grpc
    except ImportError:
        raise NotSupportedError(
            "parameter servers need grpcio, which is not installed: pip install 'fluidlite[ps]'"
        ) from None
    return grpc


class _Threads(Executor):
    """A pool of at most `count` daemon threads, which do not keep the process from ending."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._idle = threading.Semaphore(0)
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()

        def call() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                done.set_result(fn(*args, **kwargs))
            except BaseException as error:
                done.set_exception(error)

        self._work.put(call)
        if not self._idle.acquire(blocking=False) and self._left > 0:
            self._left -= 1
            threading.Thread(target=self._run, name="fluidlite-ps", daemon=True).start()
        return done

    def _run(self) -> None:
        while True:
            self._work.get()()
            self._idle.release()


@dataclass(eq=False)
class Stream:
    """An open `Watch`: its trainer and its connection."""

    trainer: int
    peer: str
    called: bool = False
    """True after the trainer's first call."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set to end the stream."""


class Listener:
    """Listens at `endpoint`. Raises OSError if that cannot be bound.

    `answer` gets the bytes of a call and its connection, and returns the bytes of the reply; it may block. `joined`
    gets the stream of a trainer that opens `Watch`, and raises RpcError to refuse it; `left` gets it when it has ended.
    `returns`: trainers shall wait for a replacement if this server is lost. With FLUIDLITE_PS_TOKEN, trainers with
    another token are refused.
    """

    def __init__(
        self,
        endpoint: str,
        threads: int,
        answer: Callable[[bytes, str], bytes],
        joined: Callable[[Stream], None],
        left: Callable[[Stream], None],
        returns: bool = False,
    ) -> None:
        grpc = _grpc()
        self._over = threading.Event()

        token = _secret()

        def watch(number: bytes, context: Any) -> Iterator[bytes]:
            received = dict(context.invocation_metadata()).get(_TOKEN, b"")
            if token and not hmac.compare_digest(received, token):
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "its FLUIDLITE_PS_TOKEN is not the server's")
            if not number.isdigit() or len(number) > _DIGITS:
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "a trainer must identify itself first")
            stream = Stream(int(number), context.peer())
            try:
                joined(stream)
            except RpcError as error:
                context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
            if not context.add_callback(lambda: left(stream)):
                left(stream)  # it has ended already
                return
            yield _RETURNS if returns else _HERE
            while not self._over.is_set() and not stream.over.wait(0.2) and context.is_active():
                pass

        handlers = {
            CALL: grpc.unary_unary_rpc_method_handler(lambda data, context: answer(data, context.peer())),
            WATCH: grpc.unary_stream_rpc_method_handler(watch),
        }
        self._server = grpc.server(_Threads(threads), options=_OPTIONS)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
        try:
            bound = self._server.add_insecure_port(endpoint)
        except RuntimeError as error:
            raise OSError(f"a parameter server cannot listen at {endpoint}: {error}") from None
        if not bound:
            raise OSError(f"a parameter server cannot listen at {endpoint}")
        self._server.start()

    def close(self) -> None:
        """Stop accepting calls, and wait for those that have begun."""
        self._over.set()
        self._server.stop(2).wait()


class Line:
    """A connection to the server at `endpoint`.

    Waits up to `patience` seconds for the server. Raises TimeoutError if it does not answer, RpcError if it refuses
    this trainer. `lost` is set when the connection has ended; `returns`: the server will be restarted then.
    """

    def __init__(self, endpoint: str, trainer: int, patience: float) -> None:
        self.grpc = _grpc()
        self.lost = threading.Event()
        self._closing = False
        self._channel = self.grpc.insecure_channel(endpoint, options=_OPTIONS)
        self._watch = self._channel.unary_stream(f"/{_SERVICE}/{WATCH}")(
            str(trainer).encode(), wait_for_ready=True, metadata=[(_TOKEN, _secret())]
        )
        timer = threading.Timer(patience, self._watch.cancel)
        timer.daemon = True
        timer.start()
        try:
            self.returns = next(self._watch) == _RETURNS
        except (self.grpc.RpcError, StopIteration) as error:
            self._channel.close()
            code = self.grpc.StatusCode
            refused = (code.UNAUTHENTICATED, code.PERMISSION_DENIED)
            if isinstance(error, self.grpc.RpcError) and error.code() in refused:
                raise RpcError(
                    f"parameter server {endpoint} refuses trainer {trainer}: {error.details()}"
                ) from None
            raise TimeoutError(f"no parameter server at {endpoint} within {patience:g} s") from None
        finally:
            timer.cancel()
        self._call = self._channel.unary_unary(f"/{_SERVICE}/{CALL}")
        threading.Thread(target=self._look, name=f"watch {endpoint}", daemon=True).start()

    def _look(self) -> None:
        try:
            for _ in self._watch:
                pass
        except self.grpc.RpcError:
            pass
        self.lost.set()

    def begin(self, data: bytes) -> Any:
        """Start a call; returns a future of the reply."""
        return self._call.future(data)

    def close(self) -> None:
        """End the connection."""
        self._watch.cancel()
        self._channel.close()
