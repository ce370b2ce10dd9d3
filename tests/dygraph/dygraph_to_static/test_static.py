"""Declarative functions that are called with Variables build the program that these belong to."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite.dygraph import ProgramTranslator, declarative, to_variable


def test_static_programs_are_built_by_the_same_code():
    def grown(x):
        while layers.reduce_sum(x) < 100:
            x = x * 2
        return x

    array = np.ones((2, 2), "float32")
    exe = fluid.Executor(fluid.CPUPlace())
    for build in (
        declarative(grown),
        ProgramTranslator().get_func(grown),
        dygraph.dygraph_to_static_func(grown),
    ):
        program = fluid.Program()
        with fluid.program_guard(program):
            out = build(fluid.data("x", [2, 2]))
        assert "while" in [op.type for op in program.global_block().ops]
        assert exe.run(program, feed={"x": array}, fetch_list=[out])[0].tolist() == [[32, 32], [32, 32]]
    with dygraph.guard():
        assert ProgramTranslator().get_func(grown)(to_variable(array)).numpy().tolist() == [
            [32, 32],
            [32, 32],
        ]


def test_to_variable_copies_into_the_program():
    def shifted(x):
        x = to_variable(x)
        ones = fluid.dygraph.base.to_variable(np.ones((2, 2), "float32"), name="ones")
        return x + ones if layers.mean(x) > 0 else x - ones

    array = np.full((2, 2), 3, "float32")
    for given in (True, False):
        program = fluid.Program()
        with fluid.program_guard(program):
            out = dygraph.dygraph_to_static_func(shifted)(fluid.data("x", [2, 2]) if given else array)
        copies = [op.type for op in program.global_block().ops][:2]
        assert copies == ["assign" if given else "assign_value", "assign_value"]
        feed = {"x": array} if given else {}
        got = fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=[out])[0]
        np.testing.assert_array_equal(got, array + 1)
    with pytest.raises(AssertionError, match="dygraph mode only"):
        shifted(array)
