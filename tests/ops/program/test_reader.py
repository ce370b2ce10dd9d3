"""Reader operators are declared for programs; the executor does their work."""

import pytest

from fluidlite.base.dtypes import VarType
from fluidlite.framework import Program
from fluidlite.ops.registry import find


@pytest.mark.parametrize("op_type", ["create_py_reader", "create_double_buffer_reader", "read"])
def test_they_are_the_host_s_business(op_type):
    assert find(op_type).effects.host
    assert find(op_type).kernel is None
    assert find(op_type).grad is None


def test_a_chain_of_readers_can_be_built_and_keeps_the_declared_shapes():
    block = Program().global_block()
    queue = block.create_var(name="queue", type=VarType.RAW)
    first, second = (block.create_var(name=name, type=VarType.READER) for name in ("py_reader", "buffered"))
    x = block.create_var(name="x", shape=[-1, 3], dtype="float32")
    y = block.create_var(name="y", shape=[-1, 1], dtype="int64")
    block.append_op(type="create_py_reader", inputs={"blocking_queue": [queue]}, outputs={"Out": [first]})
    block.append_op(
        type="create_double_buffer_reader", inputs={"UnderlyingReader": [first]}, outputs={"Out": [second]}
    )
    read = block.append_op(type="read", inputs={"Reader": [second]}, outputs={"Out": [x, y]})
    assert read.output("Out") == ["x", "y"]
    assert x.shape == (-1, 3)
    assert y.dtype == VarType.INT64
