"""Declared types of variables have no effect at run time; results of kernels are verified."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.dtypes import VarType, to_vartype
from fluidlite.framework import Program
from fluidlite.ops import registry

X = np.arange(6, dtype="float32").reshape(2, 3) + 0.5
COUNTS = np.arange(6, dtype="int64").reshape(2, 3)
FP32, INT64 = 5, 3
OPERATORS = {
    "scale": ({"X": ["x"]}, {"scale": 2.0}, X * 2),
    "assign": ({"X": ["x"]}, {}, X),
    "cast": ({"X": ["x"]}, {"in_dtype": FP32, "out_dtype": INT64}, X.astype("int64")),
    "fill_constant": ({}, {"shape": [2, 3], "dtype": FP32, "value": 1.5}, np.full((2, 3), 1.5, "float32")),
    "less_than": ({"X": ["x"], "Y": ["x"]}, {}, np.zeros((2, 3), bool)),
    "elementwise_add": ({"X": ["i"], "Y": ["i"]}, {}, COUNTS + COUNTS),
    "cumsum": ({"X": ["x"]}, {"axis": 1}, np.cumsum(X, axis=1)),
}


def steps(program, name, count=3):
    exe = fluid.Executor(fluid.CPUPlace())
    return [exe.run(program, feed={"x": X, "i": COUNTS}, fetch_list=[name])[0] for _ in range(count)]


def build(op_type, dtype, persistable=False):
    """A program of one operator whose result is declared to be `dtype`."""
    fluid.data("x", [None, 3], "float32")
    fluid.data("i", [None, 3], "int64")
    block = fluid.default_main_program().global_block()
    out = block.create_var(name="out", shape=[2, 3], dtype=dtype, persistable=persistable)
    inputs, attrs, expected = OPERATORS[op_type]
    block.append_op(type=op_type, inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    return out, expected


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_results_are_what_the_operator_makes(op_type, dtype):
    out, expected = build(op_type, dtype)
    for got in steps(fluid.default_main_program(), "out"):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype
    assert out.dtype == to_vartype(expected.dtype)


@pytest.mark.parametrize("dtype", ["bool", "float64"])
@pytest.mark.parametrize("persistable", [False, True])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_types_in_a_file_do_not_decide_about_memory(op_type, dtype, persistable):
    """A byte of a saved program that is another one: the heap was corrupted by what the kernel wrote."""
    _, expected = build(op_type, None, persistable)
    program = Program.parse_from_string(fluid.default_main_program().desc.serialize_to_string())
    program.global_block().var("out")._dtype = VarType.BOOL if dtype == "bool" else VarType.FP64
    for got in steps(program, "out", 4):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype


def test_a_variable_may_change_its_type_on_the_way():
    """It was given the memory of its last type."""
    x = fluid.data("x", [None, 3], "float32")
    i = fluid.data("i", [None, 3], "int64")
    block = fluid.default_main_program().global_block()
    out, copy = block.create_var(name="out"), block.create_var(name="copy")
    block.append_op(type="elementwise_add", inputs={"X": [i], "Y": [i]}, outputs={"Out": [out]})
    block.append_op(type="scale", inputs={"X": [out]}, outputs={"Out": [copy]}, attrs={"scale": 1.0})
    block.append_op(type="less_than", inputs={"X": [x], "Y": [x]}, outputs={"Out": [out]})
    exe = fluid.Executor(fluid.CPUPlace())
    for _ in range(3):
        first, second = exe.run(feed={"x": X, "i": COUNTS}, fetch_list=["copy", "out"])
        np.testing.assert_array_equal(first, COUNTS + COUNTS)
        np.testing.assert_array_equal(second, np.zeros((2, 3), bool))


WRONG = {
    "another shape": lambda xp, X: X[:1],
    "another rank": lambda xp, X: X.sum(axis=1),
    "one element": lambda xp, X: xp.float32(3),
    "integers": lambda xp, X: X.astype("int64"),
    "truths": lambda xp, X: X > 1,
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_kernel_that_makes_something_else_is_refused(wrong, monkeypatch):
    """It was broadcast or cast into the place of the result."""
    definition = registry.find("cumsum")
    monkeypatch.setattr(definition, "kernel", wrong)
    monkeypatch.setattr(definition, "_takes", definition._parameters(wrong))
    monkeypatch.setattr(definition, "native", None)
    build("cumsum", None)
    message = r"operator cumsum.*: its kernel made .*, but float32 \[2, 3\] was inferred"
    with pytest.raises(registry.OperatorError, match=message):
        steps(fluid.default_main_program(), "out")
    with fluid.dygraph.guard(), pytest.raises(registry.OperatorError, match=message):
        fluid.layers.cumsum(fluid.dygraph.to_variable(X), axis=1)


def test_more_precision_is_rounded(monkeypatch):
    def kernel(xp, X):
        return xp.cumsum(X.astype("float64"), axis=1)

    definition = registry.find("cumsum")
    monkeypatch.setattr(definition, "kernel", kernel)
    monkeypatch.setattr(definition, "_takes", definition._parameters(kernel))
    _, expected = build("cumsum", None)
    for got in steps(fluid.default_main_program(), "out"):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, expected)


def test_sizes_beyond_memory_name_the_variable():
    """The product of these sizes is 0 in 64 bits: nothing was allocated, and the kernel wrote 4 GB."""
    x = fluid.data("x", [None, 3], "float32")
    huge = fluid.layers.expand(x, [2**31, 2**32])
    with pytest.raises(MemoryError, match="variable 'expand"):
        steps(fluid.default_main_program(), huge)
