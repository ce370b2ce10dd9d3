"""Batches of worker processes arrive unchanged; errors for those that cannot be sent."""

from __future__ import annotations

import gc
import os
import signal
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidlite.base.place import CPUPlace
from fluidlite.dygraph import guard
from fluidlite.paddle.io import BatchSampler, DataLoader
from fluidlite.reader import DataLoader as FluidLoader
from fluidlite.reader.worker.channel import WorkerDied
from fluidlite.reader.worker.pool import WorkerPool

from .helpers import Samples

BIG = 1 << 15  # bytes: more than what travels in the message


def unusual() -> list[np.ndarray]:
    big = np.arange(BIG, dtype="float32")
    frozen = np.arange(3)
    frozen.setflags(write=False)
    return [
        np.array(3.5),
        np.zeros((0, 3), "int8"),
        np.arange(6, dtype="complex64").reshape(2, 3),
        np.arange(6, dtype=">f8"),
        np.array(["a", "long"]),
        np.array([b"x", b"yz"]),
        np.array(["2001-02-03"], "datetime64[D]"),
        np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
        np.array([None, "x"], dtype=object),
        frozen,
        big,
        big.reshape(256, -1).T,
        big[::2],
        np.zeros(BIG, [("a", "i4"), ("b", "f8")])["b"],
        np.arange(BIG).astype("datetime64[s]"),
        np.arange(BIG).astype("float16"),
    ]


@pytest.mark.parametrize("shared", [True, False])
def test_arrays_of_every_kind_arrive_as_they_were(shared: bool) -> None:
    def run(info, requests) -> Iterator[Any]:
        for _ in requests:
            yield unusual()

    with WorkerPool(1, run, use_shared_memory=shared) as pool:
        pool.send(0, None)
        found = pool.receive(0)
    for mine, theirs in zip(unusual(), found, strict=True):
        assert type(theirs) is np.ndarray
        assert theirs.dtype == mine.dtype and theirs.shape == mine.shape
        assert np.array_equal(mine, theirs)
        assert theirs.flags.forc
    found[10][0] = 7  # the consumer's own


def test_a_batch_that_cannot_be_sent() -> None:
    loader = DataLoader(Samples(float), batch_size=2, num_workers=1, collate_fn=lambda batch: lambda: batch)
    with pytest.raises(
        TypeError, match="a batch cannot be sent from its worker process.*local object.*num_workers=0"
    ):
        next(iter(loader))


def test_workers_of_workers_are_refused() -> None:
    def inner(idx: int) -> float:
        return sum(1.0 for _ in DataLoader(Samples(float), batch_size=2, num_workers=1))

    with pytest.raises(AssertionError, match="the DataLoader of Samples: daemonic processes.*num_workers=0"):
        next(iter(DataLoader(Samples(inner), batch_size=2, num_workers=1)))


