"""`fluid.core`: what processes exchange numbers by, and what exchanges parameters with servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import EnforceNotMet
from ..communicator import Communicator
from ..distributed.communicator import world
from ..executor.tensors.scope import Scope
from ..framework.serialization.descs import ProgramDesc
from ..transpiler.distribute_transpiler import DistributedMode

__all__ = ["DistCommunicator", "Gloo"]


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
                f"Gloo was told that this is process {self._rank} of {self._size}, but was started as {here.rank} of "
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
        found: list[Any] = self._others().all_reduce(np.asarray(values), mode).tolist()
        return found


class DistCommunicator:
    """`fluid.communicator.Communicator` of a program's description (`fluid.core.DistCommunicator`).

    Args:
        mode: SYNC, ASYNC or HALF_ASYNC.
        program: the description of a trainer's program.
        scope: accepted; steps use the scope that they run in.
        envs: options as text.

    Raises:
        EnforceNotMet: another mode. What GEO exchanges, its description does not say: use Communicator.
    """

    def __init__(self, mode: str, program: ProgramDesc, scope: Scope, envs: Mapping[str, str]) -> None:
        if mode not in ("SYNC", "ASYNC", "HALF_ASYNC"):
            raise EnforceNotMet(
                f"DistCommunicator takes the mode SYNC, ASYNC or HALF_ASYNC, got {mode!r}; for GEO use "
                "fluid.communicator.Communicator"
            )
        self._communicator = Communicator(program._shown, getattr(DistributedMode, mode), envs=envs)

    def start(self) -> None:
        """Begin; RuntimeError if another one runs in this process."""
        self._communicator.start()

    def stop(self) -> None:
        """Send what is waiting, and end."""
        self._communicator.stop()

    def is_running(self) -> bool:
        return self._communicator.is_running()
