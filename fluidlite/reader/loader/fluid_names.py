"""Older names and settings of loaders in `fluid.reader`."""

from __future__ import annotations

from typing import Any

from ...base.context import Slot
from ...base.unique_name import UniqueNameGenerator
from ...multiprocess_utils import _cleanup as _cleanup
from ...multiprocess_utils import multiprocess_queue_set as multiprocess_queue_set
from .eager import EagerLoader
from .from_generator import make_loader
from .generator import Loader, as_capacity

QUEUE_GET_TIMEOUT = 60
"""Seconds after which Fluid checks whether a worker lives; here its end is noticed at once."""

KEEP_DATA_LOADER_ORDER = True

data_loader_unique_name_generator = UniqueNameGenerator()

_order = Slot("keep_data_loader_order", KEEP_DATA_LOADER_ORDER)

DataLoaderBase = Loader


class GeneratorLoader:
    """Calling it makes the loader that `DataLoader.from_generator` makes in static mode."""

    _check_input_array = Loader._check_input_array

    def __new__(
        cls,
        feed_list: Any = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        drop_last: bool = True,
    ) -> Any:
        return make_loader(feed_list, capacity, use_double_buffer, iterable, return_list, drop_last)


class DygraphGeneratorLoader:
    """Calling it makes the loader that `DataLoader.from_generator` makes in dygraph mode."""

    def __new__(
        cls,
        feed_list: Any = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = True,
        use_multiprocess: bool = False,
    ) -> Any:
        return EagerLoader(as_capacity(capacity), use_multiprocess, bool(use_double_buffer))


def keep_data_loader_order(*args: bool) -> bool | None:
    """Whether the order of batches is to be kept, which it always is; with an argument: set the answer."""
    if not args:
        return _order.get()
    _order.set(bool(args[0]))
    return None
