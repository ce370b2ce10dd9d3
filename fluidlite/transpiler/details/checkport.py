"""Waiting for servers (`fluid.transpiler.details.checkport`)."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterable
from contextlib import closing

from ...base import missing

string_types = (str,)


_PAUSE, _PRINT_EVERY = 0.1, 3.0


def wait_server_ready(endpoints: Iterable[str]) -> None:
    """Wait until every `IP:PORT` of `endpoints` accepts connections; prints every 3 seconds which do not.

    Raises AssertionError if `endpoints` is a string.
    """
    if isinstance(endpoints, str):
        raise AssertionError(f"endpoints must be a list of strings, got {endpoints!r}")
    printed = time.monotonic()
    while waiting := [endpoint for endpoint in endpoints if not _listens(endpoint)]:
        if time.monotonic() - printed >= _PRINT_EVERY:
            printed = time.monotonic()
            sys.stderr.write(f"not ready endpoints: {waiting}\n")
            sys.stderr.flush()
        time.sleep(_PAUSE)


def _listens(endpoint: str) -> bool:
    host, port = endpoint.rsplit(":", 1)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as connection:
        connection.settimeout(2)
        return connection.connect_ex((host, int(port))) == 0


__getattr__ = missing.reporter(__name__)
