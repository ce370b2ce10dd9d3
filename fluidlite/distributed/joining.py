"""Processes of a run that somebody has started one by one, with Fluid's variables in their environment.

MPI knows processes that mpiexec has started. So the first process has it start a *seat* for every process (`seat.py`),
which hands over what mpiexec has told it, and stays as long as the process whose place it keeps:

    python train.py (rank 0) ---- starts ----> mpiexec
          |                                      |
          +------- socket of rank 0 ------- seat of rank 0
    python train.py (rank 1) ------ 1 ----- seat of rank 1

When one process ends without having said that all is well, its seat fails, mpiexec ends the other seats, and they their
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
"""How many seconds a process has to end after SIGTERM."""

_HERE = ("127.0.0.1", "localhost", "0.0.0.0")


def join(here: Trainer) -> None:
    """Take this process's place among those that mpiexec knows: puts into the environment what MPI begins with.

    Waits for all of PADDLE_TRAINERS_NUM. Raises DistributedError if they are not all of this machine, do not come, or
    if mpiexec fails.
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
    """Where the sockets of a run are, but for the rank: in a folder that nobody else can look into."""
    folder = Path(tempfile.gettempdir()) / f"fluidlite-{os.getuid()}"
    if len(str(folder)) > 64:
        folder = Path("/tmp") / folder.name  # the path of a socket has at most 107 characters
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise DistributedError(f"{folder} belongs to somebody else, or others may write to it: remove it")
    return str(folder / hashlib.sha256(",".join(endpoints).encode()).hexdigest()[:16])


def _start(place: str, count: int) -> subprocess.Popen[bytes]:
    """Have mpiexec start the seats; what it says goes to `place`.log."""
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
            start_new_session=True,  # Ctrl-C is for the processes
        )


def _sit(place: str, here: Trainer, starter: subprocess.Popen[bytes] | None) -> socket.socket:
    """A connection to the seat of this process, when all processes have theirs."""
    begin, told = time.monotonic(), False
    seat = socket.socket(socket.AF_UNIX)
    seat.settimeout(_PAUSE)
    said, sitting = b"", False
    while not said.endswith(b"\n"):
        if starter is not None and starter.poll() is not None:
            raise DistributedError(
                f"mpiexec failed: {Path(f'{place}.log').read_text(errors='replace').strip()}"
            )
        if time.monotonic() - begin > _TELL_AFTER and not told:
            told = True
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
            found = seat.recv(65536)
        except TimeoutError:
            continue
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(_PAUSE)
            continue
        if not found:
            raise DistributedError(f"the run ended while rank {here.rank} waited for {_missing(place, here)}")
        said += found
    seat.settimeout(None)
    os.environ.update(json.loads(said))
    return seat


def _missing(place: str, here: Trainer) -> str:
    ranks = [k for k in range(here.count) if k != here.rank and not os.path.exists(f"{place}.{k}.taken")]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks)) or '0'}"


def _stay(seat: socket.socket, rank: int) -> None:
    """In a thread: end this process when its seat is ended, as mpiexec ends the processes that it has started.

    Returns when the seat has heard that all is well.
    """
    with suppress(OSError):
        seat.recv(1)
    if _left.is_set():
        return
    print(
        f"fluidlite: rank {rank} is ended, for another process of the run has failed",
        file=sys.stderr,
        flush=True,
    )
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


_left = threading.Event()


def _leave(seat: socket.socket, watch: threading.Thread, place: str, rank: int, owner: int) -> None:
    """Say that all is well; the seat answers when it has tidied up.

    The connection ends with the process: MPI itself has to end before.
    """
    if os.getpid() == owner:
        _left.set()
        with suppress(OSError):
            seat.sendall(b"+")
            watch.join(_GRACE)
            if rank == 0:
                os.unlink(f"{place}.log")
