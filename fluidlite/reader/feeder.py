"""Lists of samples as feed dictionaries: `DataFeeder`, and the converters of `fluid.data_feeder`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..base.dtypes import to_numpy
from ..base.place import CUDAPlace, Place, cpu_places, cuda_places
from ..base.reports.texts import names_shortly
from ..executor.lod_tensor import LoDTensor
from ..framework import Program
from .decorators import Reader, after, iterating
from .loader.source import collator, spec_of, variables


class DataFeeder:
    """Turns samples into what `Executor.run(feed=...)` takes (`fluid.DataFeeder`).

    Args:
        feed_list: Variables, or names of variables of `program`, in the order of the items of a sample.
        place: where the executor runs.
        program: the default main program by default.

    Raises:
        TypeError: `feed_list` holds something else.
        ValueError: `program` has no variable of a name.

    Example:
        >>> import paddle.fluid as fluid
        >>> x, y = fluid.data("x", [None, 2], "float32"), fluid.data("y", [None, 1], "int64")
        >>> feeder = fluid.DataFeeder(feed_list=[x, y], place=fluid.CPUPlace())
        >>> feed = feeder.feed([([0.5, 1.5], [1]), ([2.5, 3.5], [0])])
        >>> feed["x"].shape(), feed["y"].shape()
        ([2, 2], [2, 1])
    """

    def __init__(self, feed_list: Any, place: Place, program: Program | None = None) -> None:
        found = variables(feed_list, program)
        self.feed_names = [var.name for var in found]
        self.feed_dtypes = [var.dtype for var in found]
        self.feed_shapes = [var.shape for var in found]
        self.feed_lod_level = [var.lod_level for var in found]
        self.place = place
        self._specs = [spec_of(var) for var in found]

    def __repr__(self) -> str:
        return f"<DataFeeder of {names_shortly(self.feed_names)}>"

    def feed(self, iterable: Iterable[Any]) -> dict[str, LoDTensor]:
        """A batch of samples as {name: LoDTensor}.

        `iterable`: tuples, lists or rows of an array with one item for each variable: an array, a number or nested
        lists, converted to the variable's dtype and reshaped to its shape, or to several rows of it, as in Fluid;
        with `lod_level` k, lists nested k deep and of any length. Raises an AssertionError for a wrong number of
        items, TypeError for a sample without items, ValueError or TypeError naming variable and sample for an item
        that does not fit.
        """
        samples = iterable if isinstance(iterable, (list, tuple)) else list(iterable)
        tensors = collator(self._specs).collate(samples)
        return dict(zip(self.feed_names, tensors, strict=True))

    def feed_parallel(
        self, iterable: Iterable[Any], num_places: int | None = None
    ) -> Iterator[dict[str, LoDTensor]]:
        """One feed dictionary for each batch of `iterable`, which must hold one for each of `num_places`
        devices.

        `num_places`: by default the number of devices of the kind of `place`. Raises ValueError if the
        numbers differ.
        """
        places = self._count(num_places)
        batches = list(iterable)
        if len(batches) != places:
            raise ValueError(
                f"feed_parallel takes one batch for each of {places} devices, got {len(batches)}"
            )
        for batch in batches:
            yield self.feed(batch)

    def decorate_reader(
        self, reader: Reader, multi_devices: bool, num_places: int | None = None, drop_last: bool = True
    ) -> Reader:
        """A reader of feeds from a reader of batches: dictionaries, or with `multi_devices` lists of one per
        device.

        Batches at the end that are fewer than the devices are left out; ValueError instead without
        `drop_last`.
        """

        @after(reader)
        def fed() -> Iterator[Any]:
            with iterating(reader) as batches:
                if not multi_devices:
                    yield from map(self.feed, batches)
                    return
                places = self._count(num_places)
                while group := list(itertools.islice(batches, places)):
                    if len(group) == places:
                        yield list(self.feed_parallel(group, places))
                    elif not drop_last:
                        raise ValueError(
                            f"the last {len(group)} batches are too few for {places} devices; drop_last=True "
                            "leaves them out"
                        )

        return fed

    def _count(self, num_places: int | None) -> int:
        if num_places is not None:
            return int(num_places)
        return len(cuda_places() if isinstance(self.place, CUDAPlace) else cpu_places())


class DataToLoDTensorConverter:
    """Collects values of `dtype`, nested `lod_level` deep, and makes them one tensor.

    `shape`: that of the tensor, -1 for what is unknown; taken where it fits. Follows
    `fluid.data_feeder.DataToLoDTensorConverter`.
    """

    def __init__(self, place: Place, lod_level: int, shape: Sequence[int], dtype: Any) -> None:
        self.place, self.lod_level = place, lod_level
        self.shape = [-1 if n is None or n < 0 else int(n) for n in shape]
        self.dtype = to_numpy(dtype).name
        self._reset()

    def _reset(self) -> None:
        self.data: list[Any] = []
        self.lod: list[list[int]] = [[] for _ in range(self.lod_level)]

    def feed(self, data: Any) -> None:
        """Add the value of one sample; with levels of detail, a list of values (of lists, ...)."""
        self._add(data, 0)

    def _add(self, data: Any, level: int) -> None:
        if level == self.lod_level:
            self.data.append(data)
            return
        self.lod[level].append(len(data))
        for item in data:
            self._add(item, level + 1)

    def done(self) -> LoDTensor:
        """The tensor of the values fed since the last call; ValueError if there are none, or their shapes differ."""
        if not self.data:
            raise ValueError("done() makes a tensor of what was fed, but nothing was")
        array = np.array(self.data, dtype=self.dtype)
        rest = [n for n in self.shape[1:] if n >= 0]
        if len(rest) == len(self.shape) - 1 and array.size == len(self.data) * int(np.prod(rest)):
            array = array.reshape([len(self.data), *rest])
        elif -1 not in self.shape and array.size == int(np.prod(self.shape)):
            array = array.reshape(self.shape)
        tensor = LoDTensor()
        tensor.set(array, self.place)
        tensor.set_recursive_sequence_lengths(self.lod)
        self._reset()
        return tensor


class BatchedTensorProvider:
    """Calling one gives lists of tensors, one for each variable, of `batch_size` samples each.

    `feed_list`: Variables; `generator()`: gives samples, a field for each of them; `drop_last`: leave out a last batch
    that is smaller. Raises AssertionError for samples of another number of fields.
    Follows `fluid.data_feeder.BatchedTensorProvider`.
    """

    def __init__(
        self,
        feed_list: Iterable[Any],
        place: Place,
        batch_size: int,
        generator: Callable[[], Iterable[Any]],
        drop_last: bool,
    ) -> None:
        self.place, self.batch_size, self.generator, self.drop_last = place, batch_size, generator, drop_last
        self.converters = [
            DataToLoDTensorConverter(place, var.lod_level, var.shape, var.dtype) for var in feed_list
        ]

    def _done(self) -> list[LoDTensor]:
        return [converter.done() for converter in self.converters]

    def __call__(self) -> Iterator[list[LoDTensor]]:
        count = 0
        for sample in self.generator():
            if len(sample) != len(self.converters):
                raise AssertionError(
                    f"there are {len(self.converters)} variables, a sample has {len(sample)} fields"
                )
            for converter, field in zip(self.converters, sample, strict=True):
                converter.feed(field)
            count += 1
            if count == self.batch_size:
                yield self._done()
                count = 0
        if count and not self.drop_last:
            yield self._done()
