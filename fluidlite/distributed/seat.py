"""What mpiexec starts in the place of a process that somebody else has started (see `joining`): a script by itself.

usage: seat.py PLACE. It hands what mpiexec has told it over to the process that comes to the socket PLACE.RANK, once
there is one for every rank, and ends with it: with status 1 if that has not said that all is well, whereupon mpiexec
ends the others.
"""

import json
import os
import select
import socket
import sys
import time
from contextlib import suppress

PATIENCE = 600.0
"""For how many seconds a process is waited for."""

_TOLD = ("OMPI_", "PMIX_", "PRTE_", "PMI_")


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
        with suppress(OSError):  # it may not wait any longer
            process.sendall(b"+")
            while process.recv(64):
                continue
    return 0 if well else 1


def _keep(process: socket.socket, place: str, count: int) -> bool:
    """Whether the process has said that all is well."""
    until = time.monotonic() + PATIENCE
    while not all(os.path.exists(f"{place}.{other}.taken") for other in range(count)):
        if select.select([process], [], [], 0.02)[0] or time.monotonic() > until:
            return False  # it is gone
    process.sendall(json.dumps({k: v for k, v in os.environ.items() if k.startswith(_TOLD)}).encode() + b"\n")
    return process.recv(1) != b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
