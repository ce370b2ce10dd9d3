"""`fluidlite launch`: a script in several processes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ...base.errors import NotSupportedError
from ...distributed.environment import FIRST_PORT
from ...distributed.launching import LaunchError, launch, read_hosts


def start_processes(args: list[str]) -> int:
    """Run `fluidlite launch` with these arguments; returns the exit status."""
    parser = argparse.ArgumentParser(
        "fluidlite launch",
        usage="fluidlite launch [options] (SCRIPT | -m MODULE) [ARGS]",
        description="Run a script in several processes that train together.",
    )
    parser.add_argument(
        "-n", type=int, metavar="PROCESSES", help="how many; by default all that the hosts have"
    )
    parser.add_argument("--hosts", metavar="FILE", help="machines to run on, a line each: HOST slots=N")
    parser.add_argument("--port", type=int, default=FIRST_PORT, help="of the addresses that the script sees")
    parser.add_argument("--log_dir", help="where workerlog.N gets what process N prints")
    parser.add_argument(
        "--restart",
        type=int,
        default=0,
        metavar="N",
        help="start all again, N times at most, when one has failed",
    )
    options, words = _divided(args)
    given = parser.parse_args(options)
    try:
        if given.hosts is not None:
            hosts = read_hosts(given.hosts, given.n)
        elif given.n is not None:
            hosts = ["127.0.0.1"] * given.n
        else:
            raise LaunchError("say how many processes to start, by -n, or where, by --hosts")
        if not words:
            raise LaunchError("no script was given")
        return launch(fluidlite_command(words), hosts, given.port, given.log_dir, restarts=given.restart)
    except (LaunchError, NotSupportedError, OSError) as error:
        print(f"fluidlite launch: {error}", file=sys.stderr)
        return 2


def _divided(args: list[str]) -> tuple[list[str], list[str]]:
    """The options, and the script (or `-m MODULE`) with its arguments."""
    at = 0
    while at < len(args) and args[at].startswith("-") and args[at] not in ("-m", "-"):
        at += 1 if "=" in args[at] or args[at] in ("-h", "--help") else 2
    return args[:at], args[at:]


def fluidlite_command(words: Sequence[str]) -> list[str]:
    """The command line of one process that runs a script."""
    return [sys.executable, "-u", "-m", "fluidlite", *words]
