"""`DataLoader(dataset)`: what it gives in both modes, with threads and worker processes, and how it ends."""

from __future__ import annotations

import gc
import multiprocessing
import random
import threading
import time

import numpy as np
import pytest

from fluidlite.base.place import CPUPlace, cpu_places
from fluidlite.data import data
from fluidlite.eager import Tensor
from fluidlite.executor.lod_tensor import LoDTensor
from fluidlite.framework import mode
from fluidlite.paddle.io import DataLoader as PaddleLoader
from fluidlite.reader import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    State,
    TensorDataset,
    get_worker_info,
    leaks,
)

from ..refusals import refuses
from .helpers import Samples

PLACE = CPUPlace()
WORKERS = pytest.mark.parametrize("workers", [0, 1, 2])


class Squares(Dataset):
    """Samples (array of two, array of one)."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, idx: int):
        return np.full(2, idx, "float32"), np.array([idx * idx], "int64")

    def __len__(self) -> int:
        return self.count


class Shared(IterableDataset):
    """Numbers, shared out among the workers."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.count, step):
            yield {"x": i, "y": np.full(300, i)}


@pytest.fixture
def dygraph():
    with mode.guard(True):
        yield


@pytest.fixture
def feed_list(programs):
    return [data("x", [None, 2], "float32"), data("y", [None, 1], "int64")]


def squares(loader) -> list[list[int]]:
    return [y.numpy().ravel().tolist() for _, y in loader]


@WORKERS
def test_dygraph(dygraph, workers: int) -> None:
    loader = DataLoader(Squares(7), places=PLACE, batch_size=3, num_workers=workers)
    assert len(loader) == 3 and loader.num_workers == workers
    for _ in range(2):
        batches = list(loader())
        assert all(type(b) is list and all(type(t) is Tensor for t in b) for b in batches)
        assert [b[1].numpy().ravel().tolist() for b in batches] == [[0, 1, 4], [9, 16, 25], [36]]
        assert batches[0][0].shape == [3, 2] and batches[0][0].stop_gradient
    loader = DataLoader(Squares(7), batch_size=3, drop_last=True, num_workers=workers)
    assert squares(loader) == [[0, 1, 4], [9, 16, 25]] and len(loader) == 2
    loader = DataLoader(Squares(7), batch_sampler=BatchSampler(indices=[3, 1, 2], batch_size=2))
    assert squares(loader) == [[9, 1], [4]]


@WORKERS
@pytest.mark.parametrize("return_list", [True, False])
def test_static(feed_list, workers: int, return_list: bool) -> None:
    loader = DataLoader(
        Squares(5),
        feed_list=feed_list,
        places=PLACE,
        batch_size=2,
        return_list=return_list,
        num_workers=workers,
    )
    got = list(loader)
    assert all(type(item) is list and len(item) == 1 for item in got)
    if not return_list:
        assert all(list(item[0]) == ["x", "y"] for item in got)
        got = [list(item[0].values()) for item in got]
    else:
        got = [item[0] for item in got]
    assert all(type(tensor) is LoDTensor for batch in got for tensor in batch)
    assert [batch[1].array.ravel().tolist() for batch in got] == [[0, 1], [4, 9], [16]]


@WORKERS
def test_samples_take_the_type_and_shape_of_the_variables(feed_list, workers: int) -> None:
    plain = Samples(lambda idx: {"y": idx, "x": [idx, 0.5], "more": "ignored"})
    loader = DataLoader(plain, feed_list, batch_size=2, num_workers=workers)
    (feed,), _ = list(loader)
    assert feed["x"].array.dtype == np.float32 and feed["x"].array.tolist() == [[0, 0.5], [1, 0.5]]
    assert feed["y"].array.dtype == np.int64 and feed["y"].array.tolist() == [[0], [1]]
    with pytest.raises(ValueError, match="sample 0.*variable 'x'"):
        next(iter(DataLoader(Samples(lambda idx: (np.zeros(3), idx)), feed_list, num_workers=workers)))
    words = data("words", [None, 1], "int64", lod_level=1)
    sequences = Samples(lambda idx: ([[1, 2], [3], [4, 5, 6]][idx],), 3)
    got = [
        feed["words"].lod() for (feed,) in DataLoader(sequences, [words], batch_size=2, num_workers=workers)
    ]
    assert got == [[[0, 2, 3]], [[0, 3]]]


def test_several_places(feed_list) -> None:
    # As recorded with Paddle 1.8.5: an incomplete set at the end is left out, whatever drop_last says.
    for count, expected in ((7, [[[0, 1], [4, 9]], [[16, 25], [36]]]), (5, [[[0, 1], [4, 9]]])):
        loader = DataLoader(Squares(count), feed_list, places=cpu_places(2), batch_size=2)
        assert [[feed["y"].array.ravel().tolist() for feed in feeds] for feeds in loader] == expected


