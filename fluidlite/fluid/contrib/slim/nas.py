"""`fluid.contrib.slim.nas`: network architecture search, with one controller for several agents."""

from __future__ import annotations

import fcntl
import logging
import math
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ....executor import Executor
from ...small_modules import get_logger
from .core import Strategy

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["LOCK_EX", "LOCK_UN", "ControllerServer", "LightNASStrategy", "SearchAgent", "SearchSpace"]


LOCK_EX, LOCK_UN = fcntl.LOCK_EX, fcntl.LOCK_UN


def lock(file: Any) -> None:
    """Acquire the exclusive lock of an open file."""
    fcntl.flock(file.fileno(), LOCK_EX)


def unlock(file: Any) -> None:
    """Release the lock of an open file."""
    fcntl.flock(file.fileno(), LOCK_UN)


LIMIT = 1 << 16


def received(connection: socket.socket) -> str:
    """The next line. Raises ValueError if it is too long, truncated or not ASCII."""
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(4096)
        data += part
        if not part or len(data) > LIMIT:
            raise ValueError(f"a message of {len(data)} bytes is cut off or too long")
    return data[:-1].decode("ascii")


def send(connection: socket.socket, text: str) -> None:
    connection.sendall(text.encode("ascii") + b"\n")


def as_text(tokens: Sequence[int]) -> str:
    return ",".join(str(int(token)) for token in tokens)


def as_tokens(text: str) -> list[int]:
    """The integers of a line; ValueError for anything else."""
    return [int(part) for part in text.split(",")]


_logger = get_logger(__name__, logging.INFO, fmt="ControllerServer-%(asctime)s-%(levelname)s: %(message)s")


class ControllerServer:
    """Serves the next network to try to `SearchAgent`s (`fluid.contrib.slim.nas.ControllerServer`).

    Args:
        controller: an `EvolutionaryController`, such as `SAController`.
        address: the host and port to listen at; port 0 takes a free one, see `port`.
        max_client_num: the number of agents that may wait.
        search_steps: the number of updates until it ends; None: until it is closed.
        key: the key that agents must send; others are not answered.
    """

    def __init__(
        self,
        controller: Any = None,
        address: tuple[str, int] = ("", 0),
        max_client_num: int = 100,
        search_steps: int | None = None,
        key: str | None = None,
    ) -> None:
        self._controller = controller
        self._key = key or "light-nas"
        self._search_steps = search_steps
        self._steps = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        self._socket = socket.create_server((address[0] or "127.0.0.1", address[1]), backlog=max_client_num)
        self._socket.settimeout(0.2)
        self._ip, self._port = self._socket.getsockname()[:2]

    def start(self) -> threading.Thread:
        """Listen in a thread."""
        self._thread = threading.Thread(target=self.run, name="fluidlite controller server", daemon=True)
        self._thread.start()
        return self._thread

    def close(self) -> None:
        """End, after the current request."""
        self._closed = True
        if self._thread is not None:
            self._thread.join()

    def ip(self) -> str:
        return str(self._ip)

    def port(self) -> int:
        return int(self._port)

    def run(self) -> None:
        """Answer agents until it is closed or has had `search_steps` updates."""
        with self._socket:
            while not self._closed and (self._search_steps is None or self._steps < self._search_steps):
                try:
                    agent, _ = self._socket.accept()
                except TimeoutError:
                    continue
                with agent:
                    agent.settimeout(10)
                    try:
                        send(agent, self._answer(received(agent)))
                    except (OSError, ValueError) as error:
                        _logger.info("no answer to an agent: %s", error)
        self._closed = True

    def _answer(self, text: str) -> str:
        kind, key, *rest = text.split("\t") if "\t" in text else ("", "")
        if key != self._key:
            raise ValueError("the agent's key differs from the server's")
        if kind == "update" and len(rest) == 2:
            reward = float(rest[1])
            if math.isnan(reward):
                raise ValueError("the reward is no number")
            self._controller.update(as_tokens(rest[0]), reward)
            self._steps += 1
        elif kind != "next" or rest:
            raise ValueError(f"an unknown message {kind!r}")
        return as_text(self._controller.next_tokens())


