"""Loaders whose generator runs in a worker process (`use_multiprocess=True`), in static and in dygraph mode."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite._ext import shm
from fluidlite.framework import mode
from fluidlite.reader import LoaderError, leaks
from fluidlite.reader.worker.channel import WorkerDied, WorkerTraceback

from ..refusals import refuses

PLACE = fluid.CPUPlace()
MODES = ["static", "dygraph"]


pytestmark = pytest.mark.usefixtures("no_descriptor_left")


def make(how: str, reader: Callable[[], Any], **options: Any) -> Any:
    """An iterable loader of the batches of `reader`."""
    arguments = {"capacity": 3, "use_multiprocess": True, "return_list": True, **options}
    if how == "dygraph":
        with mode.guard(True):
            loader = fluid.io.DataLoader.from_generator(**arguments)
    else:
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            x = fluid.data("x", [None, None], "float32")
            loader = fluid.io.DataLoader.from_generator([x], **arguments)
    loader.set_batch_generator(reader, places=PLACE)
    return loader


def array_of(item: Any) -> np.ndarray:
    """The array of what a loader of one variable gives."""
    while isinstance(item, list):
        (item,) = item
    return item.array


def values(loader: Any) -> list[float]:
    return [float(array_of(item)[0, 0]) for item in loader()]


def batches(count: int, shape: tuple[int, int] = (200, 300)) -> Callable[[], Iterator[Any]]:
    def reader() -> Iterator[Any]:
        for i in range(count):
            yield [np.full(shape, i, "float32")]

    return reader


def endless() -> Iterator[Any]:
    return batches(10**9)()


def stuck() -> Iterator[Any]:
    yield from batches(1)()
    threading.Event().wait()


@pytest.mark.parametrize("how", MODES)
def test_batches_come_in_order_epoch_after_epoch(how: str) -> None:
    loader = make(how, batches(20))
    for _ in range(3):
        assert values(loader) == list(range(20))
    assert next(loader) is not None
    stats = loader.stats()
    loader.close()
    assert stats["epochs"] == 4 and stats["batches"] == 61 and stats["bytes"] >= 61 * 240_000


def test_all_three_kinds_of_generators_and_sequences() -> None:
    def samples() -> Iterator[Any]:
        for i in range(7):
            yield np.full(5000, i, "float32"), [i] * i

    def lists() -> Iterator[Any]:
        rows = list(samples())
        yield rows[:4]
        yield rows[4:]

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, 5000], "float32")
        y = fluid.data("y", [None, 1], "int64", lod_level=1)
        found = []
        for used in (False, True):
            loader = fluid.io.DataLoader.from_generator([x, y], capacity=2, use_multiprocess=used)
            for choose in (
                lambda: loader.set_sample_generator(samples, 3, drop_last=False, places=PLACE),  # noqa: B023
                lambda: loader.set_sample_list_generator(lists, places=PLACE),  # noqa: B023
            ):
                choose()
                found += [
                    [(name, t.array.tolist(), t.lod()) for name, t in feed[0].items()] for feed in loader()
                ]
    assert len(found) == 10 and found[:5] == found[5:]


def test_two_places_share_the_batches_out() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, None], "float32")
        loader = fluid.io.DataLoader.from_generator([x], capacity=2, use_multiprocess=True)
    loader.set_batch_generator(batches(5), places=fluid.cpu_places(2))
    got = [[feed["x"].array[0, 0] for feed in feeds] for feeds in loader()]
    assert got == [[0, 1], [2, 3]]


def test_a_program_reads_from_the_worker() -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 300], "float32")
        loader = fluid.io.DataLoader.from_generator([x], capacity=2, iterable=False, use_multiprocess=True)
        total = fluid.layers.reduce_sum(x)
    loader.set_batch_generator(batches(4))
    exe = fluid.Executor(PLACE)
    for _ in range(2):
        loader.start()
        got = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                got.append(float(exe.run(main, fetch_list=[total])[0].item()))
        assert got == [60_000.0 * i for i in range(4)]
        loader.reset()
    loader.start()
    exe.run(main, fetch_list=[total])
    begin = time.monotonic()
    loader.reset()
    assert time.monotonic() - begin < 8 and leaks()["processes"] == 0


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("reader", [endless, stuck])
def test_leaving_the_loop_early_leaves_nothing(how: str, reader: Callable[[], Any]) -> None:
    loader = make(how, reader)
    begin = time.monotonic()
    for _item in loader():
        break
    del _item
    gc.collect()
    assert time.monotonic() - begin < 8
    assert not any(leaks().values())
    epoch = iter(loader)
    next(epoch)
    del loader, epoch
    assert not any(leaks().values())


@pytest.mark.parametrize("how", MODES)
def test_an_exception_in_the_training_loop_leaves_nothing(how: str) -> None:
    loader = make(how, endless)
    with pytest.raises(ZeroDivisionError):
        for _item in loader():
            1 / 0  # noqa: B018
    del _item
    gc.collect()
    assert not any(leaks().values())


class OddError(Exception):
    """Cannot be made from what it hands on."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"{number}: {why}")


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("error", [OSError("the disk is on fire"), OddError(3, "odd"), KeyError("k")])
def test_a_generators_error_arrives_as_itself_after_the_good_batches(how: str, error: Exception) -> None:
    def broken_reader() -> Iterator[Any]:
        yield from batches(3)()
        raise error

    loader = make(how, broken_reader)
    got = []
    with pytest.raises(type(error)) as caught:
        for item in loader():
            got.append(float(array_of(item)[0, 0]))
    assert got == [0, 1, 2] and str(caught.value) == str(error)
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "in broken_reader" in str(caught.value.__cause__)
    assert leaks()["processes"] == 0 and loader.stats()["state"] == "failed"


