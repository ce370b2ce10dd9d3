"""Processes that are started one by one, with Fluid's variables alone, and find each other."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fluidlite.distributed import environment, joining
from fluidlite.distributed.communicator import DistributedError

from .ranks import HERE, needs_mpi
from .ranks import environment as of_a_run

TOGETHER = """
import numpy as np
from fluidlite.distributed import world
run = world()
run.begin_step()
total, ranks = run.all_reduce(np.arange(3.0) + run.rank), run.all_gather(np.array([run.rank]))
print(run.rank, run.size, total.tolist(), ranks.tolist())
"""


@pytest.fixture
def folder():
    """A folder with a short name, as sockets need it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        yield made


def start(rank, arguments, endpoints, folder):
    """Process `rank`, as a shell or somebody's own launcher would start it."""
    variables = {
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_TRAINERS_NUM": str(len(endpoints)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
        "TMPDIR": folder,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "fluidlite", *arguments],
        env={**of_a_run(), **variables},
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    """The output of a process, its errors and its exit status."""
    try:
        out, printed = process.communicate(timeout=120)
    finally:
        process.kill()
    return out, printed, process.returncode


@needs_mpi
def test_they_are_the_processes_of_a_run(folder):
    endpoints = ["127.0.0.1:6190", "127.0.0.1:6191", "127.0.0.1:6192"]
    processes = [start(rank, ["-c", TOGETHER], endpoints, folder) for rank in (2, 0, 1)]
    for rank, process in zip((2, 0, 1), processes, strict=True):
        out, printed, status = ended(process)
        assert status == 0, printed
        assert out == f"{rank} 3 [3.0, 6.0, 9.0] [0, 1, 2]\n"
    assert list(Path(folder).glob("fluidlite-*/*")) == []


@needs_mpi
@pytest.mark.parametrize("way", ["raises", "killed"])
def test_all_end_when_one_fails(way, folder):
    endpoints = ["127.0.0.1:6193", "127.0.0.1:6194"]
    left, gone = (start(rank, ["failing.py", way], endpoints, folder) for rank in (0, 1))
    _, printed, status = ended(gone)
    if way == "raises":
        assert re.search(r"fluidlite: rank 1 failed on \S+ in step 3: ValueError: this one is wrong", printed)
    assert status == (1 if way == "raises" else -signal.SIGKILL)
    _, printed, status = ended(left)
    assert status != 0
    assert "rank 0 is ended, since another process of the run has failed" in printed


@needs_mpi
def test_ctrl_c_ends_one_that_waits(folder):
    endpoints = ["127.0.0.1:6195", "127.0.0.1:6196"]
    soon = "from fluidlite.distributed import joining; joining._TELL_AFTER = 0.1"
    process = start(0, ["-c", soon + TOGETHER], endpoints, folder)
    assert process.stderr.readline() == "fluidlite: rank 0 waits for rank 1\n"
    process.send_signal(signal.SIGINT)
    _, printed, status = ended(process)
    assert status == 130 and "interrupted" in printed
    seats = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not [line for line in seats.splitlines() if "seat.py" in line and folder in line]


@pytest.mark.parametrize("endpoints", [[], ["10.1.2.3:6170"], ["10.1.2.3:6170", "10.1.2.4:6170"]])
def test_processes_of_several_machines_are_left_to_mpiexec(endpoints):
    here = environment.Trainer(0, 2, endpoints, "")
    with pytest.raises(
        DistributedError, match="find each other by PADDLE_TRAINER_ENDPOINTS if all are of this machine"
    ):
        joining.join(here)


def test_a_folder_of_others_is_refused(folder, monkeypatch):
    monkeypatch.setattr(joining.tempfile, "gettempdir", lambda: folder)
    inside = Path(folder) / f"fluidlite-{os.getuid()}"
    inside.mkdir()
    inside.chmod(0o777)
    with pytest.raises(DistributedError, match="permissions than 0700: remove it"):
        joining.join(environment.Trainer(0, 2, ["127.0.0.1:6197", "127.0.0.1:6198"], "127.0.0.1:6197"))
