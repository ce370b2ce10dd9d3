"""Launching processes, their output, and the end of all when one fails."""

import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fluidlite.__main__ import main
from fluidlite.base.errors import NotSupportedError
from fluidlite.distributed import environment, launching

from . import networks
from .ranks import HERE, launch, needs_mpi
from .ranks import environment as of_a_run

GONE = (
    r"\[0\] fluidlite: rank 1 on \S+ has ended, and rank 0 waits for it in step 3; "
    "the last step that it reported is 2"
)


@needs_mpi
@pytest.mark.parametrize(
    "way, last",
    [
        (
            "raises",
            r"fluidlite: rank 1 failed on \S+ in step 3, and the others were ended: ValueError: this one is wrong",
        ),
        (
            "killed",
            r"fluidlite: rank 1 on \S+ died of signal 9 \(Killed\), and the others were ended; the last step that it "
            "reported is 2",
        ),
        ("leaves", GONE),
        ("leaves, beside", GONE),
    ],
)
def test_errors_name_the_process_that_has_ended(way, last):
    done = launch("failing.py", way)
    assert done.returncode != 0
    assert f"[1] rank 1 of 2: 127.0.0.1:6171 {way}" in done.stdout.splitlines()
    printed = done.stderr.splitlines()
    if way.startswith("leaves"):
        assert any(re.fullmatch(last, line) for line in printed)
        return
    assert re.fullmatch(last, printed[-1])
    if way == "raises":
        assert printed[-2] == "ValueError: this one is wrong" and printed[-3].strip().startswith(
            "raise ValueError"
        )
        assert any(line.startswith("[1] Traceback") for line in printed)


@needs_mpi
def test_a_process_that_is_stopped_is_lost():
    done = launch("failing.py", "stopped")
    assert done.returncode != 0
    printed = done.stderr.splitlines()
    stopped = r"rank 1 on \S+ is stopped, and {}; the last step that it reported is 2"
    assert any(
        re.fullmatch(r"\[0\] fluidlite: " + stopped.format("rank 0 waits for it in step 3"), line)
        for line in printed
    )
    assert re.fullmatch("fluidlite: " + stopped.format("all were ended"), printed[-1])
    begin, end = (float(re.search(rf"{word} at ([\d.]+)", done.stdout)[1]) for word in ("stops", "heard"))
    assert 1 < end - begin < 5


@needs_mpi
def test_a_restarted_run_resumes_from_its_checkpoint(tmp_path):
    done = launch("--restart", "1", "resumed.py", tmp_path / "saved")
    assert done.returncode == 0, done.stderr
    printed = done.stderr.splitlines()
    killed = next(at for at, line in enumerate(printed) if line.startswith("fluidlite: rank 1 on "))
    assert re.search(
        r"died of signal 9 \(Killed\).* the last step that it reported is [23]$", printed[killed]
    )
    assert printed[killed + 1] == "fluidlite: all are restarted"
    words = [line.split() for line in done.stdout.splitlines() if " LOSS " in line]
    steps = [int(step) for rank, _, step, _ in words if rank == "[1]"]
    assert steps[:3] == [0, 1, 2] and steps[-2:] == [3, 4] and 5 <= len(steps) <= 6
    found = {(rank, int(step)): float(value) for rank, _, step, value in words}
    together = [np.mean([found[rank, step] for rank in ("[0]", "[1]")]) for step in (0, 1, 3, 4)]
    expected = networks.train("lenet")
    np.testing.assert_allclose(together, [expected[step] for step in (0, 1, 3, 4)], rtol=0, atol=1e-5)


@needs_mpi
def test_ctrl_c_is_handed_on():
    run = subprocess.Popen(
        [sys.executable, "-m", "fluidlite", "launch", "-n", "2", "failing.py", "interrupted"],
        env=of_a_run(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE,
    )  # fmt: skip
    assert run.stdout is not None
    while "waiting" not in run.stdout.readline():
        pass
    begin = time.monotonic()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)
    assert run.returncode == 130 and time.monotonic() - begin < 20