def test_a_batch_that_does_not_fit_is_reported_as_without_worker() -> None:
    def wrong() -> Iterator[Any]:
        yield [np.zeros((2, 3, 4), "float32")]

    with pytest.raises(ValueError, match=r"batch 0 of the reader .*wrong\(\).*'x'.*expected shape"):
        values(make("static", wrong))


@pytest.mark.parametrize("how", MODES)
def test_eof_exception_of_a_reader_is_no_end(how: str) -> None:
    def reader() -> Iterator[Any]:
        yield from batches(1)()
        raise fluid.core.EOFException("of another loader")

    refuses(lambda: values(make(how, reader)), (fluid.core.EOFException, LoaderError), "of another loader")


@pytest.mark.parametrize("how", MODES)
def test_a_killed_worker_is_noticed_and_named(how: str) -> None:
    def dying() -> Iterator[Any]:
        yield from batches(2)()
        os.kill(os.getpid(), signal.SIGKILL)

    loader = make(how, dying)
    epoch = iter(loader)
    next(epoch), next(epoch)
    begin = time.monotonic()
    with pytest.raises(WorkerDied, match=r"DataLoader of .*dying\(\).*process \d+\) was killed by SIGKILL"):
        next(epoch)
    assert time.monotonic() - begin < 8
    refuses(lambda: next(epoch), WorkerDied)


@pytest.mark.parametrize("how", MODES)
def test_an_empty_reader_is_reported(how: str) -> None:
    loader = make(how, lambda: iter(()))
    with pytest.warns(RuntimeWarning, match="yielded no batch in this epoch"):
        assert values(loader) == []


@pytest.mark.parametrize("how", MODES)
def test_random_numbers_are_those_of_a_reader_without_worker(how: str) -> None:
    def drawing() -> Iterator[Any]:
        for _ in range(4):
            yield [np.full((1, 1), np.random.rand() + random.random(), "float32")]

    found = []
    for used in (False, True):
        np.random.seed(3)
        random.seed(3)
        loader = make(how, drawing, use_multiprocess=used)
        found.append([values(loader), values(loader), [np.random.rand(), random.random()]])
    assert found[0] == found[1]
    assert found[1][0] != found[1][1]
    np.random.seed(3)
    random.seed(3)
    assert values(loader) == found[0][0]


