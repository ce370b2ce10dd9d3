"""`buffered` and `xmap_readers`: order, errors, abandoned iterators, nothing that hangs."""

from __future__ import annotations

import threading
import time
import traceback

import pytest

from fluidlite.reader import buffered, leaks, xmap_readers

from .helpers import Watched, endless, failing, numbers


def test_buffered_gives_the_samples_in_order() -> None:
    for size in range(20):
        assert list(buffered(numbers(10), size)()) == list(range(10))


def test_buffered_reads_ahead_but_not_further_than_its_size() -> None:
    read = []

    def reader():
        for i in range(100):
            read.append(i)
            yield i

    iterator = buffered(reader, 4)()
    next(iterator)
    deadline = time.monotonic() + 5
    while len(read) < 6 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert len(read) == 6  # one taken, four in the buffer, one waiting for room
    iterator.close()


@pytest.mark.parametrize("order", [True, False])
@pytest.mark.parametrize("threads", [1, 3, 16])
@pytest.mark.parametrize("size", [1, 4])
def test_xmap(order: bool, threads: int, size: int) -> None:
    mapped = xmap_readers(lambda x: x + 1, numbers(40), threads, size, order)
    for _ in range(3):
        got = list(mapped())
        assert (got if order else sorted(got)) == list(range(1, 41))


def test_xmap_keeps_the_order_when_the_first_is_the_slowest() -> None:
    def slow_first(x: int) -> int:
        if x == 0:
            time.sleep(0.05)
        return x

    assert list(xmap_readers(slow_first, numbers(10), 4, 8, order=True)()) == list(range(10))


def test_xmap_maps_in_parallel() -> None:
    together = threading.Barrier(3, timeout=5)
    got = xmap_readers(lambda x: (together.wait(), x)[1], numbers(9), 3, 3)()
    assert sorted(got) == list(range(9))


@pytest.mark.parametrize(
    "decorate",
    [
        lambda reader: buffered(reader, 3),
        lambda reader: xmap_readers(lambda x: x, reader, 3, 2, order=True),
        lambda reader: xmap_readers(lambda x: x, reader, 3, 2, order=False),
    ],
)
@pytest.mark.parametrize("good", [0, 1, 20])
def test_an_error_of_the_reader_comes_after_the_good_samples_with_its_traceback(decorate, good: int) -> None:
    got = []
    with pytest.raises(OSError, match="on fire") as caught:
        for sample in decorate(failing(good))():
            got.append(sample)
    assert sorted(got) == list(range(good))
    assert traceback.extract_tb(caught.tb)[-1].name == "broken_reader"


@pytest.mark.parametrize("order", [True, False])
def test_an_error_of_the_mapper(order: bool) -> None:
    def mapper(x: int) -> float:
        return 1 / (x - 3)

    got = []
    with pytest.raises(ZeroDivisionError) as caught:
        for sample in xmap_readers(mapper, endless, 2, 2, order)():
            got.append(sample)
    assert traceback.extract_tb(caught.tb)[-1].name == "mapper"
    assert got == [1 / -3, 1 / -2, -1.0] if order else len(got) < 3 + 2 + 2


@pytest.mark.parametrize(
    "decorate",
    [
        lambda reader: buffered(reader, 3),
        lambda reader: xmap_readers(lambda x: x, reader, 3, 2, order=True),
        lambda reader: xmap_readers(lambda x: x, reader, 3, 2, order=False),
        lambda reader: buffered(xmap_readers(lambda x: x, buffered(reader, 2), 3, 2), 2),
    ],
)
@pytest.mark.parametrize("how", ["close", "del", "break"])
def test_an_abandoned_iterator_releases_its_threads(decorate, how: str) -> None:
    watched = Watched(endless)
    begin = time.monotonic()
    iterator = decorate(watched)()
    next(iterator)
    if how == "break":
        for _ in iterator:
            break
        iterator.close()
    elif how == "close":
        iterator.close()
    del iterator
    deadline = time.monotonic() + 5
    while leaks()["threads"] and time.monotonic() < deadline:
        time.sleep(0.001)
    assert time.monotonic() - begin < 8
    assert (watched.opened, watched.closed) == (1, 1)


def test_closing_does_not_wait_for_a_reader_that_is_stuck() -> None:
    stuck = threading.Event()

    def reader():
        yield 1
        stuck.wait(20)

    iterator = buffered(reader, 3)()
    assert next(iterator) == 1
    begin = time.monotonic()
    iterator.close()
    assert time.monotonic() - begin < 8
    stuck.set()
    deadline = time.monotonic() + 5
    while leaks()["threads"] and time.monotonic() < deadline:
        time.sleep(0.001)


def test_a_reader_that_fails_while_it_is_closed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_value))

    def reader():
        try:
            yield from endless()
        finally:
            raise ValueError("cannot close the file")

    iterator = buffered(reader, 1)()
    next(iterator)
    iterator.close()
    assert [str(error) for error in seen] == ["cannot close the file"]


def test_numbers_are_checked() -> None:
    with pytest.raises(ValueError, match="process_num must be at least"):
        xmap_readers(str, numbers(1), 0, 1)
    with pytest.raises(TypeError, match="must be a number, got 'x'"):
        buffered(numbers(1), "x")