class SearchAgent:
    """A client of a `ControllerServer` (`fluid.contrib.slim.nas.SearchAgent`).

    `server_ip`, `server_port`: its address; `key`: its key. Raises OSError without a server, ValueError for a malformed
    answer.
    """

    def __init__(
        self, server_ip: str | None = None, server_port: int | None = None, key: str | None = None
    ) -> None:
        self.server_ip, self.server_port = server_ip, server_port
        self._key = key or "light-nas"

    def update(self, tokens: Sequence[int], reward: float) -> list[int]:
        """Send the reward of a network; returns the next one to try."""
        return self._asked(f"update\t{self._key}\t{as_text(tokens)}\t{float(reward)!r}")

    def next_tokens(self) -> list[int]:
        """The next network to try."""
        return self._asked(f"next\t{self._key}")

    def _asked(self, text: str) -> list[int]:
        with socket.create_connection(
            (self.server_ip or "127.0.0.1", self.server_port or 0), timeout=60
        ) as server:
            send(server, text)
            return as_tokens(received(server))


class SearchSpace:
    """Base of spaces of networks, each a list of integers (`fluid.contrib.slim.nas.SearchSpace`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accepts the arguments of subclasses."""

    def init_tokens(self) -> Any:
        """The network to begin with."""
        _abstract("init_tokens")

    def range_table(self) -> Any:
        """The number of values of each integer."""
        _abstract("range_table")

    def create_net(self, tokens: Any) -> Any:
        """The programs, metrics and readers of a network."""
        _abstract("create_net")

    def get_model_latency(self, program: Any) -> Any:
        """The latency of a network."""
        _abstract("get_model_latency")


def _abstract(name: str) -> NoReturn:
    raise NotImplementedError(f"Abstract method: a SearchSpace defines {name}")


_strategy_logger = get_logger(
    f"{__name__}.light_nas_strategy",
    logging.INFO,
    fmt="LightNASStrategy-%(asctime)s-%(levelname)s: %(message)s",
)

SERVED = "slim_LightNASStrategy_controller_server.socket"
"""The file in the working folder with the server's address, for the other processes of the machine."""

_TRIES = 100


