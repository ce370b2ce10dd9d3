"""Ragged samples through every kind of loader: the step gets the sequences that the generator made."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.reader import LoaderError
from fluidlite.reader.worker.channel import WorkerDied

PLACE = fluid.CPUPlace()
BATCH = 3
LENGTHS = [3, 0, 1, 5, 2, 2, 0, 0, 0, 4, 1]  # of a whole batch too: none
KINDS = ["samples", "lists", "ready"]


def rows(wide: int = 1) -> list[tuple[list[int], np.ndarray, list[list[int]], int]]:
    """For each sample words, vectors of two numbers, sentences of words, and how many words there are."""
    made = []
    for k, n in enumerate(LENGTHS):
        words = [100 * k + i for i in range(n * wide)]
        vectors = np.full((n * wide, 2), k, "float32")
        made.append((words, vectors, [words[: n // 2], [], words[n // 2 :]], len(words)))
    return made


def in_batches(samples: list[Any]) -> list[list[Any]]:
    return [samples[begin : begin + BATCH] for begin in range(0, len(samples), BATCH)]


def ready(batch: list[Any]) -> tuple[Any, ...]:
    words, vectors, nested, counts = zip(*batch, strict=True)
    inner = [len(sentence) for sentences in nested for sentence in sentences]
    ids = np.array([word for sequence in words for word in sequence], "int64").reshape(-1, 1)
    return (
        fluid.create_lod_tensor(ids, [[len(w) for w in words]], PLACE),
        fluid.create_lod_tensor(np.concatenate(vectors), [[len(v) for v in vectors]], PLACE),
        fluid.create_lod_tensor(ids, [[3] * len(nested), inner], PLACE),
        np.array(counts, "int64").reshape(-1, 1),
    )


@pytest.fixture(autouse=True)
def own_program() -> Iterator[None]:
    """A program of the test's own, and with it the plans, which hold the arrays of the last step."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


def variables() -> list[Any]:
    return [
        fluid.data("words", [None, 1], "int64", lod_level=1),
        fluid.data("vectors", [None, 2], "float32", lod_level=1),
        fluid.data("nested", [None, 1], "int64", lod_level=2),
        fluid.data("count", [None, 1], "int64"),
    ]


def given(loader: Any, kind: str, wide: int = 1, samples: Callable[[], Any] | None = None) -> None:
    """Set a generator of this kind on the loader."""
    source = samples if samples is not None else lambda: iter(rows(wide))
    places = PLACE if loader.iterable else None
    if kind == "samples":
        loader.set_sample_generator(source, BATCH, drop_last=False, places=places)
    elif kind == "lists":
        loader.set_sample_list_generator(lambda: iter(in_batches(list(source()))), places=places)
    else:
        loader.set_batch_generator(lambda: map(ready, in_batches(list(source()))), places=places)


def wanted(wide: int = 1) -> list[tuple[Any, ...]]:
    return [tuple(shown(tensor) for tensor in ready(batch)) for batch in in_batches(rows(wide))]


def shown(tensor: Any) -> tuple[Any, ...]:
    lod = tensor.lod() if isinstance(tensor, fluid.LoDTensor) else []
    return np.array(tensor).tolist(), lod


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize(("process", "wide"), [(False, 1), (True, 1), (True, 3000)])
def test_iterable(kind: str, process: bool, as_list: bool, wide: int) -> None:
    found = variables()
    options = {"capacity": 2, "use_multiprocess": process, "return_list": as_list}
    loader = fluid.io.DataLoader.from_generator(found, **options)
    given(loader, kind, wide)
    for _ in range(2):
        got = []
        for feed in loader():
            tensors = feed if as_list else [feed[0][var.name] for var in found]
            (tensors,) = tensors if as_list and isinstance(tensors[0], list) else (tensors,)
            assert all(type(tensor) is fluid.LoDTensor for tensor in tensors)
            assert not any(level.flags.writeable for tensor in tensors for level in tensor.offsets)
            got.append(tuple(shown(tensor) for tensor in tensors))
        assert got == wanted(wide)


