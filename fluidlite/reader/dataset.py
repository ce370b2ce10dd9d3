"""Map-style and iterable datasets, and combinations of datasets (`paddle.io`, `fluid.io`)."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from .random_source import Seed, as_generator

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples that are got by their number. A subclass defines `__getitem__` and `__len__`.

    A sample is an array, a number, a string, or a tuple, list or dict of such. A `DataLoader` asks for samples from a
    thread or from worker processes. Follows `paddle.io.Dataset`.
    """

    def __getitem__(self, idx: int) -> T_co:
        """The sample number `idx`, from 0 to `len(self) - 1`."""
        raise NotImplementedError(
            f"'__getitem__' is not implemented in class {type(self).__name__}: define __getitem__(self, idx), which "
            "returns the sample number idx"
        )

    def __len__(self) -> int:
        """How many samples there are."""
        raise NotImplementedError(
            f"'__len__' is not implemented in class {type(self).__name__}: define __len__(self), which returns how "
            "many samples there are"
        )


def is_numbered(dataset: Any) -> bool:
    """Whether samples are got by their number: of a `Dataset`, and of others with `__getitem__` and `__len__`.

    Python's own containers are none: a list in place of a data set is more often one of variables.
    """
    if isinstance(dataset, Dataset):
        return not isinstance(dataset, IterableDataset)
    kind = type(dataset)
    own = isinstance(dataset, (list, tuple, str, bytes, Mapping))
    return hasattr(kind, "__getitem__") and hasattr(kind, "__len__") and not own


class IterableDataset(Dataset[T_co]):
    """Samples that come one after the other. A subclass defines `__iter__`.

    Every worker process of a `DataLoader` iterates over its own copy, so `__iter__` has to ask `get_worker_info` which
    part of the samples is its own. Follows `paddle.io.IterableDataset`.
    """

    def __iter__(self) -> Iterator[T_co]:
        """The samples of one epoch."""
        raise NotImplementedError(
            f"'__iter__' is not implemented in class {type(self).__name__}: define __iter__(self), which yields the "
            "samples of one epoch"
        )

    def __getitem__(self, idx: int) -> T_co:
        """Raises TypeError: there are no numbered samples."""
        raise TypeError(
            f"{type(self).__name__} is an IterableDataset: iterate over it, it has no sample {idx!r}"
        )

    def __len__(self) -> int:
        """Raises TypeError unless a subclass knows how many samples it yields."""
        raise TypeError(f"{type(self).__name__} is an IterableDataset, which has no length")


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Tuples of the rows of `tensors`: arrays, Tensors or LoDTensors with the same number of rows.

    Raises ValueError if there are none, or if their numbers of rows differ. Follows `paddle.io.TensorDataset`.
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        self.tensors = [_as_rows(tensor, i) for i, tensor in enumerate(tensors)]
        if not self.tensors:
            raise ValueError("TensorDataset takes at least one tensor")
        rows = [len(tensor) for tensor in self.tensors]
        if len(set(rows)) > 1:
            raise ValueError(f"the tensors of a TensorDataset need the same number of rows, got {rows}")

    def __getitem__(self, idx: int) -> tuple[Any, ...]:
        return tuple([tensor[idx] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class ComposeDataset(Dataset[tuple[Any, ...]]):
    """Datasets of the same length side by side: the fields of sample `i` of each, in one list.

    Raises ValueError if there are none or their lengths differ. Follows `paddle.io.ComposeDataset`.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = _checked(datasets, type(self).__name__, iterable=False)
        lengths = [len(dataset) for dataset in self.datasets]
        if len(set(lengths)) > 1:
            raise ValueError(f"the datasets of a ComposeDataset need the same length, got {lengths}")

    def __getitem__(self, idx: int) -> tuple[Any, ...]:
        fields: list[Any] = []
        for dataset in self.datasets:
            sample = dataset[idx]
            if isinstance(sample, (tuple, list)):
                fields.extend(sample)
            else:
                fields.append(sample)
        return tuple(fields)

    def __len__(self) -> int:
        return len(self.datasets[0])


class ChainDataset(IterableDataset[Any]):
    """All samples of the first of several IterableDatasets, then those of the second, and so on.

    Raises ValueError if there are none. Follows `paddle.io.ChainDataset`.
    """

    def __init__(self, datasets: Iterable[IterableDataset[Any]]) -> None:
        self.datasets = _checked(datasets, type(self).__name__, iterable=True)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other, with their samples numbered through.

    Raises ValueError if there are none. Follows `paddle.io.ConcatDataset`.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = _checked(datasets, type(self).__name__, iterable=False)
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __getitem__(self, idx: int) -> Any:
        number = idx + len(self) if idx < 0 else idx
        if not 0 <= number < len(self):
            raise IndexError(f"sample {idx} of a ConcatDataset of {len(self)} samples")
        which = bisect.bisect_right(self.cumulative_sizes, number)
        return self.datasets[which][number - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class Subset(Dataset[T_co]):
    """The samples of `dataset` with the numbers `indices`, in that order. Follows `paddle.io.Subset`."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: int) -> T_co:
        return self.dataset[self.indices[idx]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Seed = None
) -> list[Subset[T_co]]:
    """Divide `dataset` at random into subsets of the given `lengths`, none of which share a sample.

    `lengths`: numbers of samples that add up to `len(dataset)`, or fractions that add up to 1. `generator`: a seed or a
    NumPy generator; by default NumPy's global one, which `np.random.seed` fixes. Raises ValueError if the lengths do
    not add up. Follows `paddle.io.random_split`.
    """
    total = len(dataset)
    counts = [int(length) for length in lengths]
    if any(0 < length < 1 for length in lengths):
        if not np.isclose(sum(lengths), 1):
            raise ValueError(f"the fractions given to random_split must add up to 1, got {list(lengths)}")
        counts = [int(total * length) for length in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
    if min(counts, default=-1) < 0 or sum(counts) != total:
        raise ValueError(
            f"the lengths given to random_split must add up to the {total} samples of the dataset, got {list(lengths)}"
        )
    numbers = as_generator(generator).permutation(total).tolist()
    ends = itertools.accumulate(counts)
    return [Subset(dataset, numbers[end - count : end]) for end, count in zip(ends, counts, strict=True)]


def _as_rows(tensor: Any, position: int) -> np.ndarray:
    array = np.asarray(getattr(tensor, "array", tensor))
    if array.ndim == 0 or array.dtype == object:
        raise ValueError(f"tensor {position} of a TensorDataset has no rows: {tensor!r:.80}")
    return array


def _checked(datasets: Iterable[Any], kind: str, iterable: bool) -> list[Any]:
    found = list(datasets)
    if not found:
        raise ValueError(f"{kind} takes at least one dataset")
    wanted = "an IterableDataset" if iterable else "a Dataset whose samples have numbers"
    for i, dataset in enumerate(found):
        if not (isinstance(dataset, IterableDataset) if iterable else is_numbered(dataset)):
            raise TypeError(f"dataset {i} of {kind} must be {wanted}, got {type(dataset).__name__}")
    return found
