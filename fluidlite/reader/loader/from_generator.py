"""`DataLoader.from_generator`: which loader reads a generator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base import callsite
from ...framework import mode
from . import program_reader
from .eager import EagerLoader
from .generator import IterableLoader, Loader, ProgramLoader, as_capacity
from .source import spec_of, variables

if TYPE_CHECKING:
    from .of_files import DatasetLoader


class GeneratorLoaders:
    """The half of `DataLoader` that makes loaders of generators."""

    @staticmethod
    def from_generator(
        feed_list: Any = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
        *,
        persistent_workers: bool = False,
    ) -> Loader:
        """A loader of the batches of a generator, read ahead in a thread or process.

        In dygraph mode it is iterable and gives lists of Tensors; `feed_list` is not needed.

        `feed_list`: the Variables that batches are for (or their names); `capacity`: how many batches may wait.
        `iterable`: loop over it and feed what it gives; otherwise the default main program gets operators that read
        from it, and `start` and `reset` bracket each epoch. `return_list`: an iterable loader gives lists of
        LoDTensors instead of dictionaries. `drop_last`: leave out batches at the end that are fewer than the devices.
        `use_double_buffer`: batches for GPUs are copied there before they are taken (the CPU needs no second buffer).
        `use_multiprocess`: the generator runs in a process of its own, which hands batches over through shared
        memory. Each epoch forks this process in its current state. `persistent_workers`: the process stays for the next
        epoch, if one was read to its end, and calls the generator function again: changes made there persist, but
        changes made here after the first epoch are not seen (except the states of `random` and `numpy.random`, which
        are exchanged). Raises ValueError for a missing feed_list or a capacity below 1, TypeError for
        other kinds of arguments. Follows `fluid.io.DataLoader.from_generator`.
        """
        return make_loader(
            feed_list,
            capacity,
            use_double_buffer,
            iterable,
            return_list,
            drop_last,
            bool(use_multiprocess),
            bool(persistent_workers),
        )

    @staticmethod
    def from_dataset(dataset: Any, places: Any, drop_last: bool = True) -> DatasetLoader:
        """A loader of the batches of a data set of files (`fluid.io.DataLoader.from_dataset`); see `DatasetLoader`."""
        from .of_files import DatasetLoader  # few programs read such files

        return DatasetLoader(dataset, places, drop_last)


def make_loader(
    feed_list: Any,
    capacity: Any,
    use_double_buffer: bool,
    iterable: bool,
    return_list: bool,
    drop_last: bool,
    use_process: bool = False,
    persistent: bool = False,
) -> IterableLoader | ProgramLoader:
    """See `DataLoader.from_generator`."""
    size = as_capacity(capacity)
    buffered = bool(use_double_buffer)
    if mode.in_dygraph_mode():
        if not iterable:
            callsite.warn("loaders are always iterable in dygraph mode: iterable=False is ignored")
        return EagerLoader(size, use_process, buffered, persistent)
    if feed_list is None:
        raise ValueError(
            "feed_list must be given in static mode: the list of Variables that the loader feeds"
        )
    found = variables(feed_list)
    if not found:
        raise ValueError("feed_list is empty: the loader needs at least one Variable to feed")
    specs = [spec_of(var) for var in found]
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        raise ValueError(f"feed_list names a variable twice: {names}")
    if iterable:
        return IterableLoader(specs, size, drop_last, return_list, use_process, buffered, persistent)
    loader = ProgramLoader(specs, size, drop_last, use_process, buffered, persistent)
    loader.register(*program_reader.insert(found, use_double_buffer, drop_last))
    return loader
