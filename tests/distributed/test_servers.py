"""Parameter servers and workers in processes of their own, started by Fluid's command."""

import ast
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("grpc", reason="parameter servers need grpcio")

import fluidlite as fluid
from fluidlite.distributed.rpc import Message
from fluidlite.distributed.rpc.client import Client
from fluidlite.executor.tensor_files import read_tensors

from ..rpc.ports import free_port
from . import served
from .ranks import HERE, environment


def launched(*words, servers=2, workers=2, options=()):
    endpoints = ",".join(f"127.0.0.1:{free_port()}" for _ in range(servers))
    command = [
        sys.executable, "-m", "fluidlite", "-m", "paddle.distributed.launch_ps", "--endpoints", endpoints,
    ]  # fmt: skip
    command += ["--worker_num", str(workers), *options, "served.py", *map(str, words)]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=120, check=False, cwd=HERE
    )


def losses(text):
    found = [line.split(" LOSSES ")[1].split(" ", 1) for line in text.splitlines() if " LOSSES " in line]
    return [ast.literal_eval(values) for _, values in sorted(found)]


def alone(model):
    """The losses of one process with the whole batches."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss = served.loss_of(getattr(served, model))
        fluid.optimizer.Adam(0.01, lazy_mode=True).minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        got = [float(exe.run(main, feed=feed, fetch_list=[loss])[0].item()) for feed in served.batches(0, 8)]
        return got, np.array(scope.find_var("emb").get_tensor())


@pytest.mark.parametrize("model", ["clicks", "words"])
def test_two_workers_train_as_one_does(model, tmp_path):
    done = launched(model, "sync", "saves", tmp_path)
    assert done.returncode == 0, done.stderr
    expected, table = alone(model)
    np.testing.assert_allclose(np.mean(losses(done.stdout), axis=0), expected, atol=1e-5)
    with open(tmp_path / "emb", "rb") as file:
        saved = read_tensors(file, ["emb"], tmp_path / "emb")["emb"].array
    np.testing.assert_allclose(saved, table, atol=1e-5)
    assert (tmp_path / "emb_moment1_0").exists()


def test_a_worker_that_dies_is_named_by_all(tmp_path):
    done = launched("clicks", "sync", "dies", tmp_path / "died")
    assert done.returncode == 9
    assert done.stderr.splitlines()[-1] == "fluidlite: worker 1 died of signal 9 (SIGKILL)"
    assert done.stderr.count("has lost trainer 1 of 2; the last step that it reported is") >= 3


def test_without_barriers_a_worker_is_restarted_alone(tmp_path):
    done = launched("clicks", "half_async", "dies", tmp_path / "died", servers=1, options=["--restart", "1"])
    assert done.returncode == 0, done.stderr
    assert "worker 1 died of signal 9 (SIGKILL) and is restarted" in done.stderr
    assert "has lost trainer 1 of 2" in done.stderr
    assert [len(one) for one in losses(done.stdout)] == [served.STEPS] * 2


def test_a_server_that_is_killed_is_named_and_all_go_on_from_what_was_saved(tmp_path):
    done = launched("clicks", "sync", "resumes", tmp_path, options=["--restart", "1"])
    assert done.returncode == 0, done.stderr
    printed = done.stderr.splitlines()
    killed = printed.index("fluidlite: server 0 died of signal 9 (SIGKILL)")
    assert printed[killed + 1] == "fluidlite: all are restarted"
    lost = r"\[worker 0\] .*ServerLost: .*trainer 0 has lost parameter server 127.0.0.1:\d+ at step 3, in a request"
    assert any(re.match(lost, line) for line in printed)
    words = [line.split() for line in done.stdout.splitlines() if " LOSS " in line]
    found = {(worker, int(step)): float(loss) for _, worker, _, step, loss in words}
    together = [np.mean([found[worker, step] for worker in ("0]", "1]")]) for step in range(served.STEPS)]
    np.testing.assert_allclose(together, alone("clicks")[0], rtol=0, atol=1e-5)
    assert [len(one) for one in losses(done.stdout)] == [2, 2]


def test_without_barriers_a_server_is_restarted_alone(tmp_path):
    """It begins with what was saved last; its workers wait for it, and go on."""
    done = launched("clicks", "half_async", "resumes", tmp_path, options=["--restart", "1"])
    assert done.returncode == 0, done.stderr
    assert "fluidlite: server 0 died of signal 9 (SIGKILL) and is restarted" in done.stderr
    assert "all are restarted" not in done.stderr
    assert re.search(
        r"\[worker 0\] fluidlite: trainer 0 has lost parameter server .* waits for it to come back",
        done.stderr,
    )
    assert [len(one) for one in losses(done.stdout)] == [served.STEPS] * 2
    beginnings = re.findall(r"\[server 0\] BEGINS WITH (\S+)", done.stdout)
    assert len(beginnings) == 2 and float(beginnings[0]) == pytest.approx(0.1) != float(beginnings[1])


def test_ctrl_c_ends_servers_and_workers(tmp_path):
    """The launcher alone hears of it, as of one that a script sends."""
    script = tmp_path / "waits.py"
    script.write_text("import os, time\nprint('PID', os.getpid())\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "fluidlite", "-m", "paddle.distributed.launch_ps"]
    command += ["--worker_num", "1", "--server_num", "1", str(script)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as run:
        pids = []
        while len(pids) < 2:
            line = run.stdout.readline()
            if "PID" in line:
                assert line.startswith(("[server 0] ", "[worker 0] "))
                pids.append(int(line.split()[-1]))
        run.send_signal(signal.SIGINT)
        assert run.wait(30) == 130
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_server_that_waits_does_not_keep_its_process():
    port = free_port()
    code = (
        "import sys, time\n"
        "from fluidlite.distributed.rpc.transport import Listener\n"
        f"Listener('127.0.0.1:{port}', 4, lambda data: time.sleep(60), lambda n: None, lambda n: None)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        line = Client(0)
        line._begin(f"127.0.0.1:{port}", Message("get"))
        process.stdin.close()
        assert process.wait(30) == 0
