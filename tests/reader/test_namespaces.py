"""Where users find readers: `fluid.io`, `paddle.reader`, `paddle.batch`, `fluid.layers`."""

from __future__ import annotations

import pytest

import fluidlite as fluid
from fluidlite import reader
from fluidlite.paddle import batch
from fluidlite.paddle import reader as paddle_reader

DECORATORS = [
    "ComposeNotAligned", "buffered", "cache", "chain", "compose", "firstn", "map_readers",
    "multiprocess_reader", "shuffle", "xmap_readers",
]  # fmt: skip


@pytest.mark.parametrize("name", DECORATORS)
def test_decorators(name: str) -> None:
    assert getattr(fluid.io, name) is getattr(paddle_reader, name) is getattr(reader, name)
    assert getattr(paddle_reader.decorator, name) is getattr(reader, name)


def test_the_rest() -> None:
    assert fluid.io.batch is batch is reader.batch
    assert fluid.io.DataLoader is reader.DataLoader and fluid.io.PyReader is reader.PyReader
    assert fluid.DataFeeder is fluid.data_feeder.DataFeeder is reader.DataFeeder
    assert list(paddle_reader.creator.np_array([1, 2])()) == [1, 2]
    for name in ("py_reader", "create_py_reader_by_data", "read_file", "double_buffer"):
        assert callable(getattr(fluid.layers, name))
