"""Assignment of variables to servers (`fluid.transpiler.ps_dispatcher`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

from ..base import missing


class PSDispatcher:
    """Base of assignments of variables to servers (`fluid.transpiler.ps_dispatcher.PSDispatcher`).

    `pserver_endpoints`: `IP:PORT` of each server.
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        self._eps = pserver_endpoints
        self._step = 0

    @property
    def eps(self) -> Sequence[str]:
        """The endpoints of the servers."""
        return self._eps

    def reset(self) -> None:
        """Restart with the first server."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """The endpoint of each of `varlist`; subclasses define it."""
        raise NotImplementedError("Interface has not been implemented.")


class HashName(PSDispatcher):
    """Assignment by a hash of the variable's name (`fluid.transpiler.HashName`).

    The names of `varlist`, of variables or of objects with a method `name` as in Fluid, are hashed by CRC-32, so
    that all processes agree.
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        names = [var.name() if callable(var.name) else var.name for var in varlist]
        return [self._eps[crc32(name.encode()) % len(self._eps)] for name in names]


class RoundRobin(PSDispatcher):
    """Assignment to one server after the other (`fluid.transpiler.RoundRobin`)."""

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        chosen = [self._eps[(self._step + k) % len(self._eps)] for k in range(len(varlist))]
        self._step = (self._step + len(varlist)) % len(self._eps)
        return chosen


__getattr__ = missing.reporter(__name__)
