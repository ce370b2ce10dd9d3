"""Loaders of generators that hand out batches on a simulated GPU, whatever order its streams work in."""

from __future__ import annotations

import gc
import os
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

from fluidlite.base.place import CPUPlace, CUDAPlace
from fluidlite.data import data
from fluidlite.framework import default_main_program
from fluidlite.reader import DataLoader, LoaderError, PyReader, State, batch, leaks
from tests.simulated_cuda.install import simulated

from .device_steps import ROWS, WIDTH, Steps, check, eventually, fresh, refilled, samples
from .helpers import Watched

pytestmark = pytest.mark.usefixtures("programs")
PLACE = CUDAPlace(0)


READERS = {
    "samples": lambda loader, places: loader.set_sample_generator(samples, ROWS, True, places),
    "lists": lambda loader, places: loader.set_sample_list_generator(batch(samples, ROWS), places),
    "refilled": lambda loader, places: loader.set_batch_generator(refilled, places),
    "fresh": lambda loader, places: loader.set_batch_generator(fresh, places),
}


def from_generator(feed_list, **options):
    return DataLoader.from_generator(feed_list=feed_list, **{"capacity": 3, **options})


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "at once"])
@pytest.mark.parametrize("kind", READERS)
def test_batches_are_right_whatever_the_order(any_order, feed_list, kind: str, ahead: bool) -> None:
    loader = from_generator(feed_list, use_double_buffer=ahead)
    READERS[kind](loader, PLACE)
    for _ in range(2):
        steps = Steps()
        for (feed,) in loader():
            steps(feed["image"].array, feed["label"].array)
            del feed
        assert len(steps.finish()) == 10
        check(steps.seen)


@pytest.mark.parametrize("kind", ["samples", "refilled"])
def test_a_process_reads(any_order, feed_list, kind: str) -> None:
    loader = from_generator(feed_list, use_multiprocess=True, return_list=True)
    READERS[kind](loader, PLACE)
    steps = Steps()
    for ((image, label),) in loader():
        steps(image.array, label.array)
    assert len(steps.finish()) == 10
    check(steps.seen)


@pytest.mark.parametrize("slow", ["reader", "consumer", "steps"])
def test_slow_and_fast(any_order, feed_list, slow: str) -> None:
    def reader():
        for item in refilled(6):
            if slow == "reader":
                time.sleep(0.003)
            yield item

    loader = from_generator(feed_list).set_batch_generator(reader, PLACE)
    steps = Steps()
    for (feed,) in loader():
        steps(feed["image"].array, feed["label"].array)
        if slow == "consumer":
            time.sleep(0.003)
        if slow != "steps":
            steps.device.synchronize()
    check(steps.finish())
    assert steps.queued == 6


def test_batches_stay_as_long_as_they_are_held(any_order, feed_list) -> None:
    loader = from_generator(feed_list)
    READERS["refilled"](loader, PLACE)
    steps = Steps()
    kept = []
    for (feed,) in loader():
        kept.append(feed)
        steps(feed["image"].array, feed["label"].array)
    loader.close()
    del feed
    assert leaks()["device_blocks"] == 20  # an image and a label each
    labels = [feed["label"] for feed in kept[::2]]
    kept.clear()
    assert leaks()["device_blocks"] == 5 and leaks()["threads"] == 0
    check(steps.finish())
    for k, label in enumerate(labels):
        assert steps.device.get(label.array).ravel().tolist() == list(range(2 * k * ROWS, (2 * k + 1) * ROWS))


def test_views_keep_their_batch(late, feed_list) -> None:
    loader = from_generator(feed_list)
    READERS["refilled"](loader, PLACE)
    steps = Steps()
    rows = [feed["image"].array[1] for (feed,) in loader()]
    assert leaks()["device_blocks"] == 10
    for k, row in enumerate(rows):
        assert (steps.device.get(row) == k * ROWS + 1).all()


def test_no_more_is_copied_than_needed(late, feed_list) -> None:
    """Two batches ahead of the consumer, whatever the loader's capacity."""
    loader = from_generator(feed_list, capacity=8)
    READERS["fresh"](loader, PLACE)
    epoch = iter(loader)
    feed = next(epoch)
    size = feed[0]["image"].array.nbytes + feed[0]["label"].array.nbytes
    eventually(lambda: loader.queue.stats()["put"] == 10)
    eventually(lambda: loader.stats()["copied"] == 3 * size)
    time.sleep(0.01)
    assert loader.stats()["copied"] == 3 * size and leaks()["device_blocks"] == 6
    del epoch, feed