class LightNASStrategy(Strategy):
    """Trains networks that a controller proposes (`fluid.contrib.slim.nas.LightNASStrategy`).

    The compressor's `search_space` makes the networks. One that needs more operations or time than allowed is not
    trained: the controller proposes others, up to 100 times. The reward of a trained network is its evaluation, or 0 if
    it exceeds a limit.

    Args:
        controller: an `EvolutionaryController`, such as `SAController`.
        end_epoch: the epoch after which the search ends.
        target_flops: the largest number of operations of a network.
        target_latency: the largest latency, as measured by the search space; 0: no limit.
        retrain_epoch: the number of epochs that each network is trained; 0: they are only evaluated.
        metric_name: the result of evaluations that is the reward.
        server_ip: the controller's address; None: this machine's.
        server_port: its port; 0: a free one.
        is_server: True if this machine's processes share a server, which the first of them starts.
        max_client_num: the number of agents that may wait.
        search_steps: the number of rewards until the server ends; None: with its process.
        key: the common key of agents and server.
    """

    def __init__(
        self,
        controller: Any = None,
        end_epoch: int = 1000,
        target_flops: float = 629145600,
        target_latency: float = 0,
        retrain_epoch: int = 1,
        metric_name: str = "top1_acc",
        server_ip: str | None = None,
        server_port: int = 0,
        is_server: bool = False,
        max_client_num: int = 100,
        search_steps: int | None = None,
        key: str = "light-nas",
    ) -> None:
        super().__init__(0, end_epoch)
        self._max_flops, self._max_latency = target_flops, target_latency
        self._metric_name = metric_name
        self._controller = controller
        self._retrain_epoch = retrain_epoch
        self._server_ip = server_ip or socket.gethostbyname(socket.gethostname())
        self._server_port = server_port
        self._is_server = is_server
        self._max_client_num = max_client_num
        self._search_steps = search_steps
        self._key = key
        self._current_tokens: list[int] = []
        self._server: ControllerServer | None = None
        self._search_agent: SearchAgent | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: everything except the server and the agent."""
        return {name: value for name, value in vars(self).items() if name not in ("_server", "_search_agent")}

    def on_compression_begin(self, context: Any) -> None:
        """Begin with the first network of the space, and start the controller's server or read its address."""
        self._current_tokens = list(context.search_space.init_tokens())
        self._controller.reset(context.search_space.range_table(), self._current_tokens, None)
        if self._is_server:
            with Path(SERVED).open("a+") as file:
                lock(file)
                file.seek(0)
                address = file.readline()
                if address:
                    self._server_ip, port = address.split()
                    self._server_port = int(port)
                else:
                    self._serve()
                    file.write(f"{self._server_ip} {self._server_port}")
                    file.flush()
                unlock(file)
        _strategy_logger.info(
            "self._server_ip: %s; self._server_port: %s", self._server_ip, self._server_port
        )
        self._search_agent = SearchAgent(self._server_ip, self._server_port, key=self._key)

    def _serve(self) -> None:
        self._server = ControllerServer(
            controller=self._controller,
            address=(self._server_ip, self._server_port),
            max_client_num=self._max_client_num,
            search_steps=self._search_steps,
            key=self._key,
        )
        self._server.start()
        self._server_port = self._server.port()

    def on_epoch_begin(self, context: Any) -> None:
        """Create the next network, if one is due."""
        if not self._due(context.epoch_id):
            return
        _strategy_logger.info("light nas strategy on_epoch_begin")
        base, first = self._current_tokens, None
        for _ in range(_TRIES):
            net = context.search_space.create_net(self._current_tokens)
            startup, train, test, _, _, train_reader, test_reader = net
            context.eval_graph.program = test
            needs = context.eval_graph.flops(), self._latency(context, test)
            _strategy_logger.info(
                "try [%s] with latency %s flops %s", self._current_tokens, needs[1], needs[0]
            )
            if not self._too_much(*needs):
                break
            first = first or needs
            if needs[0] < first[0] or needs[1] < first[1]:
                base = self._current_tokens
            self._current_tokens = self._controller.next_tokens(base)
        context.train_reader, context.eval_reader = train_reader, test_reader
        Executor(context.place).run(startup)
        context.optimize_graph.program = train
        context.optimize_graph.compile()
        context.skip_training = self._retrain_epoch == 0

    def on_epoch_end(self, context: Any) -> None:
        """Send the reward of a trained network to the controller, which returns the next one."""
        if not self._due(context.epoch_id + 1):
            return
        reward = float(context.eval_results[self._metric_name][-1])
        flops = context.eval_graph.flops()
        latency = 0.0
        if self._max_latency > 0:
            latency = self._latency(context, context.search_space.create_net(self._current_tokens)[2])
        if self._too_much(flops, latency):
            reward = 0.0
        _strategy_logger.info(
            "reward: %s; latency: %s; flops: %s; tokens: %s", reward, latency, flops, self._current_tokens
        )
        assert self._search_agent is not None
        self._current_tokens = self._search_agent.update(self._current_tokens, reward)

    def _due(self, epoch: int) -> bool:
        """True if a new network begins before an epoch."""
        return self._retrain_epoch == 0 or epoch % self._retrain_epoch == 0

    def _latency(self, context: Any, program: Any) -> float:
        return float(context.search_space.get_model_latency(program)) if self._max_latency > 0 else 0.0

    def _too_much(self, flops: float, latency: float) -> bool:
        return flops > self._max_flops or 0 < self._max_latency < latency
