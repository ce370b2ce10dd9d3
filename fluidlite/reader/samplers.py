"""Samplers: in which order, and in which batches, the samples of a dataset are read (`paddle.io`, `fluid.io`).

Samplers that draw have `state_dict` and `set_state_dict`: the state from which the next pass over them is drawn. A
loader uses them to go on in the middle of an epoch; a sampler of the user's that has them is treated likewise.
"""

from __future__ import annotations

import itertools
import operator
import os
import random
from collections.abc import Iterator, Sized
from typing import Any

import numpy as np

from .dataset import is_numbered
from .random_source import RandomSource, RandomState, plain_state


def require(condition: bool, message: str) -> None:
    """Raise AssertionError, as Fluid does for wrong arguments of loaders and samplers, unless `condition`."""
    if not condition:
        raise AssertionError(message)


def is_count(value: Any) -> bool:
    """Whether `value` is a positive integer."""
    try:
        return not isinstance(value, bool) and operator.index(value) > 0
    except TypeError:
        return False


class Sampler:
    """The numbers of samples in the order in which they are to be read. A subclass defines `__iter__`.

    `data_source`: the dataset. Follows `paddle.io.Sampler`.
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        """The numbers of one epoch."""
        raise NotImplementedError(
            f"'__iter__' is not implemented in class {type(self).__name__}: define __iter__(self), which yields the "
            "numbers of the samples"
        )

    def __len__(self) -> int:
        """How many numbers an epoch has; by default one for each sample."""
        if self.data_source is None:
            raise TypeError(f"{type(self).__name__} was made without a dataset and defines no __len__")
        return len(self.data_source)


class SequenceSampler(Sampler):
    """All samples of `data_source` in their order. Follows `paddle.io.SequenceSampler`."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))


class RandomSampler(Sampler):
    """Samples of `data_source` in random order.

    `replacement`: whether a sample may come again; `num_samples`: how many an epoch has (by default as many as the
    dataset). `generator`: a seed or a NumPy generator; by default NumPy's global one, which `np.random.seed` fixes.
    Raises AssertionError for other types and numbers. Follows `paddle.io.RandomSampler`.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        super().__init__(data_source)
        require(
            isinstance(replacement, bool), f"replacement should be a boolean value, but got {replacement!r}"
        )
        require(
            num_samples is None or is_count(num_samples),
            f"num_samples should be a positive integer, but got {num_samples!r}",
        )
        require(
            replacement or num_samples is None or num_samples <= len(data_source),
            f"num_samples ({num_samples}) without replacement cannot be more than the samples of the dataset "
            f"({len(data_source)})",
        )
        self.replacement = replacement
        self._num_samples = num_samples
        self._draws = RandomSource(generator)

    @property
    def num_samples(self) -> int:
        """How many samples an epoch has."""
        return len(self.data_source or ()) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count = len(self.data_source or ())
        if self.replacement:
            return iter(self._draws.integers(count, self.num_samples))
        return iter(self._draws.permutation(count)[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples

    def state_dict(self) -> dict[str, Any]:
        """The state from which the next epoch is drawn."""
        return {"draws": self._draws.state_dict()}

    def set_state_dict(self, state: dict[str, Any]) -> None:
        """Draw the next epoch from a state that `state_dict` gave."""
        self._draws.set_state_dict(state["draws"])


class ReshufflingSampler(RandomSampler):
    """All samples; each epoch shuffles the order of the epoch before, as in Fluid 1.8."""

    def __init__(self, data_source: Sized) -> None:
        super().__init__(data_source)
        self._order: list[int] | None = None

    def __iter__(self) -> Iterator[int]:
        drawn = self._draws.permutation(len(self))
        self._order = drawn if self._order is None else [self._order[i] for i in drawn]
        return iter(self._order)

    def state_dict(self) -> dict[str, Any]:
        """The state from which the next epoch is drawn, with the order of this one."""
        return {**super().state_dict(), "order": self._order}

    def set_state_dict(self, state: dict[str, Any]) -> None:
        """Draw the next epoch from a state that `state_dict` gave."""
        super().set_state_dict(state)
        order = state["order"]
        self._order = None if order is None else [int(i) for i in order]


class WeightedRandomSampler(Sampler):
    """`num_samples` numbers below `len(weights)`, number `i` with a chance in proportion to `weights[i]`.

    `replacement`: whether a sample may come again. `generator` as in `RandomSampler`. Raises AssertionError for
    negative or only zero weights, and for more samples than positive weights without replacement. Follows
    `paddle.io.WeightedRandomSampler`.
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        super().__init__()
        chances = np.asarray(getattr(weights, "array", weights), np.float64)
        require(is_count(num_samples), f"num_samples should be a positive integer, but got {num_samples!r}")
        require(
            isinstance(replacement, bool), f"replacement should be a boolean value, but got {replacement!r}"
        )
        require(
            chances.ndim == 1 and bool((chances >= 0).all()) and bool(np.isfinite(chances).all()),
            f"weights should be a list of numbers that are not negative, but got {weights!r:.80}",
        )
        positive = int(np.count_nonzero(chances))
        require(positive > 0, "weights should contain a number above 0")
        require(
            replacement or num_samples <= positive,
            f"num_samples ({num_samples}) without replacement cannot be more than the positive weights ({positive})",
        )
        self.weights = chances
        self.num_samples = int(num_samples)
        self.replacement = replacement
        self._draws = RandomSource(generator)

    def __iter__(self) -> Iterator[int]:
        chances = self.weights / self.weights.sum()
        return iter(self._draws.weighted(chances, self.num_samples, self.replacement))

    def __len__(self) -> int:
        return self.num_samples

    state_dict = RandomSampler.state_dict
    set_state_dict = RandomSampler.set_state_dict


