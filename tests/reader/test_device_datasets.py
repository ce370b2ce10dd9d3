"""Loaders of data sets that hand out batches on a simulated GPU, in both modes, from threads and worker processes."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.base.place import CPUPlace, CUDAPlace
from fluidlite.data import data
from fluidlite.eager import Tensor
from fluidlite.framework import mode
from fluidlite.paddle.io import DataLoader as PaddleLoader
from fluidlite.reader import DataLoader, Dataset, IterableDataset, State, get_worker_info, leaks

from .device_steps import Steps

PLACE = CUDAPlace(0)
WIDTH = 5000
WORKERS = pytest.mark.parametrize("workers", [0, 2])
AHEAD = pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "at once"])


class Rows(Dataset):
    """Samples (big array, number)."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, idx: int):
        if idx < 0:
            raise IndexError(idx)
        return np.full(WIDTH, idx, "float32"), np.array([idx], "int64")

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
            yield {"x": np.full(WIDTH, i, "float32"), "name": f"row {i}", "y": i}


def check(seen, size: int = 4, first: int = 0) -> None:
    """Whether each step saw its batch of `size` rows."""
    for k, (rows, numbers) in enumerate(seen):
        expected = np.arange((first + k) * size, (first + k + 1) * size)
        np.testing.assert_array_equal(numbers.ravel(), expected)
        np.testing.assert_array_equal(rows, np.broadcast_to(expected[:, None], (size, WIDTH)))


@AHEAD
@WORKERS
def test_static(any_order, programs, workers: int, ahead: bool) -> None:
    feed_list = [data("x", [None, WIDTH], "float32"), data("y", [None, 1], "int64")]
    loader = DataLoader(
        Rows(24), feed_list, PLACE, batch_size=4, num_workers=workers, use_buffer_reader=ahead
    )
    for _ in range(2):
        steps = Steps()
        for (feed,) in loader:
            steps(feed["x"].array, feed["y"].array)
            del feed
        assert len(steps.finish()) == 6
        check(steps.seen)
    stats = loader.stats()
    assert stats["copied"] == stats["bytes"] == 48 * (4 * WIDTH + 8)


@AHEAD
@WORKERS
def test_dygraph(any_order, workers: int, ahead: bool) -> None:
    with mode.guard(True), mode.place_guard(PLACE):
        loader = DataLoader(Rows(24), batch_size=4, num_workers=workers, use_buffer_reader=ahead)
        steps = Steps()
        for x, y in loader:
            assert isinstance(x, Tensor)
            steps(x.array, y.array)
            del x, y
        assert len(steps.finish()) == 6
        check(steps.seen)


@WORKERS
def test_several_places(any_order, programs, workers: int) -> None:
    feed_list = [data("x", [None, WIDTH], "float32"), data("y", [None, 1], "int64")]
    places = [CUDAPlace(0), CUDAPlace(1)]
    loader = DataLoader(Rows(28), feed_list, places, batch_size=4, num_workers=workers)
    both = Steps(0), Steps(1)
    for feeds in loader:
        for steps, feed in zip(both, feeds, strict=True):
            steps(feed["x"].array, feed["y"].array)
    for number, steps in enumerate(both):
        assert [int(y[0, 0]) for _, y in steps.finish()] == [4 * number, 8 + 4 * number, 16 + 4 * number]


@WORKERS
def test_nested_batches(late, workers: int) -> None:
    """Fields that are no arrays of numbers stay on the host."""
    with mode.place_guard(PLACE):
        loader = PaddleLoader(Shared(6), batch_size=3, num_workers=workers)
        batches = list(loader)
    assert len(batches) == 2
    for number, batch in enumerate(batches):
        numbers = [0, 1, 2] if not workers else [number, number + 2, number + 4]
        numbers = numbers if workers else [n + 3 * number for n in numbers]
        assert batch["name"] == [f"row {n}" for n in numbers]
        assert backend.on_device(batch["x"].array) and backend.on_device(batch["y"].array)
        assert backend.to_host(batch["y"].array).tolist() == numbers
        assert (backend.to_host(batch["x"].array) == np.array(numbers)[:, None]).all()


def test_generators_in_dygraph(any_order) -> None:
    with mode.guard(True), mode.place_guard(PLACE):
        loader = DataLoader.from_generator(capacity=3)
        loader.set_sample_generator(lambda: (Rows(24)[i] for i in range(24)), batch_size=4)
        steps = Steps()
        for x, y in loader():
            steps(x.array, y.array)
        check(steps.finish())
        assert steps.queued == 6
    loader.set_sample_generator(lambda: (Rows(24)[i] for i in range(24)), batch_size=4, places=CPUPlace())
    assert all(isinstance(x.array, np.ndarray) for x, _ in loader())


