"""What a loader reads: a user's generator, and how its samples or batches become lists of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._ext.collate import Collator, Spec
from ..base.dtypes import to_numpy
from ..executor.lod_tensor import LoDTensor
from ..framework import Program, Variable, default_main_program
from .background import describe, iterating
from .decorators import Reader, check_reader, whole

Batch = list[LoDTensor]


def variables(feed_list: Any, program: Program | None = None) -> list[Variable]:
    """The variables that `feed_list` holds or names.

    Raises TypeError for anything but Variables and strings, ValueError for a name that the program does not
    have.
    """
    if isinstance(feed_list, (Variable, str)):
        feed_list = [feed_list]
    found = []
    for item in feed_list:
        if isinstance(item, str):
            item = (
                (program if program is not None else default_main_program())
                .current_block()
                ._var_recursive(item)
            )
        if not isinstance(item, Variable):
            raise TypeError(
                f"feed_list should contain Variables or their names, got {type(item).__name__}: {item!r:.80}"
            )
        found.append(item)
    return found


def spec_of(var: Variable) -> Spec:
    """What batches for a variable have to look like."""
    return Spec(var.name, to_numpy(var.dtype), var.shape, var.lod_level)


def collator(specs: Sequence[Spec], reader: str = "") -> Collator:
    """A collator that makes LoDTensors; `reader` is what messages call the source of the samples."""
    return Collator(specs, LoDTensor, LoDTensor.wrap, reader=reader)


class Feeding:
    """A generator set on a loader. `batches()` reads it once through; each call is independent of the others.

    `kind` is the name of the method that set it.
    """

    kind = ""

    def __init__(self, reader: Reader, specs: Sequence[Spec]) -> None:
        check_reader(reader, self.kind)
        self.reader = reader
        self.specs = list(specs)
        self.shortfall = ""  # why a reader that yielded something made no batch

    def batches(self) -> Iterator[Batch]:
        raise NotImplementedError

    @property
    def name(self) -> str:
        return describe(self.reader)


class Samples(Feeding):
    """A generator of samples, put together to batches of `batch_size`."""

    kind = "set_sample_generator"

    def __init__(self, reader: Reader, specs: Sequence[Spec], batch_size: int, drop_last: bool) -> None:
        super().__init__(reader, specs)
        self.batch_size = whole(batch_size, "batch_size", 1)
        self.drop_last = drop_last

    def batches(self) -> Iterator[Batch]:
        collate = collator(self.specs, self.name)
        with iterating(self.reader) as samples:
            while (batch := collate.fill(samples, self.batch_size, self.drop_last)) is not None:
                yield batch
        if collate.samples:
            self.shortfall = (
                f": its {collate.samples} samples are less than one batch of {self.batch_size}, and "
                "drop_last=True leaves them out"
            )


class SampleLists(Feeding):
    """A generator of lists of samples."""

    kind = "set_sample_list_generator"

    def batches(self) -> Iterator[Batch]:
        collate = collator(self.specs, self.name)
        with iterating(self.reader) as lists:
            for samples in lists:
                yield collate.collate(samples)


class Ready(Feeding):
    """A generator of batches that are ready: one array or LoDTensor for each variable."""

    kind = "set_batch_generator"

    def __init__(self, reader: Reader, specs: Sequence[Spec]) -> None:
        super().__init__(reader, specs)
        self._previous: Collator | None = None  # of the epoch before

    def batches(self) -> Iterator[Batch]:
        collate = collator(self.specs, self.name)
        if self._previous is not None:
            collate.take_up(self._previous)
        self._previous = collate
        with iterating(self.reader) as batches:
            for items in batches:
                yield collate.batch(items)


def device_sets(
    feeding: Feeding, devices: int, return_list: bool, drop_last: bool
) -> Callable[[], Iterator[list[dict[str, LoDTensor] | Batch]]]:
    """Reads `feeding` as sets of batches, one for each device: dicts by variable name, or lists of tensors.

    The last set may be incomplete, unless `drop_last`.
    """
    names = [spec.name for spec in feeding.specs]

    def sets() -> Iterator[list[Any]]:
        group: list[Any] = []
        whole_sets = 0
        for batch in feeding.batches():
            group.append(batch if return_list else dict(zip(names, batch, strict=True)))
            if len(group) == devices:
                yield group
                whole_sets += 1
                group = []
        if group and not drop_last:
            yield group
        elif group and not whole_sets:
            feeding.shortfall = (
                f": its {len(group)} batches are less than one for each of the {devices} devices, and "
                "drop_last=True leaves them out"
            )

    return sets
