"""The older interfaces of loaders: `fluid.io.PyReader`, and the reader variables of `fluid.layers.py_reader`."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..._ext.collate import Spec
from ...base.dtypes import to_numpy, to_vartype
from ...base.errors import ArgumentNotMet
from ...executor import reading
from ...executor.scope import Scope, global_scope
from ...framework import Variable, default_main_program, default_startup_program
from ..decorators import Reader
from .from_generator import make_loader
from .generator import ProgramLoader, as_capacity
from .tensor_queue import LoDTensorBlockingQueue, buffer, create_reader, process_name, reader_var


class PyReader:
    """A loader with the names it had before `DataLoader` (`fluid.io.PyReader`).

    Arguments as in `DataLoader.from_generator`.
    """

    def __init__(
        self,
        feed_list: Any = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
    ) -> None:
        self._loader = make_loader(
            feed_list, capacity, use_double_buffer, iterable, return_list, drop_last=True
        )

    def decorate_sample_generator(
        self, sample_generator: Reader, batch_size: int, drop_last: bool = True, places: Any = None
    ) -> None:
        """See `Loader.set_sample_generator`."""
        self._loader.set_sample_generator(sample_generator, batch_size, drop_last, places)

    def decorate_sample_list_generator(self, reader: Reader, places: Any = None) -> None:
        """See `Loader.set_sample_list_generator`."""
        self._loader.set_sample_list_generator(reader, places)

    def decorate_batch_generator(self, reader: Reader, places: Any = None) -> None:
        """See `Loader.set_batch_generator`."""
        self._loader.set_batch_generator(reader, places)

    def start(self) -> None:
        """See `ProgramLoader.start`."""
        self._loader.start()

    def reset(self) -> None:
        """See `ProgramLoader.reset`."""
        self._loader.reset()

    def close(self) -> None:
        """See `Loader.close`."""
        self._loader.close()

    def stats(self) -> dict[str, Any]:
        """See `Loader.stats`."""
        return self._loader.stats()

    def summary(self) -> str:
        """See `Loader.summary`."""
        return self._loader.summary()

    def state_dict(self) -> dict[str, Any]:
        """See `Loader.state_dict`."""
        return self._loader.state_dict()

    def set_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Loader.set_state_dict`."""
        self._loader.set_state_dict(state)

    load_state_dict = set_state_dict

    def progress(self, **options: Any) -> Iterator[Any]:
        """See `Loader.progress`."""
        return self._loader.progress(**options)

    @property
    def iterable(self) -> bool:
        return self._loader.iterable

    @property
    def queue(self) -> Any:
        return self._loader.queue

    def __call__(self) -> PyReader:
        return self

    def __iter__(self) -> Any:
        return iter(self._loader)

    def __repr__(self) -> str:
        return repr(self._loader).replace(type(self._loader).__name__, type(self).__name__, 1)

    def __next__(self) -> Any:
        return next(self._loader)

    next = __next__


class ReaderQueue:
    """The queue of a reader variable: that of the running epoch, or one that batches are pushed into by hand.

    `names`: those by which programs find it.
    """

    def __init__(self, loader: ProgramLoader, capacity: int, names: Sequence[str] = ()) -> None:
        self._loader = loader
        self._capacity = capacity
        self._names = names
        self._by_hand = False
        self._hand: LoDTensorBlockingQueue | None = None

    def push(self, tensors: Sequence[Any]) -> bool:
        """Enqueue a batch for the program, which from now on reads pushed batches instead of a generator.

        Waits for room; False if the queue is closed, until `start`. See `LoDTensorBlockingQueue.push`.
        """
        if not self._by_hand:
            self._open()
        return self._hand is not None and self._hand.push(tensors)

    def _open(self) -> None:
        self._by_hand, self._hand = True, LoDTensorBlockingQueue(self._capacity)
        for name in self._names:
            reading.register(name, self._hand)

    def start(self) -> None:
        """Begin an epoch: of the loader, or of pushed batches."""
        if not self._by_hand:
            self._loader.start()
        elif self._hand is None or self._hand.shut:
            self._open()

    def close(self) -> None:
        """Nothing more is pushed; without pushing: the same as `reset`."""
        if self._hand is None:
            self.reset()
        else:
            self._hand.close()

    kill = close

    def reset(self) -> None:
        """End the epoch at any time."""
        if not self._by_hand:
            self._loader.reset()
        elif self._hand is not None:
            self._hand.close()
            self._hand = None
            self._loader.register(*self._names)  # which says that it was not started

    def capacity(self) -> int:
        """How many batches may wait."""
        return self._capacity

    def size(self) -> int:
        """How many batches wait; 0 outside of an epoch."""
        if self._hand is not None:
            return self._hand.size()
        queue = self._loader.queue
        return 0 if queue is None else queue.size()