def test_paddle_keeps_structure_and_unwraps() -> None:
    nested = Samples(lambda idx: {"a": (idx, [np.zeros(2), f"s{idx}"])}, 3)
    (batch,) = list(PaddleLoader(nested, batch_size=3))
    assert batch["a"][0].numpy().tolist() == [0, 1, 2] and batch["a"][1][0].shape == [3, 2]
    assert batch["a"][1][1] == ["s0", "s1", "s2"]
    (alone,) = list(PaddleLoader(Samples(np.float64, 3), batch_size=3))
    assert type(alone) is Tensor and alone.shape == [3]
    samples = list(PaddleLoader(Squares(3), batch_size=None))
    assert [x.shape for x, _ in samples] == [[2]] * 3
    with mode.guard(False):
        got = list(PaddleLoader(Squares(3), batch_size=2))
        assert [type(t) for t in got[0]] == [LoDTensor] * 2
    with mode.guard(True):
        (one,) = DataLoader(Samples(np.float64, 3), batch_size=3)
        assert type(one) is list and one[0].shape == [3]


@WORKERS
def test_collate_fn(dygraph, workers: int) -> None:
    def largest(samples):
        return np.stack([x for x, _ in samples]).max(0), Tensor(np.array([y[0] for _, y in samples]))

    loader = DataLoader(Squares(4), batch_size=2, collate_fn=largest, num_workers=workers)
    assert [(x.numpy().tolist(), y.numpy().tolist()) for x, y in loader] == [
        ([1, 1], [0, 1]),
        ([3, 3], [4, 9]),
    ]


@WORKERS
@pytest.mark.parametrize("shuffle", [True, False])
def test_the_order_is_that_of_the_seed_with_any_reader(dygraph, workers: int, shuffle: bool) -> None:
    def epochs(count: int, buffered: bool = True):
        np.random.seed(3)
        loader = DataLoader(
            Squares(9), batch_size=2, shuffle=shuffle, num_workers=count, use_buffer_reader=buffered
        )
        return [squares(loader) for _ in range(3)]

    assert epochs(workers) == epochs(0, buffered=False)
    # Recorded with Paddle 1.8.5.
    np.random.seed(3)
    assert squares(DataLoader(Squares(7), batch_size=2, shuffle=True)) == [[16, 36], [25, 9], [1, 0], [4]]


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_iterable_dataset(workers: int) -> None:
    loader = PaddleLoader(Shared(11), batch_size=2, num_workers=workers)
    expected = {
        0: [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10]],
        1: [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10]],
        2: [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]],
        3: [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8]],
    }
    for _ in range(2):
        assert [batch["x"].numpy().tolist() for batch in loader] == expected[workers]
    dropped = PaddleLoader(Shared(5), batch_size=2, drop_last=True)
    assert [batch["x"].numpy().tolist() for batch in dropped] == [[0, 1], [2, 3]]
    refuses(lambda: len(loader), TypeError, "no length")


def test_several_loops_over_one_loader(dygraph) -> None:
    loader = DataLoader(Squares(4), batch_size=2)
    assert [(a, b) for a in squares(loader) for b in squares(loader)] == [
        (a, b) for a in [[0, 1], [4, 9]] for b in [[0, 1], [4, 9]]
    ]
    pairs = zip(loader, loader, strict=True)
    assert [(a[1].numpy()[0, 0], b[1].numpy()[0, 0]) for a, b in pairs] == [(0, 0), (4, 4)]


def test_next(dygraph) -> None:
    loader = DataLoader(Squares(3), batch_size=2)
    assert next(loader)[0].shape == [2, 2] and next(loader)[0].shape == [1, 2]
    refuses(lambda: next(loader), StopIteration)
    assert next(loader)[0].shape == [2, 2]
    loader.close()
    assert leaks()["threads"] == 0


@WORKERS
def test_leaving_early_and_deleting(dygraph, workers: int) -> None:
    loader = DataLoader(Squares(1000), batch_size=2, num_workers=workers)
    for i, _ in enumerate(loader):
        if i == 3:
            break
    assert loader.state is State.STOPPED
    assert leaks()["threads"] == leaks()["processes"] == 0
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            raise ZeroDivisionError
    epoch = iter(loader)
    next(epoch)
    del loader
    gc.collect()
    assert len([0 for _ in epoch]) == 499
    assert leaks()["threads"] == leaks()["processes"] == 0


