"""`ControllerServer`: one controller for agents in other processes."""

from __future__ import annotations

import logging
import math
import socket
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

from ....small_modules import get_logger

__all__ = ["ControllerServer"]

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