class Unborn:
    """Cannot be made again in another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)


def test_a_spawned_worker_that_cannot_start(capfd) -> None:
    with (
        WorkerPool(1, print, Unborn(), method="spawn", name="a pool") as pool,
        pytest.raises(RuntimeError, match="exited with status 1 .if it could not start.*importable"),
    ):
        pool.receive(0)
    assert "invalid literal for int" in capfd.readouterr().err


def test_a_lack_of_memory_is_reported_once_for_all_workers() -> None:
    def run(info, requests) -> Iterator[Any]:
        for _ in requests:
            yield np.zeros(BIG)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with WorkerPool(2, run, name="a poor pool", memory_limit=1 << 14) as pool:
            for worker in (0, 1):
                pool.send(worker, None)
                assert pool.receive(worker).shape == (BIG,)
    assert [str(one.message).split(":")[0] for one in caught] == ["worker 0 of 2 of a poor pool"]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda idx: None, TypeError, "DataLoader of Samples: sample 0 is None; samples hold arrays"),
        (
            lambda idx: np.zeros(idx),
            ValueError,
            r"DataLoader of Samples: .*\[0\] in sample 0 and \[1\] in sample 1; pad",
        ),
        (lambda idx: np.array([None]), TypeError, "sample 0 is an array of Python objects of shape"),
        (lambda idx: [1, [[2], [3, 4]]], None, ""),
    ],
)
def test_samples_that_make_no_batch(workers: int, function, error, message: str) -> None:
    loader = DataLoader(Samples(function), batch_size=2, num_workers=workers)
    if error is None:
        assert len(list(loader)) == 2
        return
    with pytest.raises(error, match=message):
        list(loader)


@pytest.mark.parametrize("process", [False, True])
def test_ragged_samples_of_a_generator_name_it(process: bool) -> None:
    def ragged() -> Iterator[Any]:
        for count in range(1, 5):
            yield np.zeros(count, "float32"), 1

    with guard():
        loader = FluidLoader.from_generator(capacity=2, use_multiprocess=process)
        loader.set_sample_generator(ragged, batch_size=4, places=CPUPlace())
        with pytest.raises(
            ValueError, match=r"the reader .*ragged\(\) \(.*\): .* field \[0\] has shape \[1\] in sample 0"
        ):
            next(iter(loader()))


class Odd(BatchSampler):
    """Yields the given batches."""

    def __init__(self, batches: list[Any]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_without_numbers(workers: int) -> None:
    with pytest.raises(TypeError, match="batch_sampler gave None, expected a list"):
        list(DataLoader(Samples(float), batch_sampler=Odd([None]), num_workers=workers))
    with pytest.raises(ValueError, match="DataLoader of Samples: a batch needs samples"):
        list(DataLoader(Samples(float), batch_sampler=Odd([[]]), num_workers=workers))


@pytest.mark.parametrize(
    "wrong", [{"collate_fn": 3}, {"worker_init_fn": "f"}, {"timeout": "1"}, {"timeout": -1}]
)
def test_arguments_are_checked_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match=f"{next(iter(wrong))} should be"):
        DataLoader(Samples(float), batch_size=2, **wrong)


class Cycle:
    """Garbage that only a collection finds, and that tells when it is found."""

    def __init__(self, path: Path) -> None:
        self.path, self.me = path, self

    def __del__(self) -> None:
        with self.path.open("a", encoding="utf8") as file:
            file.write("found\n")


def test_a_worker_leaves_the_garbage_of_the_training_process_alone(tmp_path: Path) -> None:
    def run(info, requests) -> Iterator[int]:
        for _ in requests:
            yield gc.collect()

    found = tmp_path / "found"
    gc.disable()
    try:
        Cycle(found)
        with WorkerPool(1, run) as pool:
            pool.send(0, None)
            pool.receive(0)
        assert not found.exists()
    finally:
        gc.enable()
    gc.collect()
    assert found.read_text(encoding="utf8") == "found\n"


@pytest.mark.parametrize("shared", [True, False])
def test_messages_of_all_sizes_arrive_in_order(shared: bool) -> None:
    def run(info, requests) -> Iterator[Any]:
        for count in requests:
            for i in range(count):
                size = (3, 30_000, 100, 200_000)[
                    i * i % 7 % 4
                ]  # in the ring, and too big for it; as many as want to
                yield i, bytes([i % 251]) * size, np.full(size % 5000, i), {print} if i % 11 == 0 else None

    with WorkerPool(1, run, use_shared_memory=shared) as pool:
        pool.send(0, 600)
        pool.send(0, 1)
        for i in [*range(600), 0]:
            number, contents, array, odd = pool.receive(0)
            assert (
                number == i
                and set(contents) == {i % 251}
                and (array == i).all()
                and (odd is None) == (i % 11 > 0)
            )


def test_what_a_killed_worker_sent_arrives_first() -> None:
    def run(info, requests) -> Iterator[Any]:
        for count in requests:
            yield from range(count)
            os.kill(os.getpid(), signal.SIGKILL)

    with WorkerPool(1, run, name="a pool") as pool:
        pool.send(0, 50)
        assert pool.receive(0) == 0
        time.sleep(0.2)
        assert [pool.receive(0) for _ in range(49)] == list(range(1, 50))
        with pytest.raises(WorkerDied, match="worker 0 of 1 of a pool .* was killed by SIGKILL"):
            pool.receive(0)