def as_tensors(samples):
    """A collate_fn that makes tensors, as those of Paddle 2.0 do."""
    return [Tensor(np.stack([x for x, _ in samples])), Tensor(np.concatenate([y for _, y in samples]))]


@WORKERS
def test_a_collate_fn_that_makes_tensors(late, workers: int) -> None:
    with mode.place_guard(PLACE):
        steps = Steps()
        for x, y in PaddleLoader(Rows(8), batch_size=4, num_workers=workers, collate_fn=as_tensors):
            assert x.stop_gradient
            steps(x.array, y.array)
        check(steps.finish())
        assert steps.queued == 2


@WORKERS
def test_batches_stay_as_long_as_they_are_held(any_order, workers: int) -> None:
    with mode.place_guard(PLACE):
        batches = list(PaddleLoader(Rows(24), batch_size=4, num_workers=workers))
    assert leaks()["device_blocks"] == 12 and leaks()["segments"] == 0
    check([[backend.to_host(item.array) for item in batch] for batch in batches])


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("kept", [False, True], ids=["", "persistent"])
def test_leaving_early(late, workers: int, kept: bool) -> None:
    with mode.place_guard(PLACE):
        loader = PaddleLoader(
            Rows(40), batch_size=4, num_workers=workers, persistent_workers=kept and workers > 0
        )
        steps = Steps()
        for taken in (1, 3, 10):
            for k, (x, y) in enumerate(loader):
                steps(x.array, y.array)
                if k + 1 == taken:
                    break
            del x, y
        steps.finish()
        for first, last in ((0, 1), (1, 4), (4, 14)):
            check(steps.seen[first:last])
        gc.collect()
        assert leaks()["threads"] == 0
        loader.close()
    assert leaks()["processes"] == 0


class Stuck(Rows):
    """Its last samples take for ever."""

    def __getitem__(self, idx: int):
        if idx >= 12:
            import threading

            threading.Event().wait()
        return super().__getitem__(idx)


def test_workers_that_hang_do_not_hold_up_the_end(late) -> None:
    with mode.place_guard(PLACE):
        loader = PaddleLoader(Stuck(40), batch_size=4, num_workers=1, persistent_workers=True)
        epoch = iter(loader)
        for k in range(3):
            assert backend.to_host(next(epoch)[1].array).ravel().tolist() == list(range(4 * k, 4 * k + 4))
        epoch.close()  # a thread is waiting for the next batch
        assert leaks()["threads"] == 0 and leaks()["processes"] == 0
        loader.close()


class Broken(Rows):
    def __getitem__(self, idx: int):
        if idx == 9:
            raise OSError("the disk is on fire")
        return super().__getitem__(idx)


@WORKERS
@AHEAD
def test_errors_of_a_dataset(late, workers: int, ahead: bool) -> None:
    with mode.place_guard(PLACE):
        loader = PaddleLoader(Broken(40), batch_size=4, num_workers=workers, use_buffer_reader=ahead)
        steps = Steps()
        with pytest.raises(OSError, match="on fire") as error:
            for x, y in loader:
                steps(x.array, y.array)
        check(steps.finish())
        assert steps.queued == 2 and loader.state is State.FAILED
        del error, x, y


@pytest.mark.parametrize("dataset", [Rows(40), Shared(40)], ids=["numbered", "streamed"])
@WORKERS
def test_only_what_was_taken_counts(late, workers: int, dataset) -> None:
    def numbers(epoch, count: int) -> list:
        found = []
        for _, batch in zip(range(count), epoch, strict=False):
            found.append(
                backend.to_host((batch["y"] if isinstance(batch, dict) else batch[1]).array).ravel().tolist()
            )
        return found

    def loader():
        return PaddleLoader(dataset, batch_size=4, num_workers=workers)

    with mode.place_guard(PLACE):
        expected = numbers(loader(), 10)
        first = loader()
        epoch = iter(first)
        taken = numbers(epoch, 3)
        state = first.state_dict()
        epoch.close()
        assert state["batches"] == 3 and sum(state["workers"]) in (0, 3)
        resumed = loader()
        resumed.set_state_dict(state)
        assert taken + numbers(resumed, 10) == expected


def test_many_epochs(any_order) -> None:
    with mode.place_guard(PLACE):
        loader = PaddleLoader(Rows(9), batch_size=3)
        steps = Steps()
        for number in range(60):
            for k, (_, y) in enumerate(loader):
                steps(y.array)
                if number % 3 == 1 and k == number % 2:
                    break
        del _, y
        loader.close()
        steps.finish()
    gc.collect()
    assert not any(leaks().values())
