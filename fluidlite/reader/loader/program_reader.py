"""The operators by which a program reads from a loader: `create_py_reader`, `create_double_buffer_reader`,
`read`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.dtypes import VarType
from ...base.unique_name import UniqueNameGenerator
from ...framework import Block, Variable, default_main_program

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
