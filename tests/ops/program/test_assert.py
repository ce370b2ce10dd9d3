"""The assert operator."""

import numpy as np
import pytest

import fluidlite as fluid


@pytest.mark.parametrize("holds", [[True, True], [True, False], [False, False]])
def test_assert_raises_unless_all_elements_are_true(holds):
    program = fluid.Program()
    with fluid.program_guard(program):
        cond = fluid.data("cond", [-1], "bool")
        program.global_block().append_op(
            type="assert", inputs={"Cond": [cond]}, outputs={}, attrs={"message": "both hold"}
        )
        out = fluid.layers.logical_not(cond)
    exe = fluid.Executor(fluid.CPUPlace())
    feed = {"cond": np.array(holds)}
    if all(holds):
        assert exe.run(program, feed=feed, fetch_list=[out])[0].tolist() == [False, False]
    else:
        for _ in range(2):
            with pytest.raises(AssertionError, match="both hold"):
                exe.run(program, feed=feed, fetch_list=[out])
