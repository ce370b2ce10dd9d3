"""`SearchAgent`: a client of a controller's server."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from ....base import missing
from . import messages

__all__ = ["SearchAgent"]


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
        return self._asked(f"update\t{self._key}\t{messages.as_text(tokens)}\t{float(reward)!r}")

    def next_tokens(self) -> list[int]:
        """The next network to try."""
        return self._asked(f"next\t{self._key}")

    def _asked(self, text: str) -> list[int]:
        with socket.create_connection(
            (self.server_ip or "127.0.0.1", self.server_port or 0), timeout=60
        ) as server:
            messages.send(server, text)
            return messages.as_tokens(messages.received(server))


__getattr__ = missing.reporter(__name__)
