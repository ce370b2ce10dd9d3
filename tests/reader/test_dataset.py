"""Datasets and what is made of them; how samples become batches."""

from __future__ import annotations

import numpy as np
import pytest

from fluidlite.eager import Tensor
from fluidlite.executor.lod_tensor import LoDTensor
from fluidlite.reader import (
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    default_collate_fn,
    get_worker_info,
    random_split,
)
from fluidlite.reader.collating import nested_collate_fn

from ..refusals import refuses


class Numbers(Dataset):
    def __init__(self, count: int, start: int = 0) -> None:
        self.count, self.start = count, start

    def __getitem__(self, idx: int) -> tuple[int, int]:
        return self.start + idx, -idx

    def __len__(self) -> int:
        return self.count


class Stream(IterableDataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self):
        yield from range(self.count)


def test_bases_say_what_to_define() -> None:
    for call, name in ((lambda: Dataset()[0], "__getitem__"), (lambda: len(Dataset()), "__len__")):
        with pytest.raises(NotImplementedError, match=f"'{name}' is not implemented in class Dataset"):
            call()
    refuses(lambda: iter(IterableDataset()), NotImplementedError, "__iter__")
    refuses(lambda: Stream(3)[0], TypeError, "IterableDataset")
    refuses(lambda: len(Stream(3)), TypeError, "no length")
    assert get_worker_info() is None


def test_tensor_dataset() -> None:
    rows = np.arange(6, dtype="float32").reshape(3, 2)
    dataset = TensorDataset([rows, Tensor(np.arange(3)), LoDTensor.wrap(rows + 1)])
    assert len(dataset) == 3
    a, b, c = dataset[2]
    assert a.tolist() == [4, 5] and b == 2 and c.tolist() == [5, 6]
    refuses(lambda: TensorDataset([rows, np.zeros(2)]), ValueError, r"same number of rows, got \[3, 2\]")
    refuses(lambda: TensorDataset([]), ValueError, "at least one")
    refuses(lambda: TensorDataset([np.float32(3)]), ValueError, "no rows")


def test_combined_datasets() -> None:
    both = ComposeDataset([Numbers(3), Numbers(3, 10), TensorDataset([np.arange(3)])])
    assert len(both) == 3 and both[1] == (1, -1, 11, -1, 1)
    assert list(ChainDataset([Stream(2), Stream(3)])) == [0, 1, 0, 1, 2]
    joined = ConcatDataset([Numbers(2), Numbers(0), Numbers(3, 10)])
    assert len(joined) == 5 and [joined[i][0] for i in (0, 1, 2, 4, -1)] == [0, 1, 10, 12, 12]
    refuses(lambda: joined[5], IndexError, "sample 5 of a ConcatDataset of 5")
    subset = Subset(Numbers(9), [4, 2])
    assert len(subset) == 2 and subset[0] == (4, -4)
    refuses(lambda: ComposeDataset([Numbers(3), Numbers(2)]), ValueError, r"same length, got \[3, 2\]")
    with pytest.raises(TypeError, match="dataset 1 of ChainDataset must be an IterableDataset, got Numbers"):
        ChainDataset([Stream(2), Numbers(2)])
    refuses(lambda: ConcatDataset([Stream(2)]), TypeError, "dataset 0 of ConcatDataset must be a Dataset")
    refuses(lambda: ConcatDataset([]), ValueError, "at least one dataset")


def test_random_split() -> None:
    np.random.seed(5)
    parts = random_split(Numbers(10), [7, 3])
    assert [len(part) for part in parts] == [7, 3]
    assert sorted(sample[0] for part in parts for sample in (part[i] for i in range(len(part)))) == list(
        range(10)
    )
    np.random.seed(5)
    assert [part.indices for part in random_split(Numbers(10), [7, 3])] == [part.indices for part in parts]
    assert [len(part) for part in random_split(Numbers(10), [0.5, 0.25, 0.25], generator=1)] == [6, 2, 2]
    for lengths in ([7, 4], [11, -1], [0.5, 0.4], []):
        with pytest.raises(ValueError, match="must add up to"):
            random_split(Numbers(10), lengths)


