"""Ctrl-C while waiting, and the end of the process while readers run: in a process of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

SETUP = """
import numpy as np, sys, threading, time
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.framework import Program, program_guard
from fluidlite.reader import DataLoader, buffered, multiprocess_reader, xmap_readers
def endless():
    while True:
        yield (np.zeros((2, 3), 'float32'),)
def stuck():
    yield (np.zeros((2, 3), 'float32'),)
    time.sleep(60)
with program_guard(Program(), Program()):
    x = data('x', [None, 3], 'float32')
    loader = DataLoader.from_generator([x], capacity=2)
    other = DataLoader.from_generator([x], capacity=2, use_multiprocess=True)
"""


def start(script: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SETUP + script],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "wait",
    [
        "loader.set_batch_generator(stuck, CPUPlace())\nfor feed in loader: print('ready', flush=True)",
        "other.set_batch_generator(stuck, CPUPlace())\nfor feed in other: print('ready', flush=True)",
        "for item in buffered(stuck, 2)(): print('ready', flush=True)",
        "for item in xmap_readers(lambda a: a, stuck, 2, 2, True)(): print('ready', flush=True)",
        "for item in multiprocess_reader([stuck])(): print('ready', flush=True)",
        "for item in multiprocess_reader([stuck], False)(): print('ready', flush=True)",
    ],
)
def test_ctrl_c_while_waiting(wait: str) -> None:
    process = start(wait)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - begin < 5
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors


@pytest.mark.parametrize("use_pipe", [True, False])
def test_ctrl_c_that_does_not_end_the_wait_is_seen_soon(use_pipe: bool) -> None:
    """One that comes just before the system call does not end it, and no more does one that another thread gets."""
    process = start(
        f"""
import signal
other_thread = threading.Thread(target=time.sleep, args=(100,), daemon=True)
other_thread.start()
samples = multiprocess_reader([stuck], {use_pipe})()
next(samples)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print('ready', flush=True)
next(samples)"""
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.2)  # it waits now
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors


@pytest.mark.parametrize("loader", ["loader", "other"])
def test_ctrl_c_while_an_epoch_is_let_go(loader: str) -> None:
    process = start(
        f"""
import os, signal
{loader}.set_batch_generator(stuck, CPUPlace())
epoch = iter({loader})
next(epoch)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    del epoch  # waits for half a second
    threading.Event().wait(15)
except KeyboardInterrupt:
    {loader}.set_batch_generator(lambda: [(np.zeros((2, 3), 'float32'),)], CPUPlace())
    print(len(list({loader})))
"""
    )
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out, errors) == (0, "1\n", "")


@pytest.mark.parametrize(
    "leave",
    [
        "loader.set_batch_generator(endless, CPUPlace())\nepoch = iter(loader); next(epoch)",
        "loader.set_batch_generator(stuck, CPUPlace())\nepoch = iter(loader); next(epoch)",
        "other.set_batch_generator(endless, CPUPlace())\nepoch = iter(other); next(epoch)",
        "other.set_batch_generator(stuck, CPUPlace())\nepoch = iter(other); next(epoch)",
        "a = buffered(endless, 2)(); next(a); b = xmap_readers(lambda a: a, endless, 3, 2)(); next(b)",
        "a = multiprocess_reader([endless, stuck])(); next(a)",
        "a = multiprocess_reader([endless, stuck], False)(); next(a)",
    ],
)
def test_the_process_ends_while_readers_run(leave: str) -> None:
    begin = time.monotonic()
    process = start(leave + "\nprint('done')")
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out, errors) == (0, "done\n", "")
    assert time.monotonic() - begin < 10


def test_the_process_ends_though_its_workers_do_not() -> None:
    """Some are stopped, which signals do not reach, others ignore the one that asks them to end."""
    process = start(
        """
import multiprocessing, os, signal
def deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield (np.zeros((2, 3), 'float32'),)
    time.sleep(60)
samples = multiprocess_reader([endless] * 4)()
next(samples)
stopped = multiprocessing.active_children()
other.set_batch_generator(deaf, CPUPlace())
epoch = iter(other)
next(epoch)
for process in stopped:
    os.kill(process.pid, signal.SIGSTOP)
print('done')"""
    )
    try:
        assert process.communicate(timeout=30) == ("done\n", "") and process.returncode == 0
    finally:
        process.kill()


@pytest.mark.parametrize("reader", ["endless", "stuck"])
def test_workers_end_when_their_parent_is_killed(reader: str) -> None:
    process = start(
        f"other.set_batch_generator({reader}, CPUPlace())\n"
        "epoch = iter(other); next(epoch); print('ready', flush=True); time.sleep(100)"
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    begin = time.monotonic()
    assert process.stdout.read() == ""  # the worker has the other end of this pipe too
    assert time.monotonic() - begin < 5
    process.communicate()


def test_too_little_shared_memory_is_reported_once_and_batches_are_copied() -> None:
    process = start(
        """
import resource, warnings
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
def big():
    for i in range(5):
        yield (np.full((200_000, 3), i, "float32"),)
other.set_batch_generator(big, CPUPlace())
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as told:
    for epoch in range(2):
        print([feed[0]["x"].array.mean().item() for feed in other], other.stats()["bytes"])
print(len(told), told[0].category.__name__, told[0].message)
"""
    )
    out, errors = process.communicate(timeout=30)
    assert errors == ""
    first, second, reported = out.splitlines()
    assert first == "[0.0, 1.0, 2.0, 3.0, 4.0] 12000000" and second.startswith("[0.0, 1.0, 2.0, 3.0, 4.0]")
    assert reported.startswith("1 RuntimeWarning worker 0 of 1 of the DataLoader of big()")
    assert "2.6 MB are needed" in reported and "0.9 MB are available" in reported