_named: WeakKeyDictionary[Scope, WeakValueDictionary[str, ReaderItems]] = WeakKeyDictionary()
"""Readers created with a name, by the scope that was current then."""


class ReaderItems:
    """The items of a reader variable, for `read_file`, and its loader."""

    def __init__(
        self, loader: ProgramLoader, items: Sequence[dict[str, Any]], capacity: int, names: Sequence[str] = ()
    ) -> None:
        self.loader = loader
        self.items = items
        self.queue = ReaderQueue(loader, capacity, names)


def create(capacity: Any, items: Sequence[dict[str, Any]], name: str | None, double_buffer: bool) -> Variable:
    """A reader variable of the default main program, created by the startup program.

    `items`: see `tensor_queue.describe`. The variable has the methods `start`, `reset` and `decorate_*`. Raises
    EnforceNotMet if there is a reader of this name in the scope: programs would find one of the two.
    """
    size = as_capacity(capacity)
    named = _named.setdefault(global_scope(), WeakValueDictionary())
    if name in named:
        gc.collect()  # reader variables of a program that is garbage already
    if name in named:
        raise ArgumentNotMet(
            f"there is a py_reader named {name!r} already, from which its program reads; give this one another name, "
            "or none"
        )
    queue = f"{name}_queue" if name is not None else process_name("lod_tensor_blocking_queue")
    reader = f"{name}_reader" if name is not None else process_name("create_py_reader")
    loader = ProgramLoader(
        [
            Spec(
                f"{reader}[{i}]", to_numpy(to_vartype(item["dtype"])), item["shape"], item["lod_level"], False
            )
            for i, item in enumerate(items)
        ],
        size,
        drop_last=True,
        double_buffer=double_buffer,
    )
    loader.register(queue, reader)
    create_reader(default_startup_program().current_block(), queue, reader, items)
    block = default_main_program().current_block()
    var = reader_var(block, reader)
    if double_buffer:
        ahead = f"{name}_double_buffer" if name is not None else process_name("double_buffer")
        var = buffer(block, var, ahead)
    made = ReaderItems(loader, items, size, (queue, reader))
    attach(var, made)
    if name is not None:
        named[name] = made
    return var


def attach(var: Variable, made: ReaderItems) -> None:
    """Give a reader variable the methods of its loader; as long as the variable lives, so does the loader."""
    loader = made.loader
    methods: dict[str, Any] = {
        "start": made.queue.start,
        "reset": made.queue.reset,
        "decorate_tensor_provider": loader.set_batch_generator,
        "decorate_batch_generator": loader.set_batch_generator,
        "decorate_paddle_reader": loader.set_sample_list_generator,
        "decorate_sample_list_generator": loader.set_sample_list_generator,
        "decorate_sample_generator": loader.set_sample_generator,
        "queue": made.queue,
        "reader_items": made,
    }
    for key, value in methods.items():
        setattr(var, key, value)


def items_of(var: Variable) -> ReaderItems:
    """The items of a reader variable; TypeError for other things."""
    made = getattr(var, "reader_items", None)
    if not isinstance(made, ReaderItems):
        raise TypeError(
            "a reader made by fluid.layers.py_reader or create_py_reader_by_data is needed, got "
            f"{type(var).__name__} {getattr(var, 'name', var)!r:.80}"
        )
    return made
