"""`paddle.distributed.spawn`: a function in several processes."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing import spawn as spawning
from pathlib import Path
from typing import Any

from ...base.errors import NotSupportedError
from ...distributed import DistributedError
from ...distributed.environment import FIRST_PORT
from ...distributed.launching import launch
from .command_line import fluidlite_command


def spawn(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = -1,
    join: bool = True,
    daemon: bool = False,
    **options: Any,
) -> None:
    """Call `func(*args)` in `nprocs` processes, and wait for their end (`paddle.distributed.spawn`).

    Args:
        func: a function of a module or of the script, whose own part stands under `if __name__ == "__main__":`.
        args: what it gets; goes to the processes as `pickle` has it.
        nprocs: how many; -1: one for each core that this process may use.
        join: True: processes without a join are not supported.
        daemon: accepted and without effect: they end with this process.
        options: `started_port`, of the addresses that they see.

    Raises:
        DistributedError: one of them failed, and the others were ended.
        NotSupportedError: without MPI, or with join=False.
    """
    if not join:
        raise NotSupportedError("spawn waits for its processes here: leave join=False away")
    count = len(os.sched_getaffinity(0)) if nprocs == -1 else nprocs
    if count < 1:
        raise ValueError(f"nprocs must be -1, or 1 and more, got {nprocs}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "call")
        described = {**spawning.get_preparation_data("rank")}
        described.pop("authkey", None)  # for pipes, which are not used
        path.write_bytes(pickle.dumps(described) + pickle.dumps((func, tuple(args))))
        command = fluidlite_command(["-m", f"{__package__}.spawned", str(path)])
        status = launch(command, ["127.0.0.1"] * count, int(options.get("started_port") or FIRST_PORT))
    if status:
        raise DistributedError(
            f"one of {count} processes that were spawned failed (status {status}): see above"
        )
    sys.stdout.flush()
