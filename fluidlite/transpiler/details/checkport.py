"""Waiting for servers (`fluid.transpiler.details.checkport`)."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterable
from contextlib import closing

from ...base import missing

string_types = (str,)


def wait_server_ready(endpoints: Iterable[str]) -> None:
    """Return when every `IP:PORT` of `endpoints` takes connections; asks those that do not every 3 seconds.

    Raises AssertionError if `endpoints` is a string.
    """
    if isinstance(endpoints, str):
        raise AssertionError(f"endpoints must be a list of strings, got {endpoints!r}")
    while waiting := [endpoint for endpoint in endpoints if not _listens(endpoint)]:
        sys.stderr.write(f"not ready endpoints: {waiting}, asked again in 3 seconds\n")
        sys.stderr.flush()
        time.sleep(3)


def _listens(endpoint: str) -> bool:
    host, port = endpoint.rsplit(":", 1)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as connection:
        connection.settimeout(2)
        return connection.connect_ex((host, int(port))) == 0


__getattr__ = missing.reporter(__name__)
