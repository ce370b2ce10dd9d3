"""`WorkerPool`: batches from processes, their errors, their death, and leaks."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidlite.executor.lod_tensor import LoDTensor
from fluidlite.reader.worker.channel import PoolClosed, WorkerDied, WorkerDone, WorkerTimeout, WorkerTraceback
from fluidlite.reader.worker.pool import WorkerPool
from fluidlite.reader.worker.process import WorkerInfo, current_worker

from ..refusals import refuses


@pytest.fixture(autouse=True)
def no_descriptor_left() -> Iterator[None]:
    gc.collect()
    resource_tracker.ensure_running()  # Python keeps it from the first spawned process on
    before = os.listdir("/proc/self/fd")
    yield
    gc.collect()
    assert os.listdir("/proc/self/fd") == before


def echo(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, str]:
    for request in requests:
        yield info.id, request
    return f"bye from {info.id}"


def arrays(info: WorkerInfo, requests: Iterator[int]) -> Generator[Any, None, None]:
    for request in requests:
        yield np.full((300, 300), request, "float32")


def test_requests_and_answers_in_order() -> None:
    with WorkerPool(2, echo) as pool:
        for worker in (0, 1):
            for request in ("a", {"b": 1}):
                pool.send(worker, request)
            pool.finish(worker)
        assert [pool.receive(1), pool.receive(0), pool.receive(0), pool.receive(1)] == [
            (1, "a"),
            (0, "a"),
            (0, {"b": 1}),
            (1, {"b": 1}),
        ]
        with pytest.raises(WorkerDone) as done:
            pool.receive(1)
        assert (done.value.value, done.value.worker) == ("bye from 1", 1)
    refuses(lambda: pool.receive(0), PoolClosed)


def nested(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
    big = np.arange(100_000, dtype="float64").reshape(100, 1000)
    for _ in requests:
        yield {
            "list": [big, (big.T, big[::2, ::3])],
            "tensor": LoDTensor.wrap(big, [[0, 40, 100]]),
            "text": "x",
            "small": np.arange(3),
            "nothing": np.empty((0, 5)),
            "objects": np.array([None, "a"], dtype=object),
        }


@pytest.mark.parametrize("shared", [True, False])
def test_structures_arrive_as_they_were(shared: bool) -> None:
    big = np.arange(100_000, dtype="float64").reshape(100, 1000)
    with WorkerPool(1, nested, use_shared_memory=shared) as pool:
        pool.send(0, None)
        got = pool.receive(0)
        stats = pool.stats()
    first, (second, third) = got["list"]
    assert (
        np.array_equal(first, big) and np.array_equal(second, big.T) and np.array_equal(third, big[::2, ::3])
    )
    assert np.array_equal(got["tensor"].array, big) and got["tensor"].lod() == [[0, 40, 100]]
    assert got["text"] == "x" and got["small"].tolist() == [0, 1, 2] and got["nothing"].shape == (0, 5)
    assert got["objects"].tolist() == [None, "a"]
    assert stats["batches"] == 1 and (stats["bytes"] >= big.nbytes) == shared
    assert (stats["piped_bytes"] < 10_000) == shared


def test_arrays_stay_valid_while_they_are_held_and_after_the_pool_is_closed() -> None:
    with WorkerPool(1, arrays, ahead=2) as pool:
        held = []
        for i in range(12):
            pool.send(0, i)
            held.append(pool.receive(0))
    assert all((array == i).all() for i, array in enumerate(held))
    held[3][:] = -1
    assert (held[4] == 4).all() and (held[2] == 2).all()


def test_shared_memory_is_bounded_by_what_is_held() -> None:
    with WorkerPool(1, arrays, ahead=2) as pool:
        for i in range(40):
            pool.send(0, i)
            pool.send(0, i)
            assert (pool.receive(0) == i).all() and (pool.receive(0) == i).all()
        assert os.fstat(pool._workers[0].file).st_size < 5 * 360_000


def empty(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
    for request in requests:
        array = info.empty((200, 300), "float32")
        array[:] = request
        yield array
        del array


def test_arrays_made_in_shared_memory() -> None:
    with WorkerPool(1, empty) as pool:
        for i in range(10):
            pool.send(0, i)
            assert (pool.receive(0) == i).all()


def test_too_little_shared_memory_is_reported_once_and_batches_are_copied() -> None:
    with WorkerPool(1, arrays, name="a small pool", memory_limit=500_000) as pool:
        held = []
        with pytest.warns(
            RuntimeWarning, match=r"worker 0 of 1 of a small pool.* too small.* 0\.\d MB"
        ) as reported:
            for i in range(5):
                pool.send(0, i)
                held.append(pool.receive(0))
        assert len(reported) == 1
        assert all((array == i).all() for i, array in enumerate(held))
        assert pool.stats()["piped_bytes"] > 4 * 300 * 300 * 4 > pool.stats()["bytes"] > 0


def where(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
    here = current_worker()
    for _ in requests:
        yield (
            os.getpid(),
            here is info,
            info.num_workers,
            info.seed,
            random.random(),
            np.random.rand(),
            info.payload,
        )


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_know_who_they_are_and_draw_different_numbers(method: str) -> None:
    def drawn(seed: int) -> list[tuple]:
        with WorkerPool(2, where, "payload", seed=seed, method=method) as pool:
            for worker in (0, 1):
                pool.send(worker, None)
            return [pool.receive(worker) for worker in (0, 1)]

    first, second = drawn(5)
    assert first[0] != second[0] != os.getpid() and first[1:4] == (True, 2, 5) and second[1:4] == (True, 2, 6)
    assert len({*first[4:6], *second[4:6]}) == 4 and first[6] == "payload"
    if method == "fork":  # spawning takes long
        assert [worker[4:] for worker in drawn(5)] == [first[4:], second[4:]]
    assert current_worker() is None


def test_arrays_from_a_spawned_process() -> None:
    with WorkerPool(1, arrays, method="spawn") as pool:
        pool.send(0, 3)
        assert (pool.receive(0) == 3).all() and pool.stats()["bytes"] == 360_000


def test_a_payload_that_cannot_be_sent_to_a_spawned_process_is_reported() -> None:
    with pytest.raises(TypeError, match="a pool: what the workers run cannot be sent .*top of a module"):
        WorkerPool(2, lambda info, requests: iter(()), name="a pool", method="spawn")  # type: ignore[arg-type, return-value]


def test_worker_init_comes_first_and_its_error_is_raised() -> None:
    def init(worker: int) -> None:
        if worker == 1:
            raise FileNotFoundError(2, "no such disk", "/data")
        random.seed("mine")

    def run(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
        yield random.random()

    with WorkerPool(2, run, seed=0, worker_init=init) as pool:
        assert pool.receive(0) == random.Random("mine").random()
        with pytest.raises(FileNotFoundError, match="no such disk") as caught:
            pool.receive(1)
        assert caught.value.filename == "/data" and isinstance(caught.value.__cause__, WorkerTraceback)


class OddError(Exception):
    """Its message makes another one of it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"odd number {number}")
        self.number = number