def test_collating_as_fluid_does() -> None:
    rows = [(np.full(2, i, "float32"), i, i + 0.5, i > 0, [i, 2 * i], f"s{i}", np.int32(i)) for i in range(3)]
    got = default_collate_fn(rows)
    assert [getattr(g, "dtype", type(g)) for g in got] == [
        np.float32, np.int64, np.float64, np.bool_, np.int64, list, np.int32,
    ]  # fmt: skip
    for i, column in enumerate(zip(*rows, strict=True)):
        assert np.array_equal(got[i], np.array(column))
    assert [a.tolist() for a in default_collate_fn([1, 2])] == [[1, 2]]
    (made,) = default_collate_fn([{"a": np.ones(2), "b": 1}, {"a": np.zeros(2), "b": 2}])
    assert made["a"].shape == (2, 2) and made["b"].tolist() == [1, 2]


def test_collating_keeps_structure() -> None:
    made = nested_collate_fn([(i, (i, [i + 0.5]), {"x": np.array(i)}) for i in range(2)])
    assert (
        made[0].tolist() == [0, 1] and made[1][0].tolist() == [0, 1] and made[1][1][0].tolist() == [0.5, 1.5]
    )
    assert made[2]["x"].tolist() == [0, 1]
    assert nested_collate_fn([np.zeros(3), np.ones(3)]).shape == (2, 3)
    assert nested_collate_fn([Tensor(np.zeros(3)), Tensor(np.ones(3))]).tolist() == [[0] * 3, [1] * 3]


@pytest.mark.parametrize(
    "column",
    [
        [np.arange(12.0).reshape(3, 4)[:, ::2], np.ones((3, 2))],  # gaps between the elements
        [np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(6.0).reshape(2, 3)],
        [np.ones(2, "float32"), np.ones(2, "float64")],  # types that have to be joined
        [1, 2.5],
        [True, 2],
        [2**63, 2**63],
        [np.array([1], ">i4"), np.array([2], ">i4")],
        [np.float16(1), np.float16(2)],
        [np.array("x"), np.array("yz")],
        [np.zeros((0, 2)), np.zeros((0, 2))],
        [np.zeros(3, [("a", "i4")])["a"], np.ones(3, "int32")],
    ],
)
def test_unusual_items_are_stacked_like_numpy_does(column) -> None:
    expected = np.stack([np.asarray(item) for item in column])
    for made in (default_collate_fn([(item, 0) for item in column])[0], nested_collate_fn(list(column))):
        assert np.array_equal(made, expected) and made.dtype.newbyteorder("=") == expected.dtype.newbyteorder(
            "="
        )


def test_samples_that_are_not_alike() -> None:
    for samples, error, message in (
        ([(1,), (1, 2)], ValueError, "sample 1 of the batch does not match sample 0.*1 fields"),
        ([(1,), 2], ValueError, "sample 1 of the batch does not match sample 0"),
        ([(np.ones(2),), (np.ones(3),)], ValueError, r"field \[0\] has shape \[2\] in sample 0 and \[3\] in sample 1"),
        ([(np.ones((1, 2)),), (np.ones(2),)], ValueError, r"shape \[1, 2\] in sample 0 and \[2\] in sample 1"),
        ([{"a": 1}, {"b": 1}], ValueError, r"has the keys \['a'\] there"),
        ([([1, [2]],)], ValueError, r"field \[0\] of sample 0 is a ragged list"),
        ([object(), object()], TypeError, "samples hold arrays, numbers, strings"),
        ([(None,), (None,)], TypeError, "field .0. of sample 0 is None"),
        ([], ValueError, "no samples"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            default_collate_fn(samples)


def test_batches_do_not_share_memory_with_samples_or_each_other() -> None:
    rows = [np.ones(1000) for _ in range(4)]
    first = default_collate_fn(rows)[0]
    second = default_collate_fn(rows)[0]
    second[:] = 7
    rows[0][:] = 9
    assert first.min() == first.max() == 1
