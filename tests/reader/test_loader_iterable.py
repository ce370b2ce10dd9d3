"""Iterable loaders: items, lists for several places, ends of epochs, errors of bad input."""

from __future__ import annotations

import threading
import time
import warnings

import numpy as np
import pytest

from fluidlite.base.place import CPUPlace, cpu_places
from fluidlite.data import data
from fluidlite.executor.lod_tensor import LoDTensor, create_lod_tensor
from fluidlite.reader import DataLoader, LoaderError, State, batch, leaks, shuffle

from ..refusals import refuses
from .helpers import Watched

pytestmark = pytest.mark.usefixtures("programs")
PLACE = CPUPlace()


@pytest.fixture
def feed_list(programs):
    return [data("image", [None, 2, 3], "float32"), data("label", [None, 1], "int64")]


def samples():
    for i in range(10):
        yield np.full((2, 3), i, "float32"), np.array([i], "int64")


def batches(count: int = 3):
    def reader():
        for i in range(count):
            yield np.full((4 - i % 3, 2, 3), i, "float32"), np.full((4 - i % 3, 1), i, "int64")

    return reader


def labels(loader) -> list[list[int]]:
    return [np.array(feed["label"]).ravel().tolist() for (feed,) in loader]


def from_generator(feed_list, **options):
    return DataLoader.from_generator(feed_list=feed_list, **{"capacity": 3, **options})


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("kind", ["sample", "list"])
def test_samples(feed_list, kind: str, drop_last: bool) -> None:
    loader = from_generator(feed_list)
    if kind == "sample":
        assert loader.set_sample_generator(samples, 4, drop_last, PLACE) is loader
    else:
        loader.set_sample_list_generator(batch(samples, 4, drop_last), places=[PLACE])
    expected = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]][: 2 if drop_last else 3]
    for _ in range(2):
        assert labels(loader()) == expected
    for feeds in loader:
        assert type(feeds) is list and list(feeds[0]) == ["image", "label"]
        assert type(feeds[0]["image"]) is LoDTensor
        assert feeds[0]["image"].array.dtype == np.float32 and feeds[0]["image"].shape()[1:] == [2, 3]


def test_tensors_with_sequences() -> None:
    words = data("words", [None, 1], "int64", lod_level=1)

    def tensors():
        for lengths in ([1, 2], [3], [2, 2, 1]):
            yield (create_lod_tensor(np.arange(sum(lengths)).reshape(-1, 1), [lengths], PLACE),)

    loader = from_generator([words]).set_batch_generator(tensors, PLACE)
    assert [feed["words"].lod() for (feed,) in loader] == [[[0, 1, 3]], [[0, 3]], [[0, 2, 4, 5]]]
    loader.set_sample_list_generator(batch(lambda: (([0] * n,) for n in range(1, 6)), 2), PLACE)
    got = [(feed["words"].shape(), feed["words"].recursive_sequence_lengths()) for (feed,) in loader]
    assert got == [([3, 1], [[1, 2]]), ([7, 1], [[3, 4]]), ([5, 1], [[5]])]
    loader.set_sample_generator(lambda: (([0] * n,) for n in range(1, 6)), 2, False, PLACE)
    assert [feed["words"].recursive_sequence_lengths() for (feed,) in loader] == [[[1, 2]], [[3, 4]], [[5]]]


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("return_list", [True, False])
def test_several_devices_and_lists(feed_list, drop_last: bool, return_list: bool) -> None:
    loader = from_generator(feed_list, drop_last=drop_last, return_list=return_list)
    loader.set_batch_generator(batches(5), places=cpu_places(2))
    got = []
    for feeds in loader:
        assert type(feeds) is list and all(type(feed) is (list if return_list else dict) for feed in feeds)
        got.append([(feed[1] if return_list else feed["label"]).array[0, 0] for feed in feeds])
    assert got == [[0, 1], [2, 3]] + ([] if drop_last else [[4]])


def test_feed_list_of_names(feed_list) -> None:
    loader = from_generator(["image", "label"]).set_batch_generator(batches(), PLACE)
    assert len(list(loader)) == 3


def test_an_epoch_can_be_left_in_the_middle(feed_list) -> None:
    watched = Watched(lambda: iter(batches(10**9)()))
    loader = from_generator(feed_list).set_batch_generator(watched, PLACE)
    for _ in range(3):
        for i, _ in enumerate(loader):
            if i == 4:
                break
        del _
    assert loader.state is State.STOPPED and leaks()["threads"] == 0
    assert (watched.opened, watched.closed) == (3, 3)


def test_next_without_iter(feed_list) -> None:
    loader = from_generator(feed_list).set_batch_generator(batches(2), PLACE)
    for _ in range(2):
        assert [next(loader)[0]["label"].array[0, 0], loader.next()[0]["label"].array[0, 0]] == [0, 1]
        refuses(lambda: next(loader), StopIteration)
    iter(loader)
    assert next(loader)[0]["label"].array[0, 0] == 0
    loader.close()


def test_the_same_loader_in_two_loops_at_once(feed_list) -> None:
    loader = from_generator(feed_list).set_batch_generator(batches(5), PLACE)
    outer = iter(loader)
    next(outer)
    assert len(list(loader)) == 5
    refuses(lambda: next(outer), RuntimeError, "the same DataLoader was iterated again.*a separate loader")
    refuses(lambda: list(zip(loader, loader, strict=True)), RuntimeError, "iterated again")


def test_closed_while_iterated(feed_list) -> None:
    loader = from_generator(feed_list).set_batch_generator(batches(5), PLACE)
    epoch = iter(loader)
    next(epoch)
    loader.close()
    loader.close()
    refuses(lambda: next(epoch), RuntimeError, "closed meanwhile")
    assert len(list(loader)) == 5