def test_epochs_that_are_left_early_draw_other_numbers() -> None:
    def drawing() -> Iterator[Any]:
        while True:
            yield [np.full((1, 1), np.random.rand(), "float32")]

    def firsts() -> list[float]:
        np.random.seed(3)
        loader = make("static", drawing)
        return [float(array_of(next(iter(loader)))[0, 0]) for _ in range(4)]

    first = firsts()
    assert len(set(first)) == 4 and firsts() == first


def test_batches_stay_valid_as_long_as_they_are_held() -> None:
    loader = make("static", batches(12))
    held = list(loader())
    loader.close()
    assert [float(array_of(item).mean()) for item in held] == list(range(12))
    assert leaks()["segments"] == 12
    one = array_of(held[5])[10:20]
    held.clear()
    assert leaks()["segments"] == 1 and (one == 5).all()


def test_memory_does_not_grow_over_epochs_or_with_two_loaders() -> None:
    pair = [make("static", batches(10)), make("dygraph", batches(10))]
    most = 0
    for _ in range(5):
        for one, other in zip(*pair, strict=True):
            assert np.array_equal(array_of(one), array_of(other))
            most = max(most, shm.counters()["bytes"])
    assert most < 2 * 9 * 262_144
    del one, other
    gc.collect()
    assert shm.counters()["bytes"] == 0


def test_the_generator_is_closed_when_the_epoch_is_given_up() -> None:
    to_read, to_write = os.pipe()

    def watched() -> Iterator[Any]:
        try:
            yield from endless()
        finally:
            os.write(to_write, b"closed")

    loader = make("static", watched)
    epoch = iter(loader)
    next(epoch)
    epoch.close()
    assert os.read(to_read, 10) == b"closed"
    refuses(lambda: next(epoch), (LoaderError, StopIteration))
    os.close(to_read)
    os.close(to_write)


def test_at_most_capacity_batches_are_made_ahead() -> None:
    to_read, to_write = os.pipe()

    def counted() -> Iterator[Any]:
        for batch in endless():
            os.write(to_write, b"x")
            yield batch

    loader = make("static", counted, capacity=4)
    epoch = iter(loader)
    next(epoch)
    begun = len(os.read(to_read, 100))
    while begun < 5:  # 4 that wait, and one taken: reading waits for the worker
        begun += len(os.read(to_read, 100))
    epoch.close()
    os.set_blocking(to_read, False)
    try:
        begun += len(os.read(to_read, 100))
    except BlockingIOError:
        pass
    assert begun <= 4 + 2 + 1
    os.close(to_read)
    os.close(to_write)


def test_a_reset_from_another_thread_wakes_the_consumer() -> None:
    loader = make("static", stuck)
    epoch = iter(loader)
    next(epoch)
    timer = threading.Timer(0.05, loader.close)
    timer.start()
    refuses(lambda: next(epoch), LoaderError, "closed meanwhile")
    timer.join()


def test_epochs_closed_by_another_thread_at_random_moments() -> None:
    loader = make("static", batches(30, (10, 10)))
    chance = random.Random(0)
    outcomes: list[str] = []

    def consume() -> None:
        epoch = iter(loader)
        begun.set()
        try:
            outcomes.append("end" if len(list(epoch)) == 30 else "short")
        except LoaderError:
            outcomes.append("closed")

    for _ in range(15):
        begun = threading.Event()
        thread = threading.Thread(target=consume)
        thread.start()
        assert begun.wait(10)
        thread.join(chance.choice([0.0, 0.001, 0.003, 0.01]))
        loader.close()
        thread.join(10)
        assert not thread.is_alive()
    assert len(outcomes) == 15 and set(outcomes) <= {"end", "closed"} and "closed" in outcomes


def test_a_worker_in_a_forked_child_belongs_to_the_parent() -> None:
    loader = make("static", batches(6))
    epoch = iter(loader)
    next(epoch)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            try:
                next(epoch)
            except LoaderError as error:
                status = 2 if "before the process was forked" not in str(error) else 3
            if status == 3 and values(loader) == list(range(6)):
                status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(list(epoch)) == 5


def test_wrapped_in_tqdm_nothing_is_left() -> None:
    from tqdm import tqdm

    loader = make("static", endless)
    for number, _item in enumerate(tqdm(loader(), disable=True)):
        if number == 3:
            break
    del _item
    gc.collect()
    assert not any(leaks().values())