def test_the_next_batch_is_copied_while_a_step_computes(late, feed_list) -> None:
    loader = from_generator(feed_list)
    READERS["fresh"](loader, PLACE)
    steps = Steps()
    epoch = iter(loader)
    for k in range(5):
        (feed,) = next(epoch)
        steps(feed["image"].array, feed["label"].array)
        eventually(lambda: late.counters.copies["h2d"] >= 2 * (k + 2))  # noqa: B023
        assert len(steps.seen) <= k, "the copy of the next batch waited for this step"
    check(steps.finish())
    del epoch, feed


def test_the_consumer_never_waits_for_the_gpu(late, feed_list, monkeypatch) -> None:
    loader = from_generator(feed_list, capacity=10)
    READERS["fresh"](loader, PLACE)
    steps = Steps()
    threads = []
    for kind in (late.cupy.cuda.Event, late.cupy.cuda.Stream):

        def synchronize(self, wait=kind.synchronize) -> None:
            threads.append(threading.current_thread())
            wait(self)

        monkeypatch.setattr(kind, "synchronize", synchronize)
    for (feed,) in loader():
        steps(feed["image"].array, feed["label"].array)
    assert threads and threading.current_thread() not in threads
    check(steps.finish())
    del feed


def test_samples_are_put_together_in_page_locked_memory(late, feed_list, monkeypatch) -> None:
    from fluidlite.backend.cupy_ import pools, staging

    copied = []
    fill = staging.Staging._fill
    monkeypatch.setattr(
        staging.Staging, "_fill", lambda self, to, array: (copied.append(array.nbytes), fill(self, to, array))
    )
    loader = from_generator(feed_list)
    READERS["samples"](loader, PLACE)
    for _ in loader():
        pass
    assert copied == [8 * ROWS] * 10  # labels, which are small, and nothing else
    assert not pools.is_pinned(np.empty(10))
    allocated = late.counters.host_mallocs
    for _ in range(3):
        for _ in loader():
            pass
    assert late.counters.host_mallocs <= allocated + 2, "page-locked memory is not used again"


def test_sequences_keep_their_lod(late, programs) -> None:
    words = data("words", [None, 1], "int64", lod_level=1)
    loader = from_generator([words])
    loader.set_sample_list_generator(lambda: iter([[([1, 2, 3],), ([4],)], [([5],)]]), PLACE)
    steps = Steps()
    found = [
        (steps.device.get(feed["words"].array).ravel().tolist(), feed["words"].lod()) for (feed,) in loader()
    ]
    assert found == [([1, 2, 3, 4], [[0, 3, 4]]), ([5], [[0, 1]])]
    assert loader.stats()["samples"] == 3


def test_empty_and_tiny_batches(late, programs) -> None:
    a, b = data("a", [None, 3], "float32"), data("b", [1], "bool")
    loader = from_generator([a, b])
    loader.set_batch_generator(lambda: iter([(np.empty((0, 3), "float32"), np.array([True]))] * 5), PLACE)
    for (feed,) in loader():
        assert feed["a"].array.shape == (0, 3) and bool(feed["b"].array[0]) is True


def test_several_places(any_order, feed_list) -> None:
    loader = from_generator(feed_list)
    READERS["samples"](loader, [CUDAPlace(0), CUDAPlace(1)])
    both = Steps(0), Steps(1)
    for feeds in loader():
        for steps, feed in zip(both, feeds, strict=True):
            steps(feed["image"].array, feed["label"].array)
    for number, steps in enumerate(both):
        check(steps.finish(), number, 2)
        assert steps.queued == 5


def test_a_gpu_and_the_host(late, feed_list) -> None:
    loader = from_generator(feed_list)
    READERS["refilled"](loader, [CPUPlace(), CUDAPlace(1)])
    for here, there in loader():
        assert isinstance(here["image"].array, np.ndarray)
        assert there["image"].array.device.id == 1


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "at once"])
def test_errors_of_the_reader(late, feed_list, ahead: bool) -> None:
    def broken():
        yield from refilled(3)
        raise OSError("the disk is on fire")

    loader = from_generator(feed_list, use_double_buffer=ahead).set_batch_generator(broken, PLACE)
    steps = Steps()
    with pytest.raises(OSError, match="on fire") as error:
        for (feed,) in loader():
            steps(feed["image"].array, feed["label"].array)
    check(steps.finish())
    assert steps.queued == 3 and loader.state is State.FAILED
    frames = traceback.extract_tb(error.value.__traceback__)
    assert frames[-1].name == "broken"
    del error, feed