def fluids_command(*words):
    return subprocess.run(
        [sys.executable, "-m", "fluidlite", "-m", "paddle.distributed.launch", *words],
        env=of_a_run(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@needs_mpi
@pytest.mark.parametrize(
    "which",
    [["--selected_gpus=0,1"], ["--nproc_per_node=2", "--cluster_node_ips=127.0.0.1", "--node_ip=127.0.0.1"]],
)
def test_fluids_command(tmp_path, which):
    """`python -m paddle.distributed.launch` with Fluid's options; each process has a log."""
    script = tmp_path / "shows.py"
    script.write_text(
        "import os, sys\n"
        "names = ['PADDLE_TRAINER_ID', 'PADDLE_TRAINERS_NUM', 'PADDLE_CURRENT_ENDPOINT', 'TRAINING_ROLE']\n"
        "print(*(os.environ[name] for name in names), *sys.argv[1:])\n"
    )
    logs_to = f"--log_dir={tmp_path / 'logs'}"
    done = fluids_command(*which, "--started_port=7000", logs_to, str(script), "--a", "1")
    assert done.returncode == 0, done.stderr
    assert "started_port: 7000" in done.stdout
    logs = [(tmp_path / "logs" / f"workerlog.{rank}").read_text() for rank in range(2)]
    assert logs == [f"{rank} 2 127.0.0.1:{7000 + rank} TRAINER --a 1\n" for rank in range(2)]


def test_fluids_command_on_other_machines():
    """The first of several machines starts the processes of all."""
    words = ["--cluster_node_ips=10.1.2.3,10.1.2.4", "--nproc_per_node=2"]
    done = fluids_command(*words, "--node_ip=10.1.2.4", "train.py")
    assert done.returncode == 0 and "the first machine, 10.1.2.3, starts the processes of all" in done.stderr
    done = fluids_command(*words, "--node_ip=10.1.2.5", "train.py")
    assert done.returncode == 2
    assert "node_ip 10.1.2.5 is not among cluster_node_ips ['10.1.2.3', '10.1.2.4']" in done.stderr


def test_one_process_needs_no_mpi(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    found = {}

    def follow(self, command, environment):
        found.update(environment)
        return 0

    monkeypatch.setattr(launching._Run, "follow", follow)
    assert launching.launch(["script"], ["127.0.0.1"]) == 0
    assert (found["PADDLE_TRAINER_ID"], found["PADDLE_TRAINERS_NUM"]) == ("0", "1")
    with pytest.raises(NotSupportedError, match=r"pip install 'fluidlite\[mpi\]'"):
        launching.launch(["script"], ["127.0.0.1"] * 2)


def test_files_of_hosts(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# machines\nfirst slots=2\nsecond\n\n")
    assert launching.read_hosts(str(path), None) == ["first", "first", "second"]
    assert launching.read_hosts(str(path), 2) == ["first", "first"]
    with pytest.raises(launching.LaunchError, match="room for 3 processes, but 4"):
        launching.read_hosts(str(path), 4)
    path.write_text("first slots=many")
    with pytest.raises(launching.LaunchError, match=r"hosts:1: expected HOST \[slots=N\]"):
        launching.read_hosts(str(path), None)


def test_several_machines(monkeypatch):
    monkeypatch.setattr(launching.shutil, "which", lambda *_, **__: "mpiexec")
    command = launching.mpiexec(["a", "a", "b"], {"PADDLE_TRAINERS_NUM": "3"}, {"PADDLE_TRAINERS_NUM": "3"})
    assert command[command.index("--host") + 1] == "a:2,b:1"
    assert command[-2:] == ["-x", "PADDLE_TRAINERS_NUM"]
    assert environment.default_endpoints(3, ["a", "a", "b"], 7000) == ["a:7000", "a:7001", "b:7000"]


@pytest.mark.parametrize(
    "words, printed",
    [(["train.py"], "how many"), (["-n", "2"], "no script"), (["-n", "0", "x.py"], "at least one process")],
)
def test_commands_that_make_no_sense(words, printed, capsys):
    assert main(["launch", *words]) == 2
    assert printed in capsys.readouterr().err


def test_what_mpiexec_says_becomes_fluids_environment():
    of_mpi = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    found = dict(of_mpi)
    environment.adopt(found)
    assert (found["PADDLE_TRAINER_ID"], found["PADDLE_TRAINERS_NUM"]) == ("1", "2")
    assert found["PADDLE_CURRENT_ENDPOINT"] == "127.0.0.1:6171" and found["TRAINING_ROLE"] == "TRAINER"
    found = {**of_mpi, "PADDLE_TRAINER_ID": "7"}
    environment.adopt(found)
    assert found["PADDLE_TRAINER_ID"] == "7" and "PADDLE_TRAINERS_NUM" not in found
    found = {**of_mpi, environment.LOCAL_GPUS: "4,5", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    environment.adopt(found)
    assert found["FLAGS_selected_gpus"] == "5"
    alone = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}
    environment.adopt(alone)
    assert len(alone) == 2
