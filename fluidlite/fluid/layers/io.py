"""Layers that read from readers: `py_reader`, `create_py_reader_by_data`, `read_file`, `double_buffer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base import unique_name
from ...base.dtypes import to_vartype
from ...base.errors import ArgumentError
from ...base.place import CPUPlace, CUDAPlace, Place
from ...framework import Variable, default_main_program
from ...framework.variable import as_shape
from ...reader.loader import py_reader as readers
from ...reader.loader import tensor_queue
from ...reader.loader.source import variables
from .collective import BlockGuardServ, ListenAndServ, Recv, Send
from .tensor.variables import load

__all__ = [
    "BlockGuardServ",
    "ListenAndServ",
    "Recv",
    "Send",
    "create_py_reader_by_data",
    "double_buffer",
    "load",
    "monkey_patch_reader_methods",
    "py_reader",
    "read_file",
]


def py_reader(
    capacity: int,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[Any],
    lod_levels: Sequence[int] | None = None,
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Variable:
    """A reader of batches with one item for each of `shapes` (the batch first, -1 unknown), `dtypes` and
    `lod_levels`.

    `capacity`: how many batches may wait. The variable returned has the methods `decorate_paddle_reader`
    (lists of samples), `decorate_tensor_provider` (batches that are ready), `start` and `reset`; `read_file`
    gives what it reads. Raises ValueError if the lists differ in length or the capacity is below 1. Follows
    `fluid.layers.py_reader`.
    """
    levels = [0] * len(shapes) if lod_levels is None else list(lod_levels)
    if not len(shapes) == len(dtypes) == len(levels) or not shapes:
        raise ArgumentError(
            f"py_reader takes one shape, dtype and lod_level for each item, got {len(shapes)} shapes, "
            f"{len(dtypes)} dtypes and {len(levels)} lod_levels"
        )
    items = [
        {
            "shape": list(as_shape(shape, "an item of py_reader")),
            "dtype": int(to_vartype(dtype)),
            "lod_level": level,
            "need_check_feed": 0,
        }
        for shape, dtype, level in zip(shapes, dtypes, levels, strict=True)
    ]
    return readers.create(capacity, items, name, use_double_buffer)


def create_py_reader_by_data(
    capacity: int, feed_list: Sequence[Variable], name: str | None = None, use_double_buffer: bool = True
) -> Variable:
    """A `py_reader` whose shapes, dtypes and lod_levels are those of the Variables of `feed_list`.

    Follows `fluid.layers.create_py_reader_by_data`.
    """
    found = variables(feed_list)
    return readers.create(capacity, tensor_queue.describe(found), name, use_double_buffer)


def read_file(reader: Variable) -> Variable | list[Variable]:
    """The items of the next batch of a reader: a Variable, or a list of them if there are several.

    Raises TypeError for anything but a reader. Follows `fluid.layers.read_file`.
    """
    made = readers.items_of(reader)
    label = unique_name.generate("read_file")
    block = default_main_program().current_block()
    out = [
        block.create_var(
            name=block._new_name(f"{label}.tmp"),
            shape=item["shape"],
            dtype=item["dtype"],
            lod_level=item["lod_level"],
            stop_gradient=True,
        )
        for item in made.items
    ]
    tensor_queue.read(block, reader, out)
    return out[0] if len(out) == 1 else out


def double_buffer(reader: Variable, place: Place | str | None = None, name: str | None = None) -> Variable:
    """A reader that keeps the next batch of `reader` ready on `place` (wherever the program runs by default).

    Raises TypeError for anything but a reader and a place. Follows `fluid.layers.double_buffer`.
    """
    made = readers.items_of(reader)
    if isinstance(place, CUDAPlace):
        where = f"CUDA:{place.device}"
    elif isinstance(place, CPUPlace):
        where = "CPU"
    elif place is None or isinstance(place, str):
        where = (place or "AUTO").upper()
    else:
        raise TypeError(f"double_buffer takes a CPUPlace, a CUDAPlace or the name of one, got {place!r}")
    ahead = name if name is not None else unique_name.generate("create_double_buffer_reader")
    var = tensor_queue.buffer(default_main_program().current_block(), reader, ahead, where)
    readers.attach(var, made)
    made.loader.buffer_ahead()
    return var


def monkey_patch_reader_methods(reader: Variable) -> Variable:
    """`reader` itself, which has its methods (`fluid.layers.io.monkey_patch_reader_methods`)."""
    return reader