def test_persistent_workers(dygraph) -> None:
    class Pids(Squares):
        def __getitem__(self, idx: int):
            import os

            return os.getpid(), idx

    loader = DataLoader(Pids(20), batch_size=2, num_workers=2, persistent_workers=True)
    first = {int(pid) for pids, _ in loader for pid in pids.numpy()}
    for i, _ in enumerate(loader):
        if i == 2:
            break
    assert leaks()["processes"] == 2
    batches = list(loader)
    assert {int(pid) for pids, _ in batches for pid in pids.numpy()} == first
    assert [int(n) for _, numbers in batches for n in numbers.numpy()] == list(range(20))
    both = list(zip(loader, loader, strict=True))
    assert [[int(n) for n in a[1].numpy()] for a, _ in both] == [
        [int(n) for n in b[1].numpy()] for _, b in both
    ]
    assert leaks()["processes"] == 2
    loader.close()
    assert leaks()["processes"] == 0
    streamed = PaddleLoader(Shared(40), batch_size=2, num_workers=2, persistent_workers=True)
    whole = [batch["x"].numpy().tolist() for batch in streamed]
    for i, _ in enumerate(streamed):
        if i == 2:
            break
    assert [batch["x"].numpy().tolist() for batch in streamed] == whole


class Draws(Dataset):
    """Random numbers of `numpy.random` and `random`."""

    def __getitem__(self, idx: int):
        return np.random.randint(2**31), random.getrandbits(31), get_worker_info().seed

    def __len__(self) -> int:
        return 8


def test_workers_draw_different_numbers_that_the_seed_fixes(dygraph) -> None:
    def draws(**options):
        np.random.seed(11)
        loader = DataLoader(Draws(), batch_size=4, num_workers=2, **options)
        return [[t.numpy().tolist() for t in batch] for _ in range(2) for batch in loader]

    once = draws()
    assert len({number for batch in once for column in batch[:2] for number in column}) == 32
    assert draws() == once
    assert len({batch[2][0] for batch in draws(persistent_workers=True)}) == 2
    np.random.seed(12)
    assert [t.numpy().tolist() for t in next(iter(DataLoader(Draws(), batch_size=4, num_workers=2)))] != once[
        0
    ]


def test_worker_info_and_init(dygraph) -> None:
    class Asking(Dataset):
        started = -1

        def __getitem__(self, idx: int):
            info = get_worker_info()
            assert info.dataset is self
            return info.id, info.num_workers, self.started

        def __len__(self) -> int:
            return 4

    dataset = Asking()

    def init(worker: int) -> None:
        get_worker_info().dataset.started = worker + 10

    loader = DataLoader(dataset, batch_size=2, num_workers=2, worker_init_fn=init)
    assert [[t.numpy()[0] for t in batch] for batch in loader] == [[0, 2, 10], [1, 2, 11]]
    assert get_worker_info() is None


class Failing(Squares):
    def __getitem__(self, idx: int):
        if idx == 5:
            raise KeyError("sample five is broken")
        return super().__getitem__(idx)


@WORKERS
def test_errors_of_the_dataset_come_after_the_batches_before(dygraph, workers: int) -> None:
    loader = DataLoader(
        Failing(8), batch_size=2, num_workers=workers, persistent_workers=True, use_buffer_reader=True
    )
    for _ in range(2):
        got = []
        with pytest.raises(KeyError, match="sample five is broken"):
            for _, y in loader:
                got.append(y.numpy().ravel().tolist())
        assert got == [[0, 1], [4, 9]] and loader.state is State.FAILED
    assert leaks()["threads"] == leaks()["processes"] == 0


@WORKERS
def test_a_stop_iteration_of_the_dataset_is_not_the_end(dygraph, workers: int) -> None:
    class Ending(Squares):
        def __getitem__(self, idx: int):
            return next(iter([]))

    for buffered in (True, False):
        with pytest.raises(RuntimeError, match="StopIteration"):
            list(DataLoader(Ending(4), num_workers=workers, use_buffer_reader=buffered))


def test_a_worker_that_is_killed_or_hangs(dygraph) -> None:
    class Deadly(Squares):
        def __getitem__(self, idx: int):
            if idx == 5:
                import os
                import signal

                os.kill(os.getpid(), signal.SIGKILL)
            return super().__getitem__(idx)

    begin = time.monotonic()
    refuses(lambda: list(DataLoader(Deadly(8), batch_size=2, num_workers=2)), RuntimeError, "SIGKILL")
    assert time.monotonic() - begin < 5

    class Hanging(Squares):
        def __getitem__(self, idx: int):
            threading.Event().wait()

    refuses(lambda: list(DataLoader(Hanging(8), batch_size=2, num_workers=1, timeout=0.2)), TimeoutError)