def test_a_bad_batch_is_named(late, feed_list) -> None:
    loader = from_generator(feed_list)
    loader.set_batch_generator(
        lambda: iter([(np.zeros((2, 3), "float32"), np.zeros((2, 1), "int64"))]), PLACE
    )
    with pytest.raises(ValueError, match="'image'"):
        next(loader)


def test_too_little_memory_of_the_gpu(feed_list) -> None:
    with simulated(memory=1 << 16):
        loader = from_generator(feed_list)
        READERS["refilled"](loader, PLACE)
        with pytest.raises(MemoryError, match="smaller batches"):
            for _ in loader():
                pass
        loader.close()
        gc.collect()
        assert not any(leaks().values())


def test_too_little_page_locked_memory(feed_list, monkeypatch) -> None:
    from fluidlite.backend.cupy_ import staging

    monkeypatch.setattr(staging, "_warned", False)
    with simulated(pinned=1 << 14):
        loader = from_generator(feed_list)
        READERS["samples"](loader, PLACE)
        steps = Steps()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for (feed,) in loader():
                steps(feed["image"].array, feed["label"].array)
        assert [str(w.message) for w in caught if "page-locked" in str(w.message)]
        check(steps.finish())
        del feed
        gc.collect()


@pytest.mark.parametrize("taken", [0, 1, 4])
def test_leaving_early(late, feed_list, taken: int) -> None:
    watched = Watched(fresh)
    loader = from_generator(feed_list).set_batch_generator(watched, PLACE)
    steps = Steps()
    for _ in range(3):
        epoch = iter(loader)
        for _ in range(taken):
            (feed,) = next(epoch)
            steps(feed["image"].array, feed["label"].array)
            del feed
        epoch.close()
        assert leaks()["threads"] == 0 and loader.state is State.STOPPED
    steps.finish()
    for first in range(0, 3 * taken, taken or 1):
        check(steps.seen[first : first + taken])
    assert watched.opened == watched.closed


def test_many_epochs(any_order, feed_list) -> None:
    loader = from_generator(feed_list).set_batch_generator(lambda: fresh(3), PLACE)
    steps = Steps()
    for number in range(60):
        for k, (feed,) in enumerate(loader()):
            steps(feed["label"].array)
            if number % 3 == 1 and k == number % 2:
                break
        del feed
        if number % 3 == 2:
            loader.close()
    loader.close()
    steps.finish()
    assert not any(leaks().values())


def test_the_child_of_a_fork_begins_anew(late, feed_list) -> None:
    loader = from_generator(feed_list)
    READERS["fresh"](loader, PLACE)
    epoch = iter(loader)
    (feed,) = next(epoch)
    eventually(lambda: loader.queue.size() >= 1)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            del feed  # releases nothing: the GPU is the parent's
            try:
                next(epoch)
            except LoaderError:
                status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert sum(1 for _ in epoch) == 9


def test_py_readers(late, feed_list) -> None:
    reader = PyReader(feed_list, capacity=3, iterable=True, return_list=True)
    reader.decorate_batch_generator(refilled, PLACE)
    steps = Steps()
    for ((image, label),) in reader():
        steps(image.array, label.array)
    check(steps.finish())
    assert steps.queued == 10
    assert default_main_program().global_block().ops == []


def test_where_the_time_goes(late, feed_list) -> None:
    loader = from_generator(feed_list)
    READERS["fresh"](loader, PLACE)
    assert loader.stats()["copied"] == 0 and "GPU" not in loader.summary()
    for _ in loader():
        pass
    stats = loader.stats()
    size = 10 * ROWS * (4 * WIDTH + 8)
    assert stats["copied"] == stats["bytes"] == size and stats["batches"] == 10
    assert stats["copying"] == pytest.approx(0.010)  # each takes a millisecond in the simulation
    assert stats["staging"] > 0 and stats["capacity"] == 3
    assert "copying to the GPU" in loader.summary()


def test_only_what_was_taken_counts(late, feed_list) -> None:
    loader = from_generator(feed_list)
    READERS["fresh"](loader, PLACE)
    steps = Steps()
    epoch = iter(loader)
    for _ in range(4):
        next(epoch)
    state = loader.state_dict()
    assert state == {"epoch": 0, "batches": 4}
    epoch.close()
    resumed = from_generator(feed_list)
    READERS["fresh"](resumed, PLACE)
    resumed.set_state_dict(state)
    for (feed,) in resumed():
        steps(feed["image"].array, feed["label"].array)
    check(steps.finish(), 4)
    assert steps.queued == 6
