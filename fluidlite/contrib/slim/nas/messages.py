"""Messages between agents and their server: lines of text of at most LIMIT bytes, integers separated by commas."""

from __future__ import annotations

import socket
from collections.abc import Sequence

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
