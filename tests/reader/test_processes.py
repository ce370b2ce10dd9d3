"""`multiprocess_reader`: order, errors, killed workers, nothing left behind."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from fluidlite.reader import leaks, multiprocess_reader
from fluidlite.reader.worker.channel import WorkerTraceback

from .helpers import endless, failing, numbers


def tagged(tag: int, count: int, pause: float = 0.0):
    return lambda: ((tag, i) for i in numbers(count, pause=pause)())


def test_pipe_reads_round_robin() -> None:
    reader = multiprocess_reader([tagged(0, 5, 0.005), tagged(1, 5), tagged(2, 2)])
    expected = [
        (0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (0, 3), (1, 3), (0, 4), (1, 4),
    ]  # fmt: skip
    assert list(reader()) == expected
    assert list(reader()) == expected


def test_queue_keeps_the_order_of_each_reader() -> None:
    got = list(multiprocess_reader([tagged(0, 50), tagged(1, 50)], use_pipe=False, queue_size=3)())
    assert len(got) == 100
    for tag in (0, 1):
        assert [i for t, i in got if t == tag] == list(range(50))


@pytest.mark.parametrize("use_pipe", [True, False])
def test_arrays_arrive_whole(use_pipe: bool) -> None:
    big = np.arange(200_000, dtype="float32")
    ((array, label),) = multiprocess_reader([lambda: iter([(big, 7)])], use_pipe)()
    assert label == 7 and np.array_equal(array, big)


@pytest.mark.parametrize("use_pipe", [True, False])
def test_an_error_arrives_as_itself_with_the_traceback_of_the_worker(use_pipe: bool) -> None:
    got = []
    with pytest.raises(OSError, match="on fire") as caught:
        for sample in multiprocess_reader([failing(3)], use_pipe)():
            got.append(sample)
    assert got == [0, 1, 2]
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "broken_reader" in str(caught.value.__cause__)


class OtherArguments(Exception):
    """Its __init__ cannot be called with what it hands on, or makes another message of it."""

    def __init__(self, left: int, right: int = 0) -> None:
        super().__init__(f"{left} of {right}")
        self.left = left


@pytest.mark.parametrize("use_pipe", [True, False])
def test_an_error_that_cannot_be_made_from_its_message(use_pipe: bool) -> None:
    reader = multiprocess_reader([numbers(1), failing(0, OtherArguments(1, 2))], use_pipe)
    with pytest.raises(OtherArguments, match="^1 of 2$") as caught:
        list(reader())
    assert caught.value.left == 1
    assert "broken_reader" in str(caught.value.__cause__)


@pytest.mark.parametrize("use_pipe", [True, False])
def test_an_error_that_cannot_be_pickled_is_reported(use_pipe: bool) -> None:
    class Local(Exception):
        pass

    reader = multiprocess_reader([numbers(1), failing(0, Local("of a function"))], use_pipe)
    with pytest.raises(RuntimeError, match=r"reader 1 of 2 .*Local: of a function") as caught:
        list(reader())
    assert "broken_reader" in str(caught.value.__cause__)


@pytest.mark.parametrize("leave", [SystemExit(3), KeyboardInterrupt()])
def test_leaving_a_worker_is_an_error_and_does_not_end_the_parent(leave: BaseException) -> None:
    with pytest.raises(RuntimeError, match=f"reader 0 of 1 .*{type(leave).__name__}"):
        list(multiprocess_reader([failing(1, leave)])())  # type: ignore[arg-type]


def test_a_sample_that_cannot_be_sent() -> None:
    with pytest.raises((AttributeError, TypeError, RuntimeError), match=r"pickle|Can't get local"):
        list(multiprocess_reader([lambda: iter([lambda: 1])])())


@pytest.mark.parametrize("use_pipe", [True, False])
@pytest.mark.parametrize("how", ["kill", "exit"])
def test_a_dead_worker_is_noticed_and_named(use_pipe: bool, how: str) -> None:
    def dying():
        yield 1
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(3)

    got = []
    begin = time.monotonic()
    reason = "was killed by SIGKILL" if how == "kill" else "exited with status 3"
    with pytest.raises(RuntimeError, match=rf"reader 0 of 1 of multiprocess_reader \(process \d+\) {reason}"):
        for sample in multiprocess_reader([dying], use_pipe)():
            got.append(sample)
    assert got == [1] and time.monotonic() - begin < 8


@pytest.mark.parametrize("use_pipe", [True, False])
@pytest.mark.parametrize("stuck", [True, False])
def test_an_abandoned_iterator_ends_its_processes(use_pipe: bool, stuck: bool) -> None:
    def slow():
        yield 1
        time.sleep(100)

    iterator = multiprocess_reader([slow if stuck else endless] * 3, use_pipe)()
    next(iterator)
    assert leaks()["processes"] == 3
    begin = time.monotonic()
    iterator.close()
    assert time.monotonic() - begin < 8
    assert leaks()["processes"] == 0


def test_bad_arguments() -> None:
    for readers in ([], 3, numbers):
        with pytest.raises(AssertionError, match="at least one reader"):
            multiprocess_reader(readers)
    with pytest.raises(ValueError, match="queue_size must be at least 1"):
        multiprocess_reader([numbers(1)], False, 0)
