"""gRPC underneath: one method that takes and gives a message, and one that lasts as long as a trainer does.

A trainer opens `Watch` first. When either side dies the connection ends, which the other one sees at once; that of a
machine which has gone is found out by keepalives within 5 seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any

from ..base.errors import NotSupportedError

CALL, WATCH = "Call", "Watch"
_SERVICE = "fluidlite.ParameterServer"
_HERE, _RETURNS = b"here", b"here, and back if I am lost"
_DIGITS = 9
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


def _grpc() -> Any:
    try:
        import grpc
    except ImportError:
        raise NotSupportedError(
            "parameter servers need grpcio, which is not installed: pip install 'fluidlite[ps]'"
        ) from None
    return grpc


class _Threads(Executor):
    """So many threads at most, none of which keeps the process from ending, whatever it waits for."""

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


class Listener:
    """Takes calls at `endpoint` and nowhere else; OSError if that cannot be bound.

    `answer` gets the bytes of a call and gives those of the reply; it may block. `joined` gets the number of a trainer
    that opens `Watch`, `left` when that has ended, for whatever reason. `returns`: whether trainers are told to
    wait for another server in this one's place if it is lost.
    """

    def __init__(
        self,
        endpoint: str,
        threads: int,
        answer: Callable[[bytes], bytes],
        joined: Callable[[int], None],
        left: Callable[[int], None],
        returns: bool = False,
    ) -> None:
        grpc = _grpc()
        self._over = threading.Event()

        def watch(number: bytes, context: Any) -> Iterator[bytes]:
            if not number.isdigit() or len(number) > _DIGITS:
                return
            trainer = int(number)
            joined(trainer)
            context.add_callback(lambda: left(trainer))
            yield _RETURNS if returns else _HERE
            while not self._over.wait(0.2) and context.is_active():
                pass

        handlers = {
            CALL: grpc.unary_unary_rpc_method_handler(lambda data, context: answer(data)),
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
        """Let calls end that have begun, and take no more."""
        self._over.set()
        self._server.stop(2).wait()


class Line:
    """A connection to the server at `endpoint`.

    Waits up to `patience` seconds for the server to come. `lost` is set when it has ended; `returns`: whether another
    takes its place then.
    """

    def __init__(self, endpoint: str, trainer: int, patience: float) -> None:
        self.grpc = _grpc()
        self.lost = threading.Event()
        self._closing = False
        self._channel = self.grpc.insecure_channel(endpoint, options=_OPTIONS)
        self._watch = self._channel.unary_stream(f"/{_SERVICE}/{WATCH}")(
            str(trainer).encode(), wait_for_ready=True
        )
        timer = threading.Timer(patience, self._watch.cancel)
        timer.daemon = True
        timer.start()
        try:
            self.returns = next(self._watch) == _RETURNS
        except (self.grpc.RpcError, StopIteration):
            self._channel.close()
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
        """Start a call; `result()` of what this gives waits for the reply."""
        return self._call.future(data)

    def close(self) -> None:
        """End the connection."""
        self._watch.cancel()
        self._channel.close()
