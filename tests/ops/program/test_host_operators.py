"""Operators of programs that the host does: print, assert, delete_var, and those of readers."""

from collections import Counter

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.dtypes import VarType
from fluidlite.framework import Program
from fluidlite.ops.program import host
from fluidlite.ops.registry import OpView, find

from ..harness import ArrayMeta, run_kernel

X = np.arange(6, dtype="float32").reshape(3, 2)
LOD = {"In": [[[0, 1, 3]]]}


def shown(capsys, **attrs):
    made = run_kernel("print", {"In": X}, {"tensor_name": "x", **attrs}, LOD)
    np.testing.assert_array_equal(made["Out"][0], X)
    return capsys.readouterr().out


def test_what_is_printed(capsys):
    lines = shown(capsys, serial=-1, message="hello", summarize=4).splitlines()
    assert lines[0].split("\t")[1:] == ["hello", "The place is:CPUPlace"]
    assert lines[1:] == [
        "Tensor[x]",
        "\tshape: [3,2,]",
        "\tdtype: float32",
        "\tLoD: [[ 0,1,3, ]]",
        "\tdata: 0,1,2,3,",
    ]


def test_parts_can_be_left_out(capsys):
    out = shown(
        capsys,
        serial=-2,
        summarize=-1,
        print_tensor_name=False,
        print_tensor_type=False,
        print_tensor_shape=False,
        print_tensor_lod=False,
    )
    assert out.splitlines()[1:] == ["\tdata: 0,1,2,3,4,5,"]


def test_only_so_often(capsys, monkeypatch):
    monkeypatch.setattr(host, "_shown", Counter())
    assert [bool(shown(capsys, serial=-3, first_n=2)) for _ in range(4)] == [True, True, False, False]


def test_phases(capsys):
    assert shown(capsys, serial=-4, print_phase="FORWARD")
    assert not shown(capsys, serial=-4, print_phase="BACKWARD")
    assert shown(capsys, serial=-4, print_phase="BACKWARD", is_forward=False)


def test_gradient_is_printed_under_its_name():
    view = OpView(find("print"), {"In": ["x"]}, {"Out": ["y"]}, {"message": "m"}, ArrayMeta({"x": X}))
    (spec,) = find("print").grad(view)
    assert (spec.type, spec.inputs, spec.outputs) == ("print", {"In": ["y@GRAD"]}, {"Out": ["x@GRAD"]})
    assert spec.attrs["tensor_name"] == "y@GRAD" and spec.attrs["is_forward"] is False


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


def test_what_is_deleted_has_been_used_and_persistable_variables_stay(programs):
    main, startup = programs
    start = fluid.initializer.Constant(1.5)
    weight = fluid.layers.create_parameter([2], "float32", name="w", default_initializer=start)
    twice = fluid.layers.scale(weight, 2.0)
    four = fluid.layers.scale(twice, 2.0)
    main.global_block().append_op(type="delete_var", inputs={"X": [weight, twice]}, outputs={})
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for _ in range(2):
        (got,) = exe.run(main, fetch_list=[four], scope=scope)
        np.testing.assert_array_equal(got, [6, 6])
    assert scope.find_var("w") is not None


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
