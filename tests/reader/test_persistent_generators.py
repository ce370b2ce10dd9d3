"""`DataLoader.from_generator(..., persistent_workers=True)`: one process for all epochs that are read to their ends."""

from __future__ import annotations

import gc
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.reader.loader.epoch import LoaderError
from fluidlite.reader.worker.channel import WorkerDied

pytestmark = pytest.mark.usefixtures("no_descriptor_left")


def loader_of(reader: Callable[[], Any], persistent: bool = True, capacity: int = 3, **options: Any) -> Any:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, 2], "float64")
    loader = fluid.io.DataLoader.from_generator(
        [x],
        capacity=capacity,
        return_list=True,
        use_multiprocess=True,
        persistent_workers=persistent,
        **options,
    )
    return loader.set_batch_generator(reader, fluid.CPUPlace())


def numbers(loader: Any) -> list[list[float]]:
    return [batch[0][0].array.reshape(-1).tolist() for batch in loader]


def pids() -> Iterator[Any]:
    for i in range(5):
        yield [np.array([[os.getpid(), i]], "float64")]


@pytest.mark.parametrize("persistent", [True, False])
def test_epochs_share_a_process_if_they_are_to(persistent: bool) -> None:
    loader = loader_of(pids, persistent)
    epochs = [numbers(loader) for _ in range(4)]
    assert all([i for _, i in epoch] == list(range(5)) for epoch in epochs)
    assert len({pid for epoch in epochs for pid, _ in epoch}) == (1 if persistent else 4)
    assert (loader._pool is not None) is persistent
    loader.close()
    assert loader._pool is None
    assert len(numbers(loader)) == 5
    loader.close()


def test_other_processes_after_what_ended_early() -> None:
    loader = loader_of(pids)
    (first,) = {pid for pid, _ in numbers(loader)}
    for batch in loader:
        assert batch[0][0].array[0, 0] == first
        break
    (second,) = {pid for pid, _ in numbers(loader)}
    assert second != first
    epoch = iter(loader)
    next(epoch)
    restarted = numbers(loader)  # ends the epoch before
    assert [i for _, i in restarted] == list(range(5)) and restarted[0][0] != second
    with pytest.raises(LoaderError, match="iterated again"):
        next(epoch)
    loader.close()


def test_what_the_generator_changes_stays_and_what_others_change_is_not_seen() -> None:
    counts = {"calls": 0}

    def reader() -> Iterator[Any]:
        counts["calls"] += 1
        yield [np.array([[counts["calls"], 0]], "float64")]

    loader = loader_of(reader)
    assert [numbers(loader)[0][0] for _ in range(3)] == [1, 2, 3]
    counts["calls"] = 100
    assert numbers(loader)[0][0] == 4
    loader.close()
    assert numbers(loader)[0][0] == 101
    loader.set_batch_generator(reader, fluid.CPUPlace())
    assert numbers(loader)[0][0] == 101
    loader.close()


@pytest.mark.parametrize("persistent", [True, False])
def test_random_numbers_go_on_as_without_a_process(persistent: bool) -> None:
    def reader() -> Iterator[Any]:
        for _ in range(3):
            yield [np.array([[random.random(), np.random.rand()]])]

    def drawn(epoch: Callable[[], Any]) -> list[Any]:
        random.seed(5)
        np.random.seed(6)
        found = []
        for _ in range(3):
            found.append(epoch())
            found.append((random.random(), np.random.rand()))
        return found

    loader = loader_of(reader, persistent)
    plain = drawn(lambda: [batch[0].reshape(-1).tolist() for batch in reader()])
    assert drawn(lambda: numbers(loader)) == plain
    loader.close()


