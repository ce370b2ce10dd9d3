"""The bounded blocking queue: order, shutting from both ends, errors, waits, reference counts."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback

import pytest

from fluidlite._ext.queue import Queue, QueueClosed, counters

from ..refusals import refuses


def later(seconds: float, action) -> threading.Timer:
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
    return timer


def test_first_in_first_out_beyond_the_first_ring() -> None:
    queue = Queue(100)
    for i in range(10):
        queue.put(i)
    assert [queue.get() for _ in range(7)] == list(range(7))
    for i in range(10, 90):
        assert queue.put(i) is True
    assert [queue.get() for _ in range(83)] == list(range(7, 90))
    assert len(queue) == queue.size() == 0 and queue.capacity == 100


@pytest.mark.parametrize("capacity", [0, -3])
def test_capacity_must_be_positive(capacity: int) -> None:
    refuses(lambda: Queue(capacity), ValueError, f"at least 1, got {capacity}")


def test_close_hands_out_what_is_inside() -> None:
    queue = Queue(3)
    queue.put("a")
    queue.close()
    queue.close()
    assert queue.shut and queue.put("b") is False
    assert queue.get() == "a"
    for _ in range(2):
        refuses(queue.get, QueueClosed)


def test_failure_comes_after_the_good_items_with_its_traceback() -> None:
    def broken_reader() -> None:
        raise OSError("disk on fire")

    queue = Queue(3)
    queue.put(1)
    try:
        broken_reader()
    except OSError as error:
        queue.fail(error)
    queue.fail(ValueError("too late"))
    assert isinstance(queue.error, OSError)
    assert queue.get() == 1
    lengths = []
    for _ in range(3):
        with pytest.raises(OSError, match="disk on fire") as caught:
            queue.get()
        frames = traceback.extract_tb(caught.tb)
        assert frames[-1].name == "broken_reader"
        lengths.append(len(frames))
    assert lengths[0] == lengths[2], "the traceback grows each time the error is raised"


def test_kill_drops_items_and_wakes_everybody() -> None:
    queue = Queue(1)
    queue.put("only")
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(queue.put("more"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    later(0.02, queue.kill)
    for thread in threads:
        thread.join(5)
    assert results == [False] * 3 and len(queue) == 0
    refuses(queue.get, QueueClosed)


def test_consumer_waits_for_the_producer_and_the_producer_for_room() -> None:
    queue, got = Queue(2), []

    def consume() -> None:
        try:
            while True:
                got.append(queue.get())
        except QueueClosed:
            pass

    thread = threading.Thread(target=consume)
    thread.start()
    for i in range(500):
        queue.put(i)
    queue.close()
    thread.join(5)
    assert got == list(range(500))
    stats = queue.stats()
    assert stats["put"] == stats["got"] == 500
    assert stats["get_seconds"] >= 0 and stats["put_seconds"] >= 0


def test_waiting_time_is_counted() -> None:
    queue = Queue(1)
    later(0.05, lambda: queue.put(1))
    queue.get()
    assert 0.01 < queue.stats()["get_seconds"] < 5


def test_timeouts() -> None:
    queue = Queue(1)
    begin = time.monotonic()
    refuses(lambda: queue.get(timeout=0.12), TimeoutError, "empty for 0.12 s")
    assert 0.1 < time.monotonic() - begin < 5
    queue.put(1)
    refuses(lambda: queue.put(2, timeout=0), TimeoutError, "full")
    assert queue.get(timeout=0) == 1


@pytest.mark.parametrize("timeout", [1e10, 1e300, float("inf"), 1 << 80])
def test_timeouts_beyond_what_a_clock_counts_are_waited_for(timeout: float) -> None:
    queue = Queue(1)
    later(0.02, lambda: queue.put("late"))
    assert queue.get(timeout=timeout) == "late"


def test_a_timeout_is_a_number() -> None:
    for call in (lambda: Queue(1).get(timeout=float("nan")), lambda: Queue(1).put(1, timeout=float("nan"))):
        with pytest.raises(ValueError, match="a number of seconds, got nan"):
            call()


def test_reference_counts() -> None:
    item = object()
    before = sys.getrefcount(item)
    queue = Queue(2)
    queue.put(item)
    assert sys.getrefcount(item) == before + 1
    queue.get()
    assert sys.getrefcount(item) == before
    queue.put(item)
    queue.put(item)
    refuses(lambda: queue.put(item, timeout=0), TimeoutError)
    queue.kill()
    queue.put(item)
    assert sys.getrefcount(item) == before
    full = Queue(1)
    full.put(item)
    del full
    assert sys.getrefcount(item) == before


def test_counters_of_the_process() -> None:
    before = counters()
    queue = Queue(5)
    queue.put(1)
    assert counters() == {"queues": before["queues"] + 1, "items": before["items"] + 1}
    del queue
    assert counters() == before


@pytest.mark.parametrize("wait", ["get", "put"])
def test_ctrl_c_interrupts_the_main_thread(wait: str) -> None:
    queue = Queue(1)
    if wait == "put":
        queue.put(1)
    begin = time.monotonic()
    timer = later(0.05, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    refuses(lambda: queue.get() if wait == "get" else queue.put(2), KeyboardInterrupt)
    timer.join()
    assert time.monotonic() - begin < 8
    if wait == "put":
        assert queue.get() == 1 and len(queue) == 0


def test_many_producers_and_consumers_lose_nothing() -> None:
    queue, got, lock = Queue(3), [], threading.Lock()

    def produce(base: int) -> None:
        for i in range(300):
            queue.put(base + i)

    def consume() -> None:
        mine = []
        try:
            while True:
                mine.append(queue.get())
        except QueueClosed:
            with lock:
                got.extend(mine)

    producers = [threading.Thread(target=produce, args=(1000 * k,)) for k in range(4)]
    consumers = [threading.Thread(target=consume) for _ in range(3)]
    for thread in producers + consumers:
        thread.start()
    for thread in producers:
        thread.join(20)
    queue.close()
    for thread in consumers:
        thread.join(20)
    assert sorted(got) == sorted(1000 * k + i for k in range(4) for i in range(300))


def test_a_waiting_thread_proceeds_while_the_other_goes_on() -> None:
    """Also if the interpreter itself would not change threads for a minute."""
    queue, made = Queue(1000), 0
    interval = sys.getswitchinterval()

    def produce() -> None:
        nonlocal made
        time.sleep(0.2)  # until the other one waits
        for _ in range(200):
            until = time.perf_counter() + 0.0005
            while time.perf_counter() < until:
                pass
            made += 1
            queue.put(made)
        queue.close()

    sys.setswitchinterval(60)
    try:
        thread = threading.Thread(target=produce)
        thread.start()
        assert queue.get() == 1
        so_far = made
        assert [queue.get() for _ in range(199)] == list(range(2, 201))
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert so_far < 200


@pytest.mark.parametrize("capacity", (1, 2, 3))
def test_a_producer_that_filled_the_queue_lets_the_consumer_take(capacity: int) -> None:
    """He does not make one more item, with which he would have to wait, unless the other is slow, which is rare."""
    queue, made, items = Queue(capacity), 0, 300
    interval = sys.getswitchinterval()

    def produce() -> None:
        nonlocal made
        time.sleep(0.1)  # until the other one waits
        for number in range(items):
            until = time.perf_counter() + 0.00005
            while time.perf_counter() < until:
                pass
            made = number
            queue.put(number)

    sys.setswitchinterval(60)
    try:
        thread = threading.Thread(target=produce)
        thread.start()
        too_many = 0
        for number in range(items):
            assert queue.get() == number
            too_many += made - number > capacity
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert too_many < 25
