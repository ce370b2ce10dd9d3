"""What a loader reads: a user's generator, and how its samples or batches become lists of tensors."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._ext.collate import Collator, FieldCountError, Handover, Spec, empty
from ...backend import on_device, to_host
from ...base.dtypes import to_numpy
from ...base.errors import EnforceNotMet
from ...base.lod import Lod
from ...eager import Tensor
from ...executor.lod_tensor import LoDTensor
from ...framework import Program, Variable, default_main_program
from ..background import describe, iterating
from ..decorators import Reader, check_reader, whole
from .stats import Meter

if TYPE_CHECKING:
    from ...backend.cupy_.staging import StagingMemory

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
    return Spec(var.name, to_numpy(var.dtype), var.shape, var.lod_level, var.need_check_feed)


def collator(specs: Sequence[Spec], reader: str = "", memory: Any = None) -> Collator:
    """A collator that makes LoDTensors; `reader` is what messages call the source of the samples.

    For `memory` see `Collator`.
    """
    return Collator(specs, LoDTensor.wrap, reader, memory)


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
        self.skip = 0  # how many batches an epoch leaves out, because they were taken before
        self.meter = Meter()  # where the epoch counts its seconds
        self.copied = False  # whether a batch is copied away before the next is read
        self.memory: Any = None  # where batches are put together, see `Collator`
        self.allocate: Callable[[tuple[int, ...], Any], np.ndarray] = empty  # the same for single arrays

    def batches(self) -> Iterator[Batch]:
        raise NotImplementedError

    def put_together_in(self, memory: StagingMemory | None) -> None:
        """Say where the batches of the next epoch are put together; None: in ordinary memory."""
        self.memory = memory
        self.allocate = empty if memory is None else memory.empty

    def collator(self) -> Collator:
        """A new collator for one epoch."""
        return collator(self.specs, self.name, self.memory)

    def timed(self, items: Iterator[Any]) -> Iterator[Any]:
        """The items, with the time that each takes counted as reading."""
        meter = self.meter
        while True:
            begin = time.perf_counter()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                meter.reading += time.perf_counter() - begin
            yield item

    @property
    def name(self) -> str:
        return describe(self.reader)


def pass_over(items: Iterator[Any], count: int) -> None:
    """Read `count` items and forget them."""
    for _ in itertools.islice(items, count):
        pass


class Samples(Feeding):
    """A generator of samples, put together to batches of `batch_size`."""

    kind = "set_sample_generator"

    def __init__(self, reader: Reader, specs: Sequence[Spec], batch_size: int, drop_last: bool) -> None:
        super().__init__(reader, specs)
        self.batch_size = whole(batch_size, "batch_size", 1)
        self.drop_last = drop_last

    def batches(self) -> Iterator[Batch]:
        collate = self.collator()
        meter = self.meter
        with iterating(self.reader) as samples:
            pass_over(samples, self.skip * self.batch_size)
            while True:
                begin, read = time.perf_counter(), collate.reading
                batch = collate.fill(samples, self.batch_size, self.drop_last)
                read = collate.reading - read
                meter.reading += read
                meter.collating += max(time.perf_counter() - begin - read, 0.0)
                if batch is None:
                    break
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
        collate = self.collator()
        with iterating(self.reader) as lists:
            pass_over(lists, self.skip)
            for samples in self.timed(lists):
                begin = time.perf_counter()
                batch = collate.collate(samples)
                self.meter.collating += time.perf_counter() - begin
                yield batch


class ItemCountError(FieldCountError, EnforceNotMet):
    """A batch that has not one item for each variable."""


class Ready(Feeding):
    """A generator of batches that are ready: one array or LoDTensor for each variable."""

    kind = "set_batch_generator"

    def batches(self) -> Iterator[Batch]:
        handover = Handover(self.memory, self.copied)
        with iterating(self.reader) as batches:
            pass_over(batches, self.skip)
            for number in itertools.count(self.skip):
                begin, read = time.perf_counter(), handover.reading
                try:
                    items = handover.take(batches.__next__)
                except StopIteration:
                    return
                batch = self.tensors(items, handover, f"batch {number} of the reader {self.name}")
                read = handover.reading - read
                self.meter.reading += read
                self.meter.collating += time.perf_counter() - begin - read
                yield batch

    def tensors(self, items: Any, handover: Handover, where: str) -> Batch:
        """The batch made of what the generator yielded, with arrays that are the loader's by now."""
        return ready_tensors(items, self.specs, handover, where)


