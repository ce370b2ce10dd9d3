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


RATES = {  # of Fluid 1.8.5
    "cosine": (lambda: dygraph.CosineDecay(0.1, step_each_epoch=3, epochs=4), [0.1] * 3 + [0.08535534] * 3),
    "exponential": (lambda: dygraph.ExponentialDecay(0.1, 3, 0.5, staircase=True), [0.1] * 3 + [0.05] * 3),
    "inverse": (
        lambda: dygraph.InverseTimeDecay(0.1, decay_steps=3, decay_rate=0.5),
        [0.1, 0.08571429, 0.075, 0.06666667, 0.06, 0.05454545],
    ),
    "natural": (lambda: dygraph.NaturalExpDecay(0.1, 3, 0.5, staircase=True), [0.1] * 3 + [0.06065307] * 3),
    "noam": (lambda: dygraph.NoamDecay(100, 100), [0.0001 * k for k in range(1, 7)]),
    "piecewise": (
        lambda: dygraph.PiecewiseDecay([2, 4], [1.0, 0.5, 0.1], begin=0),
        [1, 1, 0.5, 0.5, 0.1, 0.1],
    ),
    "polynomial": (
        lambda: dygraph.PolynomialDecay(0.01, 5, 0, power=1.0),
        [0.01, 0.008, 0.006, 0.004, 0.002, 0],
    ),
}


@pytest.mark.parametrize("kind", RATES)
def test_schedules_are_operators_of_static_programs(kind):
    """They count the steps of the program, as those of `fluid.layers` do."""
    make, expected = RATES[kind]

    def rate():
        schedule = make()
        return schedule()

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        out = dygraph.dygraph_to_static_func(rate)()
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        got = [exe.run(fetch_list=[out])[0].item() for _ in range(6)]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-9)
    with dygraph.guard():
        assert rate().numpy().item() == pytest.approx(expected[0])