def network(found: list[Any]) -> list[Any]:
    words, vectors, nested, count = found
    layers = fluid.layers
    sums = layers.sequence_pool(layers.cast(words, "float32"), "sum")
    last = layers.sequence_pool(layers.sequence_pool(layers.cast(nested, "float32"), "sum"), "sum")
    return [sums, layers.sequence_pool(vectors, "max"), last, count]


def computed(wide: int = 1) -> list[list[list[float]]]:
    made = []
    for batch in in_batches(rows(wide)):
        sums = [sum(words) for words, *_ in batch]
        most = [vectors.max(axis=0, initial=0).tolist() for _, vectors, *_ in batch]
        made.append([sums, most, sums, [count for *_, count in batch]])
    return made


def fetched(values: list[Any]) -> list[Any]:
    sums, most, last, count = (np.asarray(value) for value in values)
    return [sums.ravel().tolist(), most.tolist(), last.ravel().tolist(), count.ravel().tolist()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("process", [False, True])
def test_a_step_gets_the_sequences(kind: str, process: bool) -> None:
    found = variables()
    fetches = network(found)
    exe = fluid.Executor(PLACE)
    loader = fluid.io.DataLoader.from_generator(found, capacity=2, use_multiprocess=process)
    given(loader, kind)
    filled = [0, 1, 3]  # a batch of nothing but empty sequences is not pooled in Fluid
    got = [exe.run(feed=feed, fetch_list=fetches) for k, feed in enumerate(loader()) if k in filled]
    assert [fetched(values) for values in got] == [computed()[k] for k in filled]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("process", [False, True])
def test_a_program_reads_sequences_itself(kind: str, process: bool) -> None:
    found = variables()
    loader = fluid.io.DataLoader.from_generator(found, capacity=2, iterable=False, use_multiprocess=process)
    twice = [fluid.layers.scale(var, 2.0) for var in found]
    given(loader, kind)
    exe = fluid.Executor(PLACE)
    for _ in range(2):
        loader.start()
        got = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                values = exe.run(fetch_list=twice, return_numpy=False)
                got.append(tuple((np.array(v) // 2, v.lod()) for v in values))
        loader.reset()
        assert [tuple((array.tolist(), lod) for array, lod in batch) for batch in got] == wanted()


@pytest.mark.parametrize("iterable", [True, False])
def test_py_reader(iterable: bool) -> None:
    found = variables()
    reader = fluid.io.PyReader(feed_list=found, capacity=2, iterable=iterable)
    reader.decorate_sample_list_generator(
        lambda: iter(in_batches(rows())), places=PLACE if iterable else None
    )
    got = []
    if iterable:
        got = [tuple(shown(feed[0][var.name]) for var in found) for feed in reader()]
    else:
        exe = fluid.Executor(PLACE)
        same = [fluid.layers.assign(var) for var in found]
        reader.start()
        with pytest.raises(fluid.core.EOFException):
            while True:
                values = exe.run(fetch_list=same, return_numpy=False)
                got.append(tuple(shown(value) for value in values))
        reader.reset()
    assert got == wanted()


@pytest.mark.parametrize("workers", [0, 2])
def test_datasets_of_sequences(workers: int) -> None:
    found = variables()
    loader = fluid.io.DataLoader(
        Ragged(), feed_list=found, places=PLACE, batch_size=BATCH, num_workers=workers
    )
    got = [tuple(shown(feed[0][var.name]) for var in found) for feed in loader]
    assert got == wanted(500)


class Ragged(fluid.io.Dataset):
    def __len__(self) -> int:
        return len(LENGTHS)

    def __getitem__(self, index: int) -> Any:
        return rows(500)[index]


def test_buckets_of_sequences_of_similar_length() -> None:
    """Batches of other sizes each time: long sequences in small ones, as readers of translations make them."""
    draw = random.Random(4)
    lengths = [draw.choice([1, 3, 40, 900]) for _ in range(200)]

    def bucketed() -> Iterator[Any]:
        waiting: list[int] = []
        for n in sorted(lengths):
            if waiting and n * (len(waiting) + 1) > 1000:
                yield [([k] * k, k) for k in waiting]
                waiting = []
            waiting.append(n)
        yield [([k] * k, k) for k in waiting]

    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    size = fluid.data("size", [None, 1], "int64")
    loader = fluid.io.DataLoader.from_generator([words, size], capacity=4)
    loader.set_sample_list_generator(bucketed, places=PLACE)
    seen = []
    for (feed,) in loader():
        sizes = np.array(feed["size"]).ravel().tolist()
        assert feed["words"].recursive_sequence_lengths() == [sizes]
        np.testing.assert_array_equal(np.array(feed["words"]).ravel(), np.repeat(sizes, sizes))
        seen += sizes
    assert seen == sorted(lengths)


@pytest.mark.parametrize("process", [False, True])
def test_several_places_get_a_batch_each(process: bool) -> None:
    words = fluid.data("words", [None, 1], "float32", lod_level=1)
    twice = fluid.layers.scale(words, 2.0)
    loader = fluid.io.DataLoader.from_generator([words], capacity=2, use_multiprocess=process)
    loader.set_sample_list_generator(
        lambda: iter([[([1.0, 2.0],), ([],)], [([3.0],)], [([4.0],)]]), places=fluid.cpu_places(2)
    )
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        places=fluid.cpu_places(2)
    )
    got = [
        fluid.Executor().run(program, feed=feeds, fetch_list=[twice], return_numpy=False)[0]
        for feeds in loader()
    ]
    assert [shown(tensor) for tensor in got] == [([[2.0], [4.0], [6.0]], [[0, 2, 2, 3]])]


def bad_samples() -> Iterator[Any]:
    yield [1], np.ones((1, 2)), [[1]], 1
    yield [1], np.ones((1, 2)), [1], 1


@pytest.mark.parametrize("process", [False, True])
@pytest.mark.parametrize("kind", ["samples", "lists"])
def test_a_sample_that_is_not_nested_as_declared_is_named(kind: str, process: bool) -> None:
    loader = fluid.io.DataLoader.from_generator(variables(), capacity=2, use_multiprocess=process)
    given(loader, kind, samples=bad_samples)
    with pytest.raises(
        (LoaderError, TypeError), match=r"sample 1 .*'nested': expected a sequence .*lod_level is 2"
    ):
        list(loader())


def mortal(after: float) -> Iterator[Any]:
    """Big ragged batches without end from a process that is killed after a while."""
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL)).start()
    draw = random.Random(0)
    while True:
        n = draw.choice([0, 1, 30_000])
        yield list(range(n)), np.full((n, 2), n, "float32"), [list(range(n))], n


@pytest.mark.parametrize("kind", ["samples", "lists"])
@pytest.mark.parametrize("after", [0.0, 0.01, 0.05, 0.12, 0.2])
def test_a_worker_killed_while_it_hands_batches_over(kind: str, after: float) -> None:
    found = variables()
    loader = fluid.io.DataLoader.from_generator(found, capacity=3, use_multiprocess=True)
    if kind == "samples":
        given(loader, kind, samples=lambda: mortal(after))
    else:

        def lists() -> Iterator[Any]:
            samples = mortal(after)
            while True:
                yield [next(samples) for _ in range(BATCH)]

        loader.set_sample_list_generator(lists, places=PLACE)
    held = []
    with pytest.raises(WorkerDied, match="killed by SIGKILL"):
        for (feed,) in loader():
            held = [*held[-2:], feed]
            counts = np.array(feed["count"]).ravel().tolist()
            assert feed["words"].recursive_sequence_lengths() == [counts]
            assert feed["nested"].lod()[0] == list(range(len(counts) + 1))
            assert feed["words"].shape() == [sum(counts), 1] and feed["vectors"].shape() == [sum(counts), 2]
    for feed in held:  # what was handed over stays whole
        counts = np.array(feed["count"]).ravel()
        np.testing.assert_array_equal(np.array(feed["vectors"])[:, 0], np.repeat(counts, counts))


def test_epochs_of_ragged_batches_left_at_random_moments() -> None:
    draw = random.Random(7)
    loader = fluid.io.DataLoader.from_generator(variables(), capacity=3, use_multiprocess=True)
    given(loader, "samples", 2000)
    for _ in range(12):
        stop = draw.randrange(5)
        for k, (feed,) in enumerate(loader()):
            assert shown(feed["count"])[0] == [[row[3]] for row in in_batches(rows(2000))[k]]
            if k == stop:
                break