def ready_tensors(items: Any, specs: Sequence[Spec], handover: Handover, where: str) -> Batch:
    """One tensor for each variable from arrays, tensors or lists of numbers; arrays in `items` may be kept.

    Variables of `fluid.layers.data` take any type and shape, as in Fluid; those of `fluid.data` what can be converted
    to their type safely, in their shape (a lower rank is left to the step). Raises ItemCountError, and ValueError or
    TypeError saying `where`, expected and got.
    """
    if isinstance(items, np.ndarray) and items.ndim:
        items = list(items)
    if not isinstance(items, (list, tuple)):
        raise TypeError(
            f"{where} must be a list or tuple with one array for each variable, got {items!r:.80} "
            f"({type(items).__name__})"
        )
    if len(items) != len(specs):
        names = ", ".join(repr(spec.name) for spec in specs)
        lists = bool(items) and all(isinstance(item, (list, tuple)) for item in items)
        hint = (
            "; lists of samples, as paddle.batch makes them, go to set_sample_list_generator" if lists else ""
        )
        raise ItemCountError(f"{where} has {len(items)} items, but feed_list has {len(specs)}: {names}{hint}")
    batch = []
    for item, spec in zip(items, specs, strict=True):
        this = f"{where}, variable {spec.name!r}"
        array, lod = plain_array(item, handover, this)
        batch.append(LoDTensor.wrap(fitting(array, spec, this) if spec.checked else array, lod))
    return batch


def fitting(array: np.ndarray, spec: Spec, where: str) -> np.ndarray:
    """`array` in the type that `spec` asks for, after a look at its shape."""
    rank = len(spec.shape)
    if array.ndim > rank or (
        array.ndim == rank and any(n not in (-1, m) for n, m in zip(spec.shape, array.shape, strict=True))
    ):
        raise ValueError(f"{where}: expected shape {list(spec.shape)} (-1: any), got {list(array.shape)}")
    if not np.can_cast(array.dtype, spec.dtype, "same_kind"):
        raise TypeError(
            f"{where}: expected dtype {spec.dtype}, got {array.dtype}, which cannot be converted safely"
        )
    return array.astype(spec.dtype, copy=False)


def plain_array(item: Any, handover: Handover, where: str) -> tuple[np.ndarray, Lod]:
    """The elements of an item on the host and its levels of detail; arrays are taken as they are, others are copied."""
    array: np.ndarray
    lod: Lod = ()
    if type(item) is np.ndarray:
        array = item
    elif isinstance(item, (LoDTensor, Tensor)):
        if item.array is None:
            raise ValueError(f"{where}: the LoDTensor was never set")
        if isinstance(item, LoDTensor):
            lod = item.offsets
        array = to_host(item.array) if on_device(item.array) else handover.copy(item.array)
    else:
        try:
            array = np.array(item)
        except ValueError:
            raise ValueError(f"{where} is a ragged list, which makes no array: {item!r:.80}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{where}: expected an array, a tensor or a list of numbers, got {type(item).__name__} of type "
            f"{array.dtype}: {item!r:.80}"
        )
    return array, lod


class DeviceSets:
    """Batches as sets with one for each of `devices`: dicts by variable name, or lists of tensors.

    The last set may be incomplete, unless `drop_last`. `feeding`: where the batches come from.
    """

    def __init__(
        self,
        batches: Iterator[Batch],
        feeding: Feeding,
        devices: int,
        return_list: bool,
        drop_last: bool,
    ) -> None:
        self._batches = batches
        self._feeding = feeding
        self._devices = devices
        self._names = None if return_list else [spec.name for spec in feeding.specs]
        self._drop_last = drop_last
        self._group: list[Any] = []
        self._any = False

    def __iter__(self) -> DeviceSets:
        return self

    def __next__(self) -> list[dict[str, LoDTensor] | Batch]:
        while len(self._group) < self._devices:
            try:
                batch = next(self._batches)
            except StopIteration:
                return self._last()
            self._group.append(batch if self._names is None else dict(zip(self._names, batch, strict=True)))
        self._any = True
        group, self._group = self._group, []
        return group

    def _last(self) -> list[dict[str, LoDTensor] | Batch]:
        group, self._group = self._group, []
        if group and not self._drop_last:
            return group
        if group and not self._any:
            self._feeding.shortfall = (
                f": its {len(group)} batches are less than one for each of the {self._devices} devices, and "
                "drop_last=True leaves them out"
            )
        raise StopIteration

    def close(self) -> None:
        """Close the iterator over the batches, if it can be."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()
