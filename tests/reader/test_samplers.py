"""Samplers: orders, batches, seeds that give what Fluid gives, and states to go on from."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fluidlite.reader import (
    BatchSampler,
    DistributedBatchSampler,
    FluidBatchSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequenceSampler,
    WeightedRandomSampler,
)

from ..refusals import refuses
from .helpers import Samples


def test_sequence_and_batches() -> None:
    assert list(SequenceSampler(Samples(count=3))) == [0, 1, 2]
    sampler = BatchSampler(Samples(count=7), batch_size=3)
    assert list(sampler) == list(sampler) == [[0, 1, 2], [3, 4, 5], [6]] and len(sampler) == 3
    sampler = BatchSampler(Samples(count=7), batch_size=3, drop_last=True)
    assert list(sampler) == [[0, 1, 2], [3, 4, 5]] and len(sampler) == 2
    assert list(BatchSampler(indices=[5, 1, 2], batch_size=2)) == [[5, 1], [2]]
    assert list(BatchSampler(sampler=SequenceSampler(Samples(count=3)), batch_size=2)) == [[0, 1], [2]]
    assert list(BatchSampler(None, SequenceSampler(Samples(count=3)), batch_size=2)) == [[0, 1], [2]]


def test_orders_are_those_of_fluid() -> None:
    # Recorded with Paddle 1.8.5: batches of two of five samples, two epochs after np.random.seed(3).
    recorded = [[[3, 4], [1, 0], [2]], [[1, 4], [0, 2], [3]]]
    np.random.seed(3)
    sampler = FluidBatchSampler(Samples(count=5), shuffle=True, batch_size=2)
    assert [list(sampler), list(sampler)] == recorded
    np.random.seed(3)
    indices = FluidBatchSampler(indices=[10, 11, 12, 13, 14], shuffle=True, batch_size=2)
    assert [[[i - 10 for i in batch] for batch in indices] for _ in range(2)] == recorded


def test_random_sampler() -> None:
    np.random.seed(0)
    first, second = list(RandomSampler(Samples(count=50))), list(RandomSampler(Samples(count=50)))
    assert sorted(first) == sorted(second) == list(range(50)) and first != second
    assert len(RandomSampler(Samples(count=50), num_samples=7)) == 7
    assert len(set(RandomSampler(Samples(count=50), num_samples=7))) == 7
    drawn = list(RandomSampler(Samples(count=5), replacement=True, num_samples=200))
    assert len(drawn) == 200 and set(drawn) == set(range(5))
    for generator in (7, np.random.RandomState(7), np.random.default_rng(7)):
        assert sorted(RandomSampler(Samples(count=9), generator=generator)) == list(range(9))
        assert set(RandomSampler(Samples(count=3), True, 50, generator)) == {0, 1, 2}
    assert list(RandomSampler(Samples(count=9), generator=7)) == list(
        RandomSampler(Samples(count=9), generator=7)
    )
    refuses(lambda: RandomSampler(Samples(count=9), generator="seven"), TypeError, r"seed \(int\).*got str")


def test_weighted_sampler() -> None:
    np.random.seed(0)
    drawn = list(WeightedRandomSampler([0, 1, 3], 4000))
    assert len(drawn) == 4000 and set(drawn) == {1, 2} and 0.7 < np.mean(np.array(drawn) == 2) < 0.8
    assert sorted(WeightedRandomSampler([0.5, 0, 2], 2, replacement=False)) == [0, 2]
    with pytest.raises(AssertionError, match=r"num_samples \(3\).*positive weights \(2\)"):
        WeightedRandomSampler([0.5, 0, 2], 3, replacement=False)
    refuses(lambda: WeightedRandomSampler([-1, 2], 3), AssertionError, "not negative")
    refuses(lambda: WeightedRandomSampler([0, 0], 3), AssertionError, "above 0")


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("count", [7, 12, 13])
def test_distributed_batches_cover_everything(count: int, drop_last: bool) -> None:
    ranks = [
        DistributedBatchSampler(Samples(count=count), 2, num_replicas=3, rank=r, drop_last=drop_last)
        for r in range(3)
    ]
    batches = [list(rank) for rank in ranks]
    assert [len(rank) for rank in ranks] == [len(b) for b in batches]
    assert len({len(b) for b in batches}) == 1
    seen = [i for b in batches for batch in b for i in batch]
    if not drop_last:
        assert set(seen) == set(range(count)) and len(seen) == -(-count // 3) * 3
    assert batches[0][0] == [0, 1] and batches[1][0] == [2, 3]


def test_distributed_shuffles_by_epoch(monkeypatch) -> None:
    sampler = DistributedBatchSampler(Samples(count=20), 5, num_replicas=2, rank=0, shuffle=True)
    other = DistributedBatchSampler(Samples(count=20), 5, num_replicas=2, rank=1, shuffle=True)
    first, second = list(sampler), list(sampler)
    assert first != second and sampler.epoch == 2
    assert not {i for b in first for i in b} & {i for b in other for i in b}
    sampler.set_epoch(0)
    assert list(sampler) == first
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "4")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "2")
    from_environment = DistributedBatchSampler(Samples(count=20), 5)
    assert (from_environment.nranks, from_environment.local_rank) == (4, 2)
    with pytest.raises(AssertionError, match="rank should be an integer from 0 to 1"):
        DistributedBatchSampler(Samples(count=20), 5, num_replicas=2, rank=2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BatchSampler(Samples(count=11), shuffle=True, batch_size=3),
        lambda: FluidBatchSampler(Samples(count=11), shuffle=True, batch_size=3),
        lambda: BatchSampler(sampler=RandomSampler(Samples(count=11), generator=5), batch_size=3),
        lambda: BatchSampler(sampler=RandomSampler(Samples(count=11), generator=np.random.default_rng(5))),
        lambda: BatchSampler(sampler=WeightedRandomSampler(range(9), 20)),
        lambda: DistributedBatchSampler(Samples(count=11), 3, shuffle=True),
        lambda: BatchSampler(Samples(count=11), batch_size=3),
    ],
)
def test_states_reproduce_the_same_epochs(make) -> None:
    sampler = make()
    list(sampler)
    state = json.loads(json.dumps(sampler.state_dict()))
    epochs = [list(sampler) for _ in range(3)]
    restored = make()
    np.random.seed(1234)
    restored.set_state_dict(state)
    assert [list(restored) for _ in range(3)] == epochs


def test_a_state_of_something_else() -> None:
    with pytest.raises(ValueError, match="not the state of a sampler"):
        RandomSampler(Samples(count=3)).set_state_dict({"draws": {"bit_generator": "Nonsense"}})


def test_wrong_arguments_are_refused_as_fluid_does() -> None:
    class Endless(IterableDataset):
        pass

    for arguments, message in (
        ({}, "either dataset, indices or sampler"),
        ({"dataset": Samples(count=3), "indices": [1]}, "should not set both dataset and indices"),
        ({"dataset": [1, 2]}, "instance of paddle.io.Dataset.*got list"),
        ({"dataset": Endless()}, "with numbered samples, but got Endless"),
        (
            {"dataset": Samples(count=3), "batch_size": 0},
            "batch_size should be a positive integer, but got 0",
        ),
        (
            {"dataset": Samples(count=3), "batch_size": 1.5},
            "batch_size should be a positive integer, but got 1.5",
        ),
        ({"dataset": Samples(count=3), "batch_size": True}, "batch_size should be a positive integer"),
        ({"dataset": Samples(count=3), "shuffle": 1}, "shuffle should be a boolean value"),
        ({"dataset": Samples(count=3), "drop_last": 1}, "drop_last should be a boolean value"),
    ):
        with pytest.raises(AssertionError, match=message):
            BatchSampler(**arguments)
    with pytest.raises(AssertionError, match=r"num_samples \(4\) without replacement.*\(3\)"):
        RandomSampler(Samples(count=3), num_samples=4)
    refuses(lambda: iter(Sampler()), NotImplementedError, "'__iter__' is not implemented in class Sampler")
    refuses(lambda: len(Sampler()), TypeError, "without a dataset")