def test_errors_and_deaths_cost_an_epoch() -> None:
    state = {"fail": False}

    def reader() -> Iterator[Any]:
        yield from pids()
        if state["fail"]:
            raise KeyError("gone")

    loader = loader_of(reader)
    (first,) = {pid for pid, _ in numbers(loader)}
    loader.close()
    state["fail"] = True
    for _ in range(2):
        with pytest.raises(KeyError, match="gone"):
            numbers(loader)
        assert loader._pool is None
    state["fail"] = False
    (second,) = {pid for pid, _ in numbers(loader)}
    os.kill(int(second), signal.SIGKILL)  # while it waits for the next epoch
    deadline = time.monotonic() + 20
    while loader._pool.processes() and time.monotonic() < deadline:
        time.sleep(0.01)
    (third,) = {pid for pid, _ in numbers(loader)}
    assert len({first, second, third}) == 3
    epoch = iter(loader)
    os.kill(int(third), signal.SIGKILL)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        for _ in epoch:
            pass
    assert len(numbers(loader)) == 5
    loader.close()


def test_arrays_outlive_their_epochs() -> None:
    def reader() -> Iterator[Any]:
        for i in range(6):
            yield [np.full((4000, 2), random.randint(0, 9) * 100 + i, "float64")]

    loader = loader_of(reader)
    held: list[tuple[float, np.ndarray]] = []
    for _ in range(5):
        for batch in loader:
            array = batch[0][0].array
            held.append((array[0, 0], array[::3]))
        assert all((part == value).all() for value, part in held)
        held = held[1::2]
    loader.close()
    assert all((part == value).all() for value, part in held)


def test_epochs_go_on_where_they_were_left() -> None:
    loader = loader_of(pids)
    numbers(loader)
    loader.set_state_dict({"epoch": 1, "batches": 3})
    assert [i for _, i in numbers(loader)] == [3, 4]
    assert [i for _, i in numbers(loader)] == list(range(5))
    loader.close()


def test_a_loader_that_is_let_go_ends_its_process() -> None:
    loader = loader_of(pids)
    numbers(loader)
    process = loader._pool.processes()[0]
    del loader
    gc.collect()
    assert fluid.reader.leaks()["processes"] == 0
    with pytest.raises(ValueError, match="closed"):
        process.is_alive()


def test_the_child_of_a_fork_has_a_process_of_its_own() -> None:
    loader = loader_of(pids)
    numbers(loader)
    child = os.fork()
    if child == 0:
        found = 1
        try:
            found = 0 if [i for _, i in numbers(loader)] == list(range(5)) else 2
            loader.close()
        finally:
            os._exit(found)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [i for _, i in numbers(loader)] == list(range(5)), "the parent's process goes on"
    loader.close()


def test_programs_that_read() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 2], "float64")
        loader = fluid.io.DataLoader.from_generator(
            [x], capacity=2, iterable=False, use_multiprocess=True, persistent_workers=True
        )
        y = fluid.layers.scale(x, 2.0)
    loader.set_batch_generator(pids)
    executor = fluid.Executor(fluid.CPUPlace())
    found = set()
    for _ in range(3):
        loader.start()
        count = 0
        while True:
            try:
                (value,) = executor.run(main, fetch_list=[y])
            except fluid.core.EOFException:
                loader.reset()
                break
            assert value[0, 1] == 2 * count
            found.add(value[0, 0])
            count += 1
        assert count == 5
    assert len(found) == 1
    loader.start()
    executor.run(main)
    loader.reset()
    loader.start()
    assert executor.run(main, fetch_list=[y])[0][0, 0] not in found
    loader.close()


def test_many_epochs_that_end_anyhow() -> None:
    chance = random.Random(3)

    def reader() -> Iterator[Any]:
        for i in range(random.randint(1, 6)):
            if i and random.random() < 0.03:
                raise ArithmeticError(str(i))
            yield [np.full((chance.choice([1, 3000]), 2), i, "float64")]

    loader = loader_of(reader, capacity=2)
    random.seed(1)
    ends = {"left": 0, "failed": 0, "read": 0}
    for _ in range(60):
        stop = chance.randint(0, 9)
        seen = 0
        try:
            for batch in loader:
                assert (batch[0][0].array == seen).all()
                seen += 1
                if seen == stop:
                    ends["left"] += 1
                    break
            else:
                ends["read"] += 1
        except ArithmeticError as error:
            assert str(error) == str(seen)
            ends["failed"] += 1
    assert all(ends.values()), ends
    loader.close()