def test_dygraph_batches_may_be_of_any_kind() -> None:
    def reader() -> Iterator[Any]:
        for i in range(1, 3):
            yield np.zeros((i, 2), "float16"), [1, 2], np.ones(i, "uint8"), np.array([True]), 0.5

    with mode.guard(True):
        for used in (False, True):
            loader = fluid.io.DataLoader.from_generator(capacity=2, use_multiprocess=used)
            loader.set_batch_generator(reader)
            got = [[(t.shape, str(t.numpy().dtype)) for t in batch] for batch in loader()]
            assert got == [
                [([i, 2], "float16"), ([2], "int64"), ([i], "uint8"), ([1], "bool"), ([], "float64")]
                for i in (1, 2)
            ]


def test_dygraph_samples_are_stacked() -> None:
    def samples() -> Iterator[Any]:
        for i in range(5):
            yield np.full((2, 3), i, "float32"), i, 0.5 * i

    with mode.guard(True):
        loader = fluid.io.DataLoader.from_generator(capacity=2, use_multiprocess=True)
        loader.set_sample_generator(samples, batch_size=2, drop_last=False, places=PLACE)
        got = [[t.numpy() for t in batch] for batch in loader()]
    assert [part.shape for part in got[0]] == [(2, 2, 3), (2,), (2,)]
    assert [part.dtype for part in got[0]] == ["float32", "int64", "float64"]
    assert len(got) == 3 and got[2][2].tolist() == [2.0]


def test_dygraph_loaders_take_one_place_and_name_what_they_cannot_hold() -> None:
    with mode.guard(True):
        loader = fluid.io.DataLoader.from_generator(capacity=2)
        with pytest.raises(AssertionError, match="places must be 1"):
            loader.set_batch_generator(batches(1), places=fluid.cpu_places(2))
        loader.set_batch_generator(lambda: iter([["text"]]))
        refuses(lambda: list(loader()), TypeError, "item 0 of batch 0 .* expected an array")
        with pytest.warns(UserWarning, match="always iterable in dygraph mode"):
            fluid.io.DataLoader.from_generator(capacity=2, iterable=False)


SPAWN = """
import multiprocessing
import os
import numpy as np
import paddle.fluid as fluid

def ready():
    for i in range(3):
        yield (np.full((200, 300), i, "float32"),)

def samples():
    for i in range(6):
        yield (np.full(300, i, "float32"),)

def pids():
    for i in range(3):
        yield (np.full((2, 300), os.getpid(), "float32"),)

if __name__ == "__main__":
    multiprocessing.set_start_method("START")
    x = fluid.data("x", [None, 300], "float32")
    loader = fluid.io.DataLoader.from_generator([x], capacity=2, use_multiprocess=True)
    loader.set_batch_generator(ready, places=fluid.CPUPlace())
    print([feed[0]["x"].array.mean().item() for feed in loader])
    loader.set_sample_generator(samples, 2, places=fluid.CPUPlace())
    print([feed[0]["x"].array.mean().item() for feed in loader])
    loader.set_batch_generator(lambda: ready(), places=fluid.CPUPlace())
    try:
        next(loader)
    except TypeError as error:
        print(error)
    kept = fluid.io.DataLoader.from_generator([x], capacity=2, use_multiprocess=True, persistent_workers=True)
    kept.set_batch_generator(pids, places=fluid.CPUPlace())
    print([len({feed[0]["x"].array[0, 0] for _ in range(3) for feed in kept})])
"""


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_the_start_method_of_the_program_is_followed(python: Any, tmp_path: Any, start: str) -> None:
    (tmp_path / "script.py").write_text(SPAWN.replace("START", start))
    done = python("-m", "fluidlite", "script.py")
    assert (done.returncode, done.stderr) == (0, "")
    ready, samples, reported, kept = done.stdout.splitlines()
    assert (ready, samples) == ("[0.0, 1.0, 2.0]", "[0.5, 2.5, 4.5]")
    assert f"started by '{start}'" in reported and "top of a module" in reported
    assert kept == "[1]", "one process for all epochs"
