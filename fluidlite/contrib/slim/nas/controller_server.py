"""`ControllerServer`: one controller for agents in other processes."""

from __future__ import annotations

import logging
import math
import socket
import threading
from typing import Any

from ....base import missing
from ....log_helper import get_logger
from . import messages

__all__ = ["ControllerServer"]

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
                        messages.send(agent, self._answer(messages.received(agent)))
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
            self._controller.update(messages.as_tokens(rest[0]), reward)
            self._steps += 1
        elif kind != "next" or rest:
            raise ValueError(f"an unknown message {kind!r}")
        return messages.as_text(self._controller.next_tokens())


__getattr__ = missing.reporter(__name__)
