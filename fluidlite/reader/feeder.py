"""`DataFeeder`: lists of samples -> feed dictionaries (`fluid.DataFeeder`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from ..base.place import CUDAPlace, Place, cpu_places, cuda_places
from ..base.reports.texts import names_shortly
from ..executor.tensors.lod_tensor import LoDTensor
from ..framework import Program
from .calling import iterating
from .decorators import Reader, after
from .loader.source import collator, spec_of, variables


class DataFeeder:
    """Turns samples into what `Executor.run(feed=...)` takes.

    `feed_list`: Variables or names of variables of `program` (the default main program); `place`: where the
    executor runs. Raises TypeError for other things in `feed_list`, ValueError for unknown names.
    Follows `fluid.DataFeeder`.
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