class BatchSampler:
    """Lists of `batch_size` numbers of samples.

    Either `dataset` is given, whose samples come in order or with `shuffle` in an order drawn anew for each epoch, or
    `indices`, the numbers themselves, or `sampler`, which yields them (also accepted as second argument). `drop_last`:
    leave out a last batch that is smaller. Raises AssertionError for other types and numbers. Follows
    `paddle.io.BatchSampler`. A subclass may define `__iter__` and `__len__` anew.
    """

    _shuffled: type[RandomSampler] = RandomSampler

    def __init__(
        self,
        dataset: Any = None,
        indices: Any = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
        sampler: Any = None,
    ) -> None:
        if isinstance(indices, Sampler):
            indices, sampler = None, indices
        given = [name for name, value in (("indices", indices), ("sampler", sampler)) if value is not None]
        require(
            dataset is not None or bool(given),
            "either dataset, indices or sampler should be set for BatchSampler",
        )
        require(
            len(given) + (dataset is not None) <= 1 or (dataset is not None and isinstance(sampler, Sampler)),
            "should not set both dataset and indices: BatchSampler takes one of dataset, indices and sampler",
        )
        if dataset is not None:
            require(
                is_numbered(dataset),
                "dataset should be an instance of paddle.io.Dataset with numbered samples, but got "
                f"{type(dataset).__name__}",
            )
        require(isinstance(shuffle, bool), f"shuffle should be a boolean value, but got {type(shuffle)}")
        require(is_count(batch_size), f"batch_size should be a positive integer, but got {batch_size!r}")
        require(
            isinstance(drop_last, bool), f"drop_last should be a boolean value, but got {type(drop_last)}"
        )
        require(not (shuffle and sampler is not None), "should not set both shuffle and sampler")
        self.batch_size = int(batch_size)
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.dataset = dataset
        self.indices = None if indices is None else list(indices)
        source: Any = dataset if self.indices is None else self.indices
        if sampler is None:
            sampler = self._shuffled(source) if shuffle else SequenceSampler(source)
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        # The order is drawn here and not with the first batch, which another thread may take.
        numbers = iter(self.sampler)
        return self._batches(numbers if self.indices is None else map(self.indices.__getitem__, numbers))

    def _batches(self, numbers: Iterator[int]) -> Iterator[list[int]]:
        batch: list[int] = []
        for number in numbers:
            batch.append(number)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """The state from which the next epoch is drawn; empty if nothing is drawn."""
        state = getattr(getattr(self, "sampler", None), "state_dict", None)
        return {} if state is None else state()

    def set_state_dict(self, state: dict[str, Any]) -> None:
        """Draw the next epoch from a state that `state_dict` gave."""
        if state:
            self.sampler.set_state_dict(state)


class FluidBatchSampler(BatchSampler):
    """`BatchSampler` as Fluid 1.8 shuffles: each epoch the order of the one before. Follows `fluid.io.BatchSampler`."""

    _shuffled = ReshufflingSampler