@pytest.mark.parametrize("workers", [0, 1])
def test_another_thread_closes_the_loader_while_a_batch_is_waited_for(dygraph, workers: int) -> None:
    reading, stopped = multiprocessing.Event(), multiprocessing.Event()

    class Blocked(Squares):
        def __getitem__(self, idx: int):
            if idx == 2:
                reading.set()
                stopped.wait(60)
            return super().__getitem__(idx)

    def report():
        while loader.state is not State.STOPPED:
            time.sleep(0.01)
        stopped.set()

    def close():
        reading.wait(60)
        loader.close()

    loader = DataLoader(Blocked(8), batch_size=2, num_workers=workers)
    epoch = iter(loader)
    next(epoch)
    threads = [threading.Thread(target=work) for work in (report, close)]
    for thread in threads:
        thread.start()
    refuses(lambda: next(epoch), StopIteration)
    for thread in threads:
        thread.join()
    assert loader.state is State.STOPPED and next(epoch, None) is None


def test_an_empty_epoch_warns(dygraph) -> None:
    with pytest.warns(RuntimeWarning, match="Squares gave no batch"):
        assert list(DataLoader(Squares(1), batch_size=2, drop_last=True)) == []


def test_samplers_of_the_user(dygraph) -> None:
    class Backwards(Sampler):
        def __iter__(self):
            return iter(range(len(self) - 1, -1, -1))

    class Own(BatchSampler):
        def __init__(self) -> None:
            pass

        def __iter__(self):
            yield [3, 1]
            yield [2]

        def __len__(self) -> int:
            return 2

    dataset = Squares(4)
    backwards = DataLoader(dataset, batch_sampler=BatchSampler(sampler=Backwards(dataset), batch_size=3))
    assert squares(backwards) == [[9, 4, 1], [0]]
    assert squares(DataLoader(dataset, batch_sampler=Own())) == [[9, 1], [4]]


@pytest.mark.parametrize("use_shared_memory", [True, False])
def test_tensor_dataset_through_workers(dygraph, use_shared_memory: bool) -> None:
    images = np.random.RandomState(0).rand(64, 1000).astype("float32")
    dataset = TensorDataset([images, np.arange(64)])
    loader = DataLoader(dataset, batch_size=16, num_workers=2, use_shared_memory=use_shared_memory)
    batches = list(loader)  # held, while the workers go on
    assert np.array_equal(np.concatenate([x.numpy() for x, _ in batches]), images)
    assert np.concatenate([n.numpy() for _, n in batches]).tolist() == list(range(64))


def test_wrong_arguments(feed_list) -> None:
    dataset = Squares(3)
    for options, message in (
        ({"dataset": [1, 2]}, "subclass instance of paddle.io.Dataset.*got list"),
        ({"num_workers": -1}, "num_workers should be a non-negative value"),
        ({"num_workers": "two"}, "num_workers should be an integer"),
        ({"timeout": -1}, "timeout should be a non-negative value"),
        ({"prefetch_factor": 0}, "prefetch_factor should be a positive integer"),
        ({"batch_size": 0}, "batch_size should be a positive value"),
        ({"batch_size": None}, "batch_size should be a positive value"),
        ({"shuffle": "yes"}, "shuffle should be a boolean value"),
        ({"batch_sampler": [[1]]}, "subclass instance of paddle.io.BatchSampler"),
        ({"batch_sampler": BatchSampler(dataset), "batch_size": 2}, "should not be set when batch_sampler"),
        ({"feed_list": None}, "feed_list should be set when return_list=False"),
        ({"dataset": Shared(3), "shuffle": True}, "cannot be shuffled"),
        ({"dataset": Shared(3), "batch_sampler": BatchSampler(dataset)}, "no numbered samples"),
    ):
        with pytest.raises(AssertionError, match=message):
            DataLoader(**{"dataset": dataset, "feed_list": feed_list, **options})
    with mode.guard(True), pytest.raises(AssertionError, match="Number of places must be 1"):
        DataLoader(dataset, places=cpu_places(2))


class Plain:
    """No `Dataset`, but numbered samples."""

    def __len__(self):
        return 7

    def __getitem__(self, index):
        return np.full(2, index, "float32"), index


@pytest.mark.parametrize("workers", [0, 1])
def test_whatever_has_numbered_samples_is_a_dataset(workers: int) -> None:
    loader = PaddleLoader(Plain(), batch_size=3, num_workers=workers)
    assert len(loader) == 3 and [numbers.numpy().tolist() for _, numbers in loader] == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]


@pytest.mark.parametrize("dataset", [object(), {1: 2}, "text", [1, 2], iter([1])])
def test_what_has_no_numbered_samples_is_none(dataset) -> None:
    with pytest.raises(
        (AssertionError, TypeError), match="paddle.io.Dataset .*, or have __getitem__ and __len__"
    ):
        DataLoader(dataset, places=CPUPlace())
