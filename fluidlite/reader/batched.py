"""`fluid.data_feeder.BatchedTensorProvider`: batches of tensors from single samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..base.place import Place
from ..executor.tensors.lod_tensor import LoDTensor
from .converting import DataToLoDTensorConverter


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