class DistributedBatchSampler(BatchSampler):
    """The batches of one of `num_replicas` processes that train together.

    Of each `num_replicas * batch_size` samples every process reads its `batch_size`; samples from the beginning fill up
    the end, so that all have as many. With `shuffle` the order depends on the epoch alone (`set_epoch`), which is
    counted up with each pass. `num_replicas` and `rank` are those of the environment (PADDLE_TRAINERS_NUM,
    PADDLE_TRAINER_ID) by default, 1 and 0 outside of it. A loader's state goes on in another number of processes, too,
    without reading a sample twice, if `num_replicas * batch_size` is the same and both numbers divide that of samples.
    Raises AssertionError for other types and numbers. Follows `paddle.io.DistributedBatchSampler`.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        require(dataset is not None, "dataset should be set for DistributedBatchSampler")
        super().__init__(dataset, None, shuffle, batch_size, drop_last)
        if num_replicas is None:
            num_replicas = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
        if rank is None:
            rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
        require(
            is_count(num_replicas), f"num_replicas should be a positive integer, but got {num_replicas!r}"
        )
        require(
            isinstance(rank, int) and 0 <= rank < num_replicas,
            f"rank should be an integer from 0 to {num_replicas - 1}, but got {rank!r}",
        )
        self.nranks = num_replicas
        self.local_rank = rank
        self.epoch = 0

    @property
    def num_samples(self) -> int:
        """How many samples each process reads."""
        return -(-len(self.dataset) // self.nranks)

    @property
    def total_size(self) -> int:
        """How many samples all processes read together."""
        return self.num_samples * self.nranks

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next pass is: the same number gives the same order in all processes."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        count = len(self.dataset)
        order = [i % count for i in range(self.total_size)]
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(order)
        self.epoch += 1
        together = self.batch_size * self.nranks
        mine: list[int] = []
        for begin in range(0, len(order), together):
            chunk = order[begin : begin + together]
            share = len(chunk) // self.nranks
            mine += chunk[self.local_rank * share : (self.local_rank + 1) * share]
        return self._batches(iter(mine))

    def __len__(self) -> int:
        count = self.num_samples
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """The number of the next epoch."""
        return {"epoch": self.epoch}

    def set_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the epoch that `state_dict` gave."""
        self.epoch = int(state["epoch"])


def state_of(sampler: Any) -> dict[str, Any]:
    """The state from which the next epoch of a batch sampler is drawn, as plain numbers, strings and lists.

    A sampler of the user's without a `state_dict` is taken to draw from `numpy.random` or `random` at the beginning of
    an epoch: the state is theirs.
    """
    if type(sampler) is SequenceSampler:
        return {"own": {}}
    if _has_state(sampler):
        return {"own": sampler.state_dict()}
    version, words, gauss = random.getstate()
    return {"numpy": plain_state(np.random.get_state(legacy=False)), "random": [version, list(words), gauss]}


def begin_epoch(sampler: Any, state: dict[str, Any] | None = None) -> Iterator[Any]:
    """An iterator over an epoch of a batch sampler; over the epoch drawn from `state`, if it is given.

    The order is drawn here, in the caller's thread, so that it does not depend on what other threads draw.
    """
    if state is None:
        return _begin(sampler)
    if "own" in state:
        if state["own"]:
            sampler.set_state_dict(state["own"])
        return _begin(sampler)
    before = RandomState()
    version, words, gauss = state["random"]
    try:
        np.random.set_state(state["numpy"])
        random.setstate((version, tuple(words), gauss))
        return _begin(sampler)
    finally:
        before.restore()


def _begin(sampler: Any) -> Iterator[Any]:
    # A generator function draws when its first item is requested.
    iterator = iter(sampler)
    return itertools.chain(list(itertools.islice(iterator, 1)), iterator)


def _has_state(sampler: Any) -> bool:
    """Whether the sampler's `state_dict` determines its order."""
    if type(sampler) is SequenceSampler:
        return True
    definers = [
        next((base for base in type(sampler).__mro__ if name in vars(base)), None)
        for name in ("state_dict", "set_state_dict", "__iter__")
    ]
    state, restore, order = definers
    if state is None or restore is None or order is None:
        return False
    # An inherited one does not cover an order that a subclass draws itself.
    if not issubclass(state, order):
        return False
    return state is not BatchSampler or _has_state(sampler.sampler)
