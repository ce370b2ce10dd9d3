"""`state_dict` and `set_state_dict`: every kind of loader goes on with exactly the batches that were left."""

from __future__ import annotations

import io
import itertools
import json
import random

import numpy as np
import pytest

from fluidlite.base.errors import EOFException
from fluidlite.base.place import CPUPlace, cpu_places
from fluidlite.data import data
from fluidlite.executor import Executor, Scope, scope_guard
from fluidlite.framework import mode
from fluidlite.paddle.io import DataLoader as PaddleLoader
from fluidlite.reader import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedBatchSampler,
    IterableDataset,
    PyReader,
    RandomSampler,
    batch,
    get_worker_info,
)

PLACE = CPUPlace()


class Numbers(Dataset):
    """Notes which samples were read in this process."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.read: list[int] = []

    def __getitem__(self, idx: int):
        self.read.append(idx)
        return (np.array([idx]),)

    def __len__(self) -> int:
        return self.count


class Shared(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, 13, step):
            yield (i,)


def through_json(state):
    return json.loads(json.dumps(state))


def through_numpy(state):
    file = io.BytesIO()
    np.save(file, state)
    file.seek(0)
    return np.load(file, allow_pickle=True).item()


def numbers(loader) -> list[list[int]]:
    return [t.numpy().ravel().tolist() for (t,) in loader]


def interrupted(make, after: int, epochs: int = 0, through=through_json):
    """The batches of `epochs` whole epochs and `after` more, and those of two epochs by a loader that goes on."""
    loader = make()
    before = [numbers(loader) for _ in range(epochs)]
    begun = []
    if after:
        for (t,) in loader:
            begun.append(t.numpy().ravel().tolist())
            if len(begun) == after:
                break
    state = through(loader.state_dict())
    resumed = make()
    resumed.set_state_dict(state)
    assert resumed.state_dict() == state
    return [*before, begun + numbers(resumed), numbers(resumed)], resumed


MAKERS = {
    "in order": lambda workers: PaddleLoader(Numbers(11), batch_size=2, num_workers=workers),
    "shuffled": lambda workers: PaddleLoader(Numbers(11), batch_size=2, shuffle=True, num_workers=workers),
    "own generator": lambda workers: PaddleLoader(
        Numbers(11),
        batch_sampler=BatchSampler(sampler=RandomSampler(Numbers(11), generator=4), batch_size=2),
        num_workers=workers,
    ),
    "one by one": lambda workers: PaddleLoader(
        Numbers(6), batch_size=None, shuffle=True, num_workers=workers
    ),
    "iterable": lambda workers: PaddleLoader(Shared(), batch_size=2, num_workers=workers),
    "persistent": lambda workers: PaddleLoader(
        Numbers(11), batch_size=2, shuffle=True, num_workers=workers, persistent_workers=True
    ),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("workers", [0, 2])
def test_datasets(kind: str, workers: int) -> None:
    def make():
        return MAKERS[kind](workers)

    np.random.seed(8)
    loader = make()
    expected = [numbers(loader) for _ in range(3)]
    loader.close()
    cases = list(itertools.product((0, 1, 4, len(expected[0])), (0, 1)))
    for after, epochs in cases[1::3] if workers else cases:
        np.random.seed(8)
        got, resumed = interrupted(make, after, epochs)
        # A loop that took the last batch but has not seen the end goes on with an empty rest.
        assert got == expected[: len(got)], (after, epochs)
        resumed.close()


def test_nothing_is_read_twice() -> None:
    np.random.seed(0)
    loader = PaddleLoader(Numbers(10), batch_size=2, shuffle=True)
    epoch = iter(loader)
    begun = [next(epoch)[0].numpy().ravel().tolist() for _ in range(3)]
    state = loader.state_dict()
    epoch.close()
    resumed = PaddleLoader(Numbers(10), batch_size=2, shuffle=True)
    resumed.set_state_dict(state)
    rest = numbers(resumed)
    assert sorted(sum(begun + rest, [])) == list(range(10))
    assert resumed.dataset.read == sum(rest, [])


def test_fluids_loader_goes_on_in_the_second_epoch() -> None:
    def make():
        return DataLoader(Numbers(9), batch_size=2, shuffle=True)

    with mode.guard(True):
        np.random.seed(8)
        loader = make()
        expected = [numbers(loader) for _ in range(3)]
        np.random.seed(8)
        assert interrupted(make, 2, epochs=1)[0] == expected
        np.random.seed(8)
        assert interrupted(make, 2, epochs=1, through=through_numpy)[0] == expected


class OwnBatches(BatchSampler):
    """Batches of a subclass, in an order that `module` draws when the first is asked for."""

    def __init__(self, module) -> None:
        self.module = module

    def __iter__(self):
        order = list(OwnOrder(self.module))
        for i in range(0, 8, 2):
            yield order[i : i + 2]

    def __len__(self) -> int:
        return 4


class OwnOrder(RandomSampler):
    """Numbers in an order that `module` draws."""

    def __init__(self, module) -> None:
        super().__init__(range(8))
        self.module = module

    def __iter__(self):
        order = list(range(8))
        self.module.shuffle(order)
        return iter(order)


@pytest.mark.parametrize("module", [np.random, random])
@pytest.mark.parametrize("make", [OwnBatches, lambda m: BatchSampler(sampler=OwnOrder(m), batch_size=2)])
def test_samplers_of_the_user_that_draw(make, module) -> None:
    module.seed(4)
    expected = numbers(PaddleLoader(Numbers(8), batch_sampler=make(module)))
    module.seed(4)
    loader = PaddleLoader(Numbers(8), batch_sampler=make(module))
    epoch = iter(loader)
    begun = [next(epoch)[0].numpy().ravel().tolist()]
    state = through_json(loader.state_dict())
    epoch.close()
    module.seed(99)
    drawn = module.random()
    module.seed(99)
    resumed = PaddleLoader(Numbers(8), batch_sampler=make(module))
    resumed.set_state_dict(state)
    assert begun + numbers(resumed) == expected
    assert module.random() == drawn  # the state outside is what it was


def test_load_state_dict_is_another_name() -> None:
    loader = PaddleLoader(Numbers(4), batch_size=2)
    loader.load_state_dict({**through_json(loader.state_dict()), "batches": 1})
    assert numbers(loader) == [[2, 3]]
    with mode.guard(True):
        reader = PyReader(capacity=2, return_list=True)
    reader.load_state_dict({"epoch": 3, "batches": 1})
    assert reader.state_dict() == {"epoch": 3, "batches": 1}


def test_an_iterable_dataset_needs_the_same_workers() -> None:
    loader = PaddleLoader(Shared(), batch_size=2, num_workers=2)
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    epoch.close()
    resumed = PaddleLoader(Shared(), batch_size=2, num_workers=3)
    resumed.set_state_dict(state)
    for _ in range(2):  # the state is kept
        with pytest.raises(ValueError, match="begun with num_workers=2 cannot go on with 3"):
            iter(resumed)
    alone = PaddleLoader(Shared(), batch_size=2)
    alone.set_state_dict(state)
    with pytest.raises(ValueError, match="cannot go on with 0"):
        iter(alone)
    with pytest.raises(ValueError, match="state of a loader of an IterableDataset, which Numbers is not"):
        PaddleLoader(Numbers(4)).set_state_dict(state)


@pytest.fixture
def variable(programs):
    return data("n", [None, 1], "int64")


def samples():
    for i in range(11):
        yield (np.array([i]),)


def ready():
    for i in range(6):
        yield (np.full((2, 1), i),)


SETTERS = {
    "samples": lambda loader, places: loader.set_sample_generator(samples, 2, False, places),
    "lists": lambda loader, places: loader.set_sample_list_generator(batch(samples, 2), places),
    "ready": lambda loader, places: loader.set_batch_generator(ready, places),
}


@pytest.mark.parametrize("process", [False, True])
@pytest.mark.parametrize("kind", SETTERS)
@pytest.mark.parametrize("devices", [1, 2])
def test_iterable_generators(variable, kind: str, devices: int, process: bool) -> None:
    def make():
        loader = DataLoader.from_generator([variable], 4, use_multiprocess=process)
        SETTERS[kind](loader, cpu_places(devices))
        return loader

    def fed(loader) -> list[list[list[int]]]:
        return [[feed["n"].array.ravel().tolist() for feed in feeds] for feeds in loader]

    expected = fed(make())
    for after in (0, 1, len(expected)):
        loader = make()
        epoch = iter(loader)
        begun = [[feed["n"].array.ravel().tolist() for feed in next(epoch)] for _ in range(after)]
        state = through_json(loader.state_dict())
        assert state == {"epoch": 0, "batches": after}
        epoch.close()
        resumed = make()
        resumed.set_state_dict(state)
        assert begun + fed(resumed) == expected
        assert fed(resumed) == expected and resumed.state_dict() == {"epoch": 2, "batches": 0}
        loader.close()
        resumed.close()


@pytest.mark.parametrize("process", [False, True])
@pytest.mark.parametrize("kind", SETTERS)
def test_dygraph_generators(kind: str, process: bool) -> None:
    with mode.guard(True):

        def make():
            return SETTERS[kind](DataLoader.from_generator(capacity=4, use_multiprocess=process), PLACE)

        expected = numbers(make())
        loader = make()
        epoch = iter(loader)
        begun = [next(epoch)[0].numpy().ravel().tolist() for _ in range(2)]
        state = through_json(loader.state_dict())
        epoch.close()
        resumed = make()
        resumed.set_state_dict(state)
        assert begun + numbers(resumed) == expected == numbers(resumed)
        stats = resumed.stats()
        assert (stats["epochs"], stats["batches"]) == (2, 2 * len(expected) - 2)
        assert "bottleneck" in resumed.summary()


@pytest.fixture
def scope():
    with scope_guard(Scope()):
        yield


@pytest.mark.usefixtures("scope")
@pytest.mark.parametrize("old", [False, True])
def test_programs(variable, old: bool) -> None:
    """The state counts the batches that the program has read, not those that wait."""

    def make():
        if old:
            loader = PyReader([variable], capacity=4, iterable=False)
            loader.decorate_sample_list_generator(batch(samples, 2))
        else:
            loader = DataLoader.from_generator([variable], 4, iterable=False)
            loader.set_sample_list_generator(batch(samples, 2))
        return loader

    loader = make()
    executor = Executor(PLACE)

    def step() -> list[int]:
        return executor.run(fetch_list=[variable])[0].ravel().tolist()

    loader.start()
    begun = [step() for _ in range(3)]
    state = through_json(loader.state_dict())
    assert state == {"epoch": 0, "batches": 3}
    loader.reset()
    loader.set_state_dict(state)
    loader.start()
    rest = [step() for _ in range(3)]
    assert sum(begun + rest, []) == list(range(11))
    with pytest.raises(EOFException):
        step()
    assert loader.state_dict() == {"epoch": 1, "batches": 0}
    loader.reset()
    loader.start()
    assert step() == [0, 1]
    loader.reset()


def test_states_of_something_else(variable) -> None:
    generator = DataLoader.from_generator([variable], 2)
    for state, message in (
        (None, "got NoneType"),
        ({"epoch": 1}, "expected a dict with.*batches"),
        ({"epoch": 0, "batches": -1}, "'batches' of at least 0, got -1"),
        ({"epoch": "x", "batches": 1}, "whole number 'epoch', got 'x'"),
    ):
        with pytest.raises(ValueError, match=message):
            generator.set_state_dict(state)
    with pytest.raises(ValueError, match=r"got the keys \['batches', 'epoch'\]"):
        PaddleLoader(Numbers(3)).set_state_dict({"epoch": 0, "batches": 1})


@pytest.mark.parametrize(
    "before, after, batches", [((2, 4), (4, 2), 2), ((4, 2), (1, 8), 3), ((1, 8), (2, 4), 0)]
)
def test_processes_go_on_as_another_number_of_them(before, after, batches):
    """As many samples of all in a step: each is read once, in the order of one process."""

    def loaders(ranks, size):
        found = []
        for rank in range(ranks):
            sampler = DistributedBatchSampler(Numbers(40), size, ranks, rank, shuffle=True)
            found.append(PaddleLoader(Numbers(40), batch_sampler=sampler))
        return found

    def steps(found):
        for per_rank in zip(*found, strict=True):
            yield np.concatenate([np.ravel(fields[0].numpy()) for fields in per_rank]).tolist()

    expected = list(steps(loaders(1, 8)))
    first = loaders(*before)
    running = steps(first)
    read = [next(running) for _ in range(batches)]
    states = [through_json(loader.state_dict()) for loader in first]
    later = loaders(*after)
    for loader in later:
        loader.set_state_dict(states[0])
    assert states == states[:1] * before[0]
    assert read + list(steps(later)) == expected
    assert sorted(sum(expected, [])) == list(range(40))
