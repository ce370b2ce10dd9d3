"""Scripts and functions in several processes: `fluidlite launch`, `paddle.distributed.spawn`.

Run as a module it calls, in a process of `spawn`, what is pickled in the file that it is given.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from multiprocessing import spawn as spawning
from pathlib import Path
from typing import Any

from ...base.errors import NotSupportedError
from ...distributed import DistributedError
from ...distributed.environment import FIRST_PORT
from ...distributed.launching import LaunchError, launch, read_hosts


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
        command = fluidlite_command(["-m", f"{__package__}.spawning", str(path)])
        status = launch(command, ["127.0.0.1"] * count, int(options.get("started_port") or FIRST_PORT))
    if status:
        raise DistributedError(
            f"one of {count} processes that were spawned failed (status {status}): see above"
        )
    sys.stdout.flush()


def main() -> None:
    """Read the script's module, then the call, as processes of `multiprocessing` do."""
    with Path(sys.argv[1]).open("rb") as file:
        spawning.prepare(pickle.load(file))
        function, args = pickle.load(file)
    function(*args)


def start_processes(given: Namespace) -> int:
    """Run `fluidlite launch`; returns the exit status."""
    words = given.words if given.module is None else ["-m", given.module, *given.words]
    try:
        if given.hosts is not None:
            hosts = read_hosts(given.hosts, given.n)
        elif given.n is not None:
            hosts = ["127.0.0.1"] * given.n
        else:
            raise LaunchError("say how many processes to start, by -n, or where, by --hosts")
        if not words:
            raise LaunchError("no script was given")
        port = FIRST_PORT if given.port is None else given.port
        return launch(fluidlite_command(words), hosts, port, given.log_dir, restarts=given.restart)
    except (LaunchError, NotSupportedError, OSError) as error:
        print(f"fluidlite launch: {error}", file=sys.stderr)
        return 2


def fluidlite_command(words: Sequence[str]) -> list[str]:
    """The command line of one process that runs a script."""
    return [sys.executable, "-u", "-m", "fluidlite", *words]


if __name__ == "__main__":
    main()
