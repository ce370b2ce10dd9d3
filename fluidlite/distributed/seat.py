"""A script that mpiexec starts as placeholder of a process that was started by other means (see `joining`).

usage: seat.py PLACE. It passes the environment variables of mpiexec to the process that connects to the socket
PLACE.RANK, once there is one for every rank, and ends with it: with status 1 if that has not reported success; then
mpiexec ends the others.
"""

import json
import os
import select
import socket
import sys
import time
from contextlib import suppress

PATIENCE = 600.0
"""Seconds to wait for a process."""

_PREFIXES = ("OMPI_", "PMIX_", "PRTE_", "PMI_")


def main(place: str) -> int:
    rank, count = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    path = f"{place}.{rank}"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(1)
        door.settimeout(PATIENCE)
        process, _ = door.accept()
    os.rename(path, f"{path}.taken")
    try:
        well = _keep(process, place, count)
    finally:
        os.unlink(f"{path}.taken")
    if well:
        with suppress(OSError):  # it may have stopped waiting
            process.sendall(b"+")
            while process.recv(64):
                continue
    return 0 if well else 1


def _keep(process: socket.socket, place: str, count: int) -> bool:
    """Serve the process until it ends; returns True if it has reported success."""
    until = time.monotonic() + PATIENCE
    while not all(os.path.exists(f"{place}.{other}.taken") for other in range(count)):
        if select.select([process], [], [], 0.02)[0] or time.monotonic() > until:
            return False  # it has ended, or the others did not come
    process.sendall(
        json.dumps({k: v for k, v in os.environ.items() if k.startswith(_PREFIXES)}).encode() + b"\n"
    )
    return process.recv(1) != b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
