"""`fluidlite launch`: a script in several processes."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from ...base.errors import NotSupportedError
from ...distributed.environment import FIRST_PORT
from ...distributed.launching import LaunchError, launch, read_hosts


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
