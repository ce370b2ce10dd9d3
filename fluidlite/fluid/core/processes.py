"""Communication between processes in `fluid.core`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.errors import EnforceNotMet
from ...distributed.processes import world

__all__ = ["Gloo"]


class Gloo:
    """Numbers exchanged by processes (`fluid.core.Gloo`), over the connections that the launcher makes.

    `set_rank` and `set_size`, then `init`, which raises EnforceNotMet if this process is another one or there are
    others. Where the connections are made, the launcher knows: `set_iface`, `set_hdfs_store`, `set_http_store`,
    `set_prefix` and `set_timeout_seconds` are accepted.
    """

    def __init__(self) -> None:
        self._rank, self._size, self._begun = 0, 1, False

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def set_rank(self, rank: int) -> None:
        self._rank = rank

    def set_size(self, size: int) -> None:
        self._size = size

    def set_iface(self, iface: str) -> None: ...

    def set_prefix(self, prefix: str) -> None: ...

    def set_timeout_seconds(self, init_seconds: int, run_seconds: int) -> None: ...

    def set_hdfs_store(self, path: str, fs_name: str, fs_ugi: str) -> None: ...

    def set_http_store(self, ip: str, port: int, scope: str) -> None: ...

    def init(self) -> None:
        """Connect with the others."""
        here = world()
        if (here.rank, here.size) != (self._rank, self._size):
            raise EnforceNotMet(
                f"Gloo is set up for process {self._rank} of {self._size}, but this is process {here.rank} of "
                f"{here.size}: start all by python -m fluidlite launch, and use its numbers"
            )
        self._begun = True

    def _others(self) -> Any:
        if not self._begun:
            raise EnforceNotMet("Gloo is not initialized: call init() first")
        return world()

    def barrier(self) -> None:
        """Wait until all processes are here."""
        self._others().barrier()

    def all_gather(self, value: float) -> list[Any]:
        """The numbers of all processes, by rank."""
        return [part.item() for part in self._others().all_gather(np.asarray(value).reshape(1))]

    def all_reduce(self, values: Sequence[float], mode: str = "sum") -> list[Any]:
        """The sum, max or min over all processes of each number; EnforceNotMet for another `mode`."""
        if mode not in ("sum", "max", "min"):
            raise EnforceNotMet(f"AllReduce mode must be sum, max or min, got {mode!r}")
        result: list[Any] = self._others().all_reduce(np.asarray(values), mode).tolist()
        return result
