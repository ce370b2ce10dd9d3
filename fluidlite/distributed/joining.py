"""Joins processes that were started one by one, with Fluid's environment variables, to a run of MPI.

MPI needs processes that mpiexec has started. So the first process runs mpiexec to start a *seat* for every process
(`seat.py`), a placeholder that passes on the environment variables of mpiexec and runs as long as its process:

    python train.py (rank 0) ---- starts ----> mpiexec
          |                                      |
          +------- socket of rank 0 ------- seat of rank 0
    python train.py (rank 1) ------ 1 ----- seat of rank 1

When a process ends without reporting success, its seat fails, mpiexec ends the other seats, and these end their
processes. All processes must be on one machine.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from .communicator import DistributedError
from .environment import Trainer
from .launching import mpiexec
from .seat import PATIENCE

_TELL_AFTER = 5.0
_PAUSE = 0.02
_GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL."""

_HERE = ("127.0.0.1", "localhost", "0.0.0.0")


def join(here: Trainer) -> None:
    """Connect to this process's seat, and set the environment variables that MPI needs.

    Waits for all PADDLE_TRAINERS_NUM processes. Raises DistributedError if they are not all on this machine, do not
    come in time, or if mpiexec fails.
    """
    hosts = {endpoint.rpartition(":")[0] for endpoint in here.endpoints}
    if len(here.endpoints) != here.count or len(hosts) > 1 or not _is_here(next(iter(hosts))):
        raise DistributedError(
            f"{here.count} processes that were started one by one find each other by PADDLE_TRAINER_ENDPOINTS if all "
            f"are of this machine, got {','.join(here.endpoints) or 'nothing'}: start them with "
            f"`fluidlite launch -n {here.count} [--hosts FILE] SCRIPT`"
        )
    place = _place(here.endpoints)
    starter = _start(place, here.count) if here.rank == 0 else None
    seat = _sit(place, here, starter)
    os.register_at_fork(after_in_child=seat.close)
    watch = threading.Thread(target=_stay, args=(seat, here.rank), name="fluidlite-seat", daemon=True)
    watch.start()
    atexit.register(_leave, seat, watch, place, here.rank, os.getpid())


def _is_here(host: str) -> bool:
    if host in _HERE or host == socket.gethostname():
        return True
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))  # only addresses of this machine can be bound
        except OSError:
            return False
    return True


def _place(endpoints: list[str]) -> str:
    """The path of the sockets of a run, without the rank, in a folder with permissions for this user only."""
    folder = Path(tempfile.gettempdir()) / f"fluidlite-{os.getuid()}"
    if len(str(folder)) > 64:
        folder = Path("/tmp") / folder.name  # the path of a socket has at most 107 characters
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise DistributedError(f"{folder} has another owner or permissions than 0700: remove it")
    return str(folder / hashlib.sha256(",".join(endpoints).encode()).hexdigest()[:16])


def _start(place: str, count: int) -> subprocess.Popen[bytes]:
    """Start mpiexec with the seats; its output goes to `place`.log."""
    for left in Path(place).parent.glob(f"{Path(place).name}.*"):
        left.unlink()
    environment = dict(os.environ)
    command = mpiexec(["127.0.0.1"] * count, {}, environment)
    with open(f"{place}.log", "wb") as log:
        return subprocess.Popen(
            [*command, sys.executable, "-I", "-S", str(Path(__file__).with_name("seat.py")), place],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that Ctrl-C reaches only the processes
        )


def _sit(place: str, here: Trainer, starter: subprocess.Popen[bytes] | None) -> socket.socket:
    """Connect to the seat of this process, and wait until all processes have theirs."""
    begin, printed = time.monotonic(), False
    seat = socket.socket(socket.AF_UNIX)
    seat.settimeout(_PAUSE)
    said, sitting = b"", False
    while not said.endswith(b"\n"):
        if starter is not None and starter.poll() is not None:
            raise DistributedError(
                f"mpiexec failed: {Path(f'{place}.log').read_text(errors='replace').strip()}"
            )
        if time.monotonic() - begin > _TELL_AFTER and not printed:
            printed = True
            print(
                f"fluidlite: rank {here.rank} waits for {_missing(place, here)}", file=sys.stderr, flush=True
            )
        if time.monotonic() - begin > PATIENCE:
            raise DistributedError(
                f"rank {here.rank} has waited {PATIENCE:.0f} s for {_missing(place, here)}"
            )
        try:
            if not sitting:
                seat.connect(f"{place}.{here.rank}")
                sitting = True
            received = seat.recv(65536)
        except TimeoutError:
            continue
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(_PAUSE)
            continue
        if not received:
            raise DistributedError(f"the run ended while rank {here.rank} waited for {_missing(place, here)}")
        said += received
    seat.settimeout(None)
    os.environ.update(json.loads(said))
    return seat


def _missing(place: str, here: Trainer) -> str:
    ranks = [k for k in range(here.count) if k != here.rank and not os.path.exists(f"{place}.{k}.taken")]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks)) or '0'}"


def _stay(seat: socket.socket, rank: int) -> None:
    """In a thread: end this process when mpiexec ends its seat.

    Returns when the seat has received the report of success.
    """
    with suppress(OSError):
        seat.recv(1)
    if _left.is_set():
        return
    print(
        f"fluidlite: rank {rank} is ended, since another process of the run has failed",
        file=sys.stderr,
        flush=True,
    )
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


_left = threading.Event()


def _leave(seat: socket.socket, watch: threading.Thread, place: str, rank: int, owner: int) -> None:
    """Report success to the seat, which answers when it has cleaned up.

    The connection stays open until the process ends: mpi4py finalizes MPI after Python has freed its objects, and
    that needs mpiexec, which ends with the last seat.
    """
    if os.getpid() == owner:
        _left.set()
        with suppress(OSError):
            seat.sendall(b"+")
            watch.join(_GRACE)
        seat.detach()
        with suppress(OSError):
            if rank == 0:
                os.unlink(f"{place}.log")