def failing(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
    yield "good"
    raise OddError(7)


def test_an_error_comes_after_the_good_results_as_itself() -> None:
    with WorkerPool(1, failing) as pool:
        assert pool.receive(0) == "good"
        with pytest.raises(OddError, match="^odd number 7$") as caught:
            pool.receive(0)
        assert caught.value.number == 7 and "in failing" in str(caught.value.__cause__)


def unsendable(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
    yield [np.zeros(100_000), lambda: 1]


def test_a_batch_that_cannot_be_sent_is_an_error() -> None:
    with WorkerPool(1, unsendable) as pool, pytest.raises(Exception, match=r"pickle|local object"):
        pool.receive(0)


def leaving(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
    yield "good"
    {"exit": lambda: sys.exit(3), "_exit": lambda: os._exit(3), "kill": lambda: os.kill(os.getpid(), 9)}[
        info.payload
    ]()


@pytest.mark.parametrize(
    "how, reported",
    [
        ("exit", "worker 0 of 1 of a pool failed: SystemExit: 3"),
        ("_exit", r"worker 0 of 1 of a pool \(process \d+\) exited with status 3 before it was done"),
        ("kill", r"worker 0 of 1 of a pool \(process \d+\) was killed by SIGKILL"),
    ],
)
def test_a_worker_that_leaves_is_noticed_and_named(how: str, reported: str) -> None:
    with WorkerPool(1, leaving, how, name="a pool") as pool:
        assert pool.receive(0) == "good"
        begin = time.monotonic()
        refuses(lambda: pool.receive(0), RuntimeError, reported)
        assert time.monotonic() - begin < 8


def busy(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
    for request in requests:
        if request == "hang":
            threading.Event().wait()
        if request == "fork":  # a child of the worker that keeps its connection open
            if os.fork() == 0:
                signal.pause()
        yield os.getpid()


def test_the_death_of_another_worker_is_noticed_while_waiting() -> None:
    with WorkerPool(3, busy) as pool:
        for worker in range(3):
            pool.send(worker, None)
        pids = [pool.receive(worker) for worker in range(3)]
        pool.send(0, "hang")
        timer = threading.Timer(0.05, os.kill, (pids[2], signal.SIGKILL))
        timer.start()
        with pytest.raises(WorkerDied, match=rf"worker 2 of 3 .*process {pids[2]}.* was killed by SIGKILL"):
            pool.receive(0)
        timer.join()


def test_a_worker_that_ended_well_does_not_disturb_the_others() -> None:
    with WorkerPool(2, busy) as pool:
        pool.finish(0)
        refuses(lambda: pool.receive(0), WorkerDone)
        for _ in range(3):
            pool.send(1, None)
            assert pool.receive(1)
        pool.timeout = 0.05
        refuses(lambda: pool.receive(1), WorkerTimeout)
        with pytest.raises(WorkerDone):
            pool.finish(1)
            pool.receive(1)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs descriptors for processes")
def test_death_is_noticed_though_a_child_of_the_worker_survives() -> None:
    pool = WorkerPool(1, busy, timeout=20)
    group = None
    try:
        pool.send(0, "fork")
        worker = pool.receive(0)
        (child,) = map(int, Path(f"/proc/{worker}/task/{worker}/children").read_text().split())
        group = child
        os.kill(worker, signal.SIGKILL)
        begin = time.monotonic()
        refuses(lambda: pool.receive(0), WorkerDied, "SIGKILL")
        assert time.monotonic() - begin < 8
    finally:
        if group is not None:
            os.kill(group, signal.SIGKILL)
        pool.close()


def test_a_hung_worker_runs_into_the_timeout_and_can_be_received_from_afterwards() -> None:
    def run(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
        for _ in requests:
            os.read(info.payload, 1)
            yield "awake"

    to_read, to_write = os.pipe()
    try:
        with WorkerPool(1, run, to_read, timeout=0.1, name="a pool") as pool:
            pool.send(0, None)
            refuses(lambda: pool.receive(0), TimeoutError, r"worker 0 of 1 of a pool gave nothing for 0\.1 s")
            os.write(to_write, b"x")
            pool.timeout = 10
            assert pool.receive(0) == "awake"
    finally:
        os.close(to_read)
        os.close(to_write)


def test_closing_is_quick_whatever_the_worker_does() -> None:
    def stubborn(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        yield "ready"
        while True:
            time.sleep(100)

    pool = WorkerPool(3, stubborn)
    for worker in range(3):
        assert pool.receive(worker) == "ready"
    begin = time.monotonic()
    pool.close()
    pool.close()
    assert time.monotonic() - begin < 8


def test_closing_lets_the_worker_clean_up() -> None:
    to_read, to_write = os.pipe()

    def run(info: WorkerInfo, requests: Iterator[Any]) -> Generator[Any, None, None]:
        try:
            yield from requests
        finally:
            os.write(to_write, b"clean")

    try:
        pool = WorkerPool(1, run)
        pool.send(0, 1)
        assert pool.receive(0) == 1
        pool.close()
        assert os.read(to_read, 10) == b"clean"
    finally:
        os.close(to_read)
        os.close(to_write)


def test_a_pool_that_is_let_go_ends_its_processes() -> None:
    pool = WorkerPool(2, echo)
    pids = [process.pid for process in pool.processes()]
    del pool
    gc.collect()
    for pid in pids:
        assert pid is not None and not os.path.exists(f"/proc/{pid}")


def test_closing_from_another_thread_wakes_the_one_that_waits() -> None:
    pool = WorkerPool(1, echo)
    timer = threading.Timer(0.05, pool.close)
    timer.start()
    refuses(lambda: pool.receive(0), PoolClosed)
    timer.join()


def test_results_are_discarded_without_waiting() -> None:
    with WorkerPool(1, arrays) as pool:
        for request in range(6):
            pool.send(0, request)
        assert (pool.receive(0) == 0).all()
        begin = time.monotonic()
        pool.discard(0, 4)
        assert time.monotonic() - begin < 0.1
        assert (pool.receive(0) == 5).all()


def test_many_big_requests_and_answers_do_not_block_each_other() -> None:
    with WorkerPool(1, echo, use_shared_memory=False) as pool:
        requests = [bytes([i]) * 1_000_000 for i in range(20)]
        for request in requests:
            pool.send(0, request)
        assert [pool.receive(0)[1] for _ in requests] == requests


def test_a_fork_elsewhere_leaves_the_workers_alone() -> None:
    with WorkerPool(1, arrays) as pool:
        pool.send(0, 1)
        held = pool.receive(0)
        process = pool.processes()[0]
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                pool.receive(0)
            except RuntimeError as error:
                status = 0 if "before the process was forked" in str(error) else 2
            finally:
                del held
                pool.close()
                # What the end of an interpreter does to processes that multiprocessing knows.
                from multiprocessing import util

                util._exit_function()  # type: ignore[attr-defined]
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        assert process.is_alive() and (held == 1).all()
        pool.send(0, 2)
        assert (pool.receive(0) == 2).all() and (held == 1).all()
