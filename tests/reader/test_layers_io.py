"""`fluid.layers.py_reader` and its relatives: operators and names as in real Paddle 1.8.5, epochs through an
executor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet, EOFException
from fluidlite.base.place import CPUPlace, CUDAPlace
from fluidlite.data import data
from fluidlite.executor import Executor, Scope, scope_guard
from fluidlite.framework import Program
from fluidlite.layers.io import create_py_reader_by_data, double_buffer, py_reader, read_file

from ..refusals import refuses


@pytest.fixture(autouse=True)
def scope():
    with scope_guard(Scope()):
        yield


def listing(program: Program) -> list[tuple]:
    return [(op.type, op.input_arg_names, op.output_arg_names) for op in program.global_block().ops]


@pytest.mark.parametrize("by_data", [False, True])
def test_a_second_reader_of_one_name_is_refused(by_data: bool) -> None:
    """As in Paddle 1.8.5, whose scope has a queue of that name. The first one goes on."""

    def reader(start: float) -> tuple:
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            if by_data:
                made = create_py_reader_by_data(4, [data("x", [None, 1])], name="same")
            else:
                made = py_reader(4, [[-1, 1]], ["float32"], name="same")
            made.decorate_tensor_provider(lambda: iter([[np.full((1, 1), start, "float32")]] * 2))
            return made, fluid.default_main_program(), read_file(made)

    def epoch(made: Any, program: Program, read: Any) -> list[float]:
        made.start()
        seen = []
        with pytest.raises(EOFException):
            while True:
                seen.append(Executor(CPUPlace()).run(program, fetch_list=[read])[0].item())
        made.reset()
        return seen

    first = reader(1)
    refuses(lambda: reader(2), EnforceNotMet, "there is a py_reader named 'same' already")
    assert epoch(*first) == [1, 1]
    with scope_guard(Scope()):
        assert epoch(*reader(3)) == [3, 3]
    del first
    assert epoch(*reader(4)) == [4, 4]  # nobody has the first one any more


def test_operators_and_names(programs) -> None:
    main, startup = programs
    reader = py_reader(5, [(-1, 3, 4), (-1, 1)], ["float32", "int64"], [0, 1], "rd", use_double_buffer=False)
    image, words = read_file(reader)
    assert (image.name, words.name) == ("read_file_0.tmp_0", "read_file_0.tmp_1")
    assert (image.shape, str(image.dtype), image.stop_gradient) == ((-1, 3, 4), "VarType.FP32", True)
    assert (words.shape, words.lod_level) == ((-1, 1), 1)
    assert double_buffer(reader).name == "create_double_buffer_reader_0"
    assert double_buffer(reader, CPUPlace(), name="ahead").name == "ahead"
    x = data("x", [None, 6], "float32")
    single = read_file(create_py_reader_by_data(3, [x], "bydata"))
    assert (single.name, single.shape) == ("read_file_1.tmp_0", (-1, 6))
    assert listing(startup) == [
        ("create_py_reader", ["rd_queue"], ["rd_reader"]),
        ("create_py_reader", ["bydata_queue"], ["bydata_reader"]),
    ]
    assert listing(main) == [
        ("read", ["rd_reader"], ["read_file_0.tmp_0", "read_file_0.tmp_1"]),
        ("create_double_buffer_reader", ["rd_reader"], ["create_double_buffer_reader_0"]),
        ("create_double_buffer_reader", ["rd_reader"], ["ahead"]),
        ("create_double_buffer_reader", ["bydata_reader"], ["bydata_double_buffer"]),
        ("read", ["bydata_double_buffer"], ["read_file_1.tmp_0"]),
    ]
    op = startup.global_block().ops[0]
    assert (op.attr("shape_concat"), op.attr("ranks"), op.attr("dtypes")) == (
        [-1, 3, 4, -1, 1],
        [3, 2],
        [5, 3],
    )
    assert (op.attr("lod_levels"), op.attr("need_check_feed")) == ([0, 1], [0, 0])
    assert main.global_block().ops[2].attr("place") == "CPU"


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize(
    "kind", ["decorate_tensor_provider", "decorate_batch_generator", "decorate_paddle_reader"]
)
def test_epochs(programs, double: bool, kind: str) -> None:
    reader = py_reader(2, [(-1, 3), (-1, 1)], ["float32", "int64"], use_double_buffer=double)
    x, y = read_file(reader)
    exe = Executor(CPUPlace())
    exe.run(programs[1])

    def ready():
        for i in range(3):
            yield np.full((2, 3), i, "float32"), np.full((2, 1), i, "int64")

    def lists():
        for i in range(3):
            yield [([i] * 3, i), ([i] * 3, [i])]

    getattr(reader, kind)(lists if kind == "decorate_paddle_reader" else ready)
    for _ in range(2):
        reader.start()
        got = []
        with pytest.raises(EOFException):
            while True:
                got.append([part.tolist() for part in exe.run(programs[0], fetch_list=[x, y])])
        reader.reset()
        assert got == [[[[i] * 3] * 2, [[i]] * 2] for i in range(3)]


def test_bad_arguments(programs) -> None:
    refuses(lambda: py_reader(2, [(-1, 3), (-1, 1)], ["float32"]), ValueError, "2 shapes, 1 dtypes")
    refuses(lambda: py_reader(0, [(-1, 3)], ["float32"]), ValueError, "at least 1, got 0")
    with pytest.raises(TypeError, match="a reader made by fluid.layers.py_reader"):
        read_file(data("x", [None, 6], "float32"))
    reader = py_reader(2, [(-1, 3)], ["float32"])
    refuses(lambda: double_buffer(reader, 3), TypeError, "double_buffer takes")
    assert double_buffer(reader, CUDAPlace(1)).op.attr("place") == "CUDA:1"
    reader.decorate_tensor_provider(lambda: iter([(["text"],)]))
    reader.start()
    with pytest.raises(TypeError, match=r"create_py_reader_\d+\[0\]': expected an array"):
        reader.reader_items.loader.take()
    reader.reset()