def test_the_thread_reads_ahead_up_to_the_capacity(feed_list) -> None:
    made = []

    def reader():
        for i, items in enumerate(batches(50)()):
            made.append(i)
            yield items

    loader = from_generator(feed_list, capacity=4).set_batch_generator(reader, PLACE)
    epoch = iter(loader)
    next(epoch)
    deadline = time.monotonic() + 5
    while len(made) < 6 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert len(made) == 6 and loader.queue.size() == 4
    stats = loader.stats()
    assert (stats["queued"], stats["capacity"], stats["state"], stats["batches"]) == (4, 4, "running", 1)
    assert len(list(epoch)) == 49


def test_stats_say_who_waits(feed_list) -> None:
    def slow():
        for items in batches(3)():
            time.sleep(0.02)
            yield items

    loader = from_generator(feed_list).set_batch_generator(slow, PLACE)
    list(loader)
    stats = loader.stats()
    assert stats["bottleneck"] == "reading" and stats["consumer_waited"] > 0.03 and stats["epochs"] == 1
    loader.set_batch_generator(batches(30), PLACE)
    for _ in loader:
        time.sleep(0.005)
    stats = loader.stats()
    assert stats["bottleneck"] == "computing" and stats["batches"] == 33 and stats["state"] == "exhausted"


def test_a_generator_function_that_fails_at_once(feed_list) -> None:
    def no_generator():
        raise KeyError("no such file")

    loader = from_generator(feed_list).set_sample_generator(no_generator, 2, places=PLACE)
    refuses(lambda: list(loader), KeyError, "no such file")


def test_the_generator_runs_in_the_context_of_the_loop(programs, feed_list) -> None:
    from fluidlite.framework import default_main_program

    seen = []

    def reader():
        seen.append(default_main_program())
        yield from batches(1)()

    list(from_generator(feed_list).set_batch_generator(reader, PLACE))
    assert seen == [programs[0]]


def test_an_empty_epoch_warns_and_names_the_reader(feed_list) -> None:
    def nothing():
        return iter(())

    loader = from_generator(feed_list).set_batch_generator(nothing, PLACE)
    for _ in range(2):
        with pytest.warns(
            RuntimeWarning,
            match=r"the reader .*nothing\(\) \(.*\) given to set_batch_generator yielded no batch",
        ) as w:
            assert list(loader) == []
        assert w[0].filename == __file__
    loader.set_sample_generator(samples, batch_size=11, places=PLACE)
    with pytest.warns(RuntimeWarning, match=r"samples\(\) .* its 10 samples are less than one batch of 11"):
        assert list(loader) == []
    loader.set_batch_generator(batches(1), cpu_places(2))
    with pytest.warns(RuntimeWarning, match="its 1 batches are less than one for each of the 2 devices"):
        assert list(loader) == []
    loader.set_sample_list_generator(shuffle(batch(nothing, 3), 5), PLACE)
    with pytest.warns(RuntimeWarning, match=r"nothing\(\)"):
        assert list(loader) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader.set_batch_generator(batches(1), PLACE)
        list(loader)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"capacity": 0}, ValueError, "at least 1, got 0"),
        ({"capacity": -1}, ValueError, "at least 1, got -1"),
        ({"capacity": None}, ValueError, "give a value to capacity"),
        ({"capacity": "3"}, TypeError, "must be an integer"),
        ({"feed_list": None}, ValueError, "feed_list must be given"),
        ({"feed_list": []}, ValueError, "feed_list is empty"),
        ({"feed_list": ["imgae"]}, ValueError, "imgae"),
        ({"feed_list": [3]}, TypeError, "feed_list should contain Variables"),
    ],
)
def test_bad_arguments(feed_list, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        DataLoader.from_generator(**{"feed_list": feed_list, "capacity": 3, **options})


def test_misuse(feed_list) -> None:
    loader = from_generator(feed_list)
    with pytest.raises(
        LoaderError, match="set_sample_generator, set_sample_list_generator or set_batch_generator first"
    ):
        list(loader)
    with pytest.raises(LoaderError, match=r"places cannot be None when .* is iterable.*fluid\.CPUPlace\(\)"):
        loader.set_batch_generator(batches())
    refuses(lambda: loader.set_batch_generator(batches(), places=["cpu"]), TypeError, "places must hold")
    refuses(lambda: loader.set_batch_generator(batches(), places=[]), LoaderError, "at least one place")
    with pytest.raises(TypeError, match="set_batch_generator takes a reader"):
        loader.set_batch_generator([1, 2], PLACE)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        loader.set_sample_generator(samples, 0, places=PLACE)
    refuses(loader.start, LoaderError, r"start\(\) is for loaders made with iterable=False")
    refuses(loader.reset, LoaderError, r"reset\(\) is for loaders")
    assert issubclass(LoaderError, RuntimeError) and issubclass(LoaderError, AssertionError)


def test_letting_go_of_the_loader_releases_its_thread(feed_list) -> None:
    loader = from_generator(feed_list).set_batch_generator(batches(10**9), PLACE)
    epoch = iter(loader)
    next(epoch)
    thread = epoch.prefetcher._stream._thread
    del loader, epoch
    thread.join(2)
    assert not thread.is_alive()


def test_four_loaders_at_once(feed_list) -> None:
    loaders = [
        from_generator(feed_list, capacity=1 + i).set_sample_generator(samples, 3, False, PLACE)
        for i in range(4)
    ]
    got: list[list] = [[] for _ in loaders]

    def run(i: int) -> None:
        for _ in range(20):
            got[i].append(labels(loaders[i]))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert got == [[[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]] * 20] * 4
