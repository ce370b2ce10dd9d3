"""The operators by which programs read from queues, and queues that scripts push batches into by hand.

The operators are `create_py_reader`, `create_double_buffer_reader` and `read`; the queues are
`fluid.core.LoDTensorBlockingQueue`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._ext.queue import Queue, QueueClosed
from ...backend import moved
from ...base.dtypes import VarType
from ...base.errors import NO_NEXT_DATA, EnforceNotMet, EOFException
from ...base.unique_name import UniqueNameGenerator
from ...eager import Tensor
from ...executor import LoDTensor, reading
from ...executor.scope import ScopeVariable
from ...framework import Block, Variable, default_main_program

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


__all__ = [
    "LoDTensorBlockingQueue",
    "MultiDeviceFeedReader",
    "OrderedMultiDeviceFeedReader",
    "OrderedMultiDeviceLoDTensorBlockingQueue",
    "create_py_reader",
    "init_lod_tensor_blocking_queue",
]


class LoDTensorBlockingQueue:
    """Batches, each a list of LoDTensors, that wait to be read (`fluid.core.LoDTensorBlockingQueue`).

    Programs whose readers read from the queue take them (`read` operators), and so does `create_py_reader`.
    `init_lod_tensor_blocking_queue` makes one.
    """

    drop_last = True

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise EnforceNotMet(
                f"The capacity of a reader::BlockingQueue must be greater than 0, got {capacity}"
            )
        self._capacity = capacity
        self._killed = False
        self.reset()

    def push(self, tensors: Sequence[Any]) -> bool:
        """Wait for room, and put a batch in; False if the queue is closed.

        `tensors`: LoDTensors or arrays, or a LoDTensorArray. Raises EnforceNotMet if the queue was killed.
        """
        batch = [
            tensor if isinstance(tensor, LoDTensor) else LoDTensor.wrap(np.array(tensor))
            for tensor in tensors
        ]
        done = not self._killed and self._queue.put(batch)
        if self._killed:
            raise EnforceNotMet("Blocking queue is killed because the data reader raises an exception")
        return done

    def close(self) -> None:
        """Close for pushing: readers get the waiting batches, and then the end."""
        self._queue.close()

    def kill(self) -> None:
        """Drop the waiting batches; pushing and reading raise errors from now on."""
        self._killed = True
        self._queue.kill()

    def reset(self) -> None:
        """Reset to an empty and open queue."""
        self._killed, self._queue = False, Queue(self._capacity)

    @property
    def shut(self) -> bool:
        """Whether the queue was closed or killed."""
        return self._queue.shut

    def size(self) -> int:
        """How many batches wait."""
        return self._queue.size()

    def capacity(self) -> int:
        """How many batches may wait."""
        return self._capacity

    def wait_for_inited(self, milliseconds: int) -> bool:
        """True: the queue can be used from the start."""
        return True

    def take(
        self, device: CudaDevice | None = None, of: tuple[CudaDevice | None, ...] = ()
    ) -> list[LoDTensor]:
        """The next batch, for programs; EOFException at the end of a closed queue, EnforceNotMet if it was killed."""
        try:
            batch = self._queue.get()
        except QueueClosed:
            if self._killed:
                raise EnforceNotMet(
                    "Blocking queue is killed because the data reader raises an exception"
                ) from None
            raise EOFException(NO_NEXT_DATA) from None
        if device is None:
            return batch
        return [LoDTensor.wrap(moved(tensor.array, device), tensor.offsets) for tensor in batch]


class OrderedMultiDeviceLoDTensorBlockingQueue(LoDTensorBlockingQueue):
    """The same: batches always come in the order in which they were pushed."""


def init_lod_tensor_blocking_queue(
    var: ScopeVariable, capacity: int, is_ordered: bool
) -> LoDTensorBlockingQueue:
    """A queue in a variable of a scope (`fluid.core.init_lod_tensor_blocking_queue`).

    Programs whose readers read from a variable of this name read from the queue, as long as it is there. Raises
    EnforceNotMet if the variable has a queue already.
    """
    if isinstance(var._value, LoDTensorBlockingQueue):
        raise EnforceNotMet(f"variable {var.name!r} has a queue already, from which its program reads")
    kind = OrderedMultiDeviceLoDTensorBlockingQueue if is_ordered else LoDTensorBlockingQueue
    queue = kind(int(capacity))
    var.set(queue)
    reading.register(var.name, queue)
    return queue


class MultiDeviceFeedReader:
    """Batches of a queue for several places (`fluid.core.MultiDeviceFeedReader`)."""

    def __init__(
        self, queue: LoDTensorBlockingQueue, names: Sequence[str], places: int, drop_last: bool
    ) -> None:
        self._queue, self._names, self._places, self._drop_last = queue, list(names), places, drop_last

    def read_next_list(self) -> list[list[LoDTensor]]:
        """A batch for each place; StopIteration at the end, with `drop_last` also for too few batches."""
        found: list[list[LoDTensor]] = []
        while len(found) < self._places:
            try:
                found.append(self._queue.take())
            except EOFException:
                break
        if not found or (self._drop_last and len(found) < self._places):
            raise StopIteration
        return found

    def read_next(self) -> list[dict[str, LoDTensor]]:
        """`read_next_list` with the tensors by their names."""
        return [dict(zip(self._names, batch, strict=True)) for batch in self.read_next_list()]

    def read_next_var_list(self) -> list[Tensor]:
        """The next batch of the first place as eager tensors."""
        return [Tensor(np.array(tensor)) for tensor in self.read_next_list()[0]]

    def reset(self) -> None:
        """Reset the queue, which is then empty and open."""
        self._queue.reset()


class OrderedMultiDeviceFeedReader(MultiDeviceFeedReader):
    """The same (`fluid.core.OrderedMultiDeviceFeedReader`)."""


def create_py_reader(
    queue: LoDTensorBlockingQueue,
    names: Sequence[str],
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[Any],
    need_check_feed: Sequence[bool],
    places: Sequence[Any],
    use_double_buffer: bool,
    drop_last: bool,
) -> MultiDeviceFeedReader:
    """A reader of the batches in `queue` for `places` (`fluid.core.create_py_reader`).

    `names`: of the tensors of a batch. `shapes`, `dtypes`, `need_check_feed` are accepted; elements stay on the host.
    """
    ordered = isinstance(queue, OrderedMultiDeviceLoDTensorBlockingQueue)
    kind = OrderedMultiDeviceFeedReader if ordered else MultiDeviceFeedReader
    return kind(queue, names, len(places), drop_last)


# Numbers readers over the whole process: unlike other names these must not repeat under `unique_name.guard`,
# because loaders are found by them.
_number = UniqueNameGenerator()


def process_name(key: str) -> str:
    """A name `key_N` that no other reader of this process has."""
    return _number(key)


def insert(feed_list: Sequence[Variable], double_buffer: bool, drop_last: bool) -> tuple[str, str]:
    """Have the default main program read `feed_list` from a new queue; returns the names of queue and first
    reader.
    """
    block = default_main_program().current_block()
    queue, name = process_name("lod_tensor_blocking_queue"), process_name("create_py_reader")
    reader = create_reader(block, queue, name, describe(feed_list))
    if double_buffer:
        reader = buffer(block, reader, process_name("double_buffer"))
    read(block, reader, feed_list, drop_last)
    return queue, name


def describe(feed_list: Sequence[Variable]) -> list[dict[str, Any]]:
    """The items of a queue for these variables, as attributes of `create_py_reader`."""
    return [
        {
            "shape": list(var.shape),
            "dtype": int(var.dtype),
            "lod_level": var.lod_level,
            "need_check_feed": int(var.need_check_feed),
        }
        for var in feed_list
    ]


def create_reader(block: Block, queue: str, name: str, items: Sequence[dict[str, Any]]) -> Variable:
    """Append the reader `name` of the batches of `queue`; returns its variable."""
    reader = reader_var(block, name)
    block.append_op(
        type="create_py_reader",
        inputs={"blocking_queue": [queue]},
        outputs={"Out": [reader]},
        attrs={
            "shape_concat": [size for item in items for size in item["shape"]],
            "ranks": [len(item["shape"]) for item in items],
            "lod_levels": [item["lod_level"] for item in items],
            "dtypes": [item["dtype"] for item in items],
            "need_check_feed": [item["need_check_feed"] for item in items],
            "use_data_config": True,
            "device_index": 0,
            "device_count": 1,
        },
    )
    return reader


def reader_var(block: Block, name: str) -> Variable:
    """A new persistable variable of type READER."""
    return block.create_var(name=name, type=VarType.READER, persistable=True, stop_gradient=True)


def buffer(block: Block, reader: Variable, name: str, place: str = "AUTO") -> Variable:
    """Append a reader `name` that keeps the next batch of `reader` ready on `place`; returns its variable."""
    ahead = reader_var(block, name)
    block.append_op(
        type="create_double_buffer_reader",
        inputs={"UnderlyingReader": [reader]},
        outputs={"Out": [ahead]},
        attrs={"place": place},
    )
    return ahead


def read(block: Block, reader: Variable, out: Sequence[Variable], drop_last: bool = True) -> None:
    """Append the operator that sets `out` to the next batch of `reader`."""
    block.append_op(
        type="read",
        inputs={"Reader": [reader]},
        outputs={"Out": list(out)},
        attrs={"throw_eof_exp": True, "infer_out": True, "drop_last": drop_last},
    )
