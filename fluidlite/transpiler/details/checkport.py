"""Waiting for servers (`fluid.transpiler.details.checkport`)."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterable
from contextlib import closing

from ...base import missing

string_types = (str,)


_PAUSE, _TELLS_AFTER = 0.1, 3.0


def wait_server_ready(endpoints: Iterable[str]) -> None:
    """Return when every `IP:PORT` of `endpoints` takes connections; says every 3 seconds which do not.

    Raises AssertionError if `endpoints` is a string.
    """
    if isinstance(endpoints, str):
        raise AssertionError(f"endpoints must be a list of strings, got {endpoints!r}")
    told = time.monotonic()
    while waiting := [endpoint for endpoint in endpoints if not _listens(endpoint)]:
        if time.monotonic() - told >= _TELLS_AFTER:
            told = time.monotonic()
            sys.stderr.write(f"not ready endpoints: {waiting}\n")
            sys.stderr.flush()
        time.sleep(_PAUSE)


def _listens(endpoint: str) -> bool:
    host, port = endpoint.rsplit(":", 1)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as connection:
        connection.settimeout(2)
        return connection.connect_ex((host, int(port))) == 0


__getattr__ = missing.reporter(__name__)
