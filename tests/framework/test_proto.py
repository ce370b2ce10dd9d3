"""Programs as bytes and text, against files that Paddle 1.8.5 wrote."""

from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.dtypes import VarType
from fluidlite.base.errors import FormatError, NotSupportedError
from fluidlite.base.storage.messages import messages
from fluidlite.framework import Parameter, Program
from fluidlite.ops.registry import OperatorError

DATA = Path(__file__).parents[1] / "fluid" / "io" / "data"


def small_program() -> Program:
    """x[-1, 4] -> mul w[4, 3] -> scale."""
    program = Program()
    block = program.global_block()
    block.create_var(
        name="x",
        shape=[-1, 4],
        dtype="float32",
        lod_level=1,
        need_check_feed=True,
        is_data=True,
        stop_gradient=True,
    )
    block.create_parameter(name="w", shape=[4, 3], dtype="float32")
    for name in ("h", "out"):
        block.create_var(name=name, shape=[-1, 3], dtype="float32")
    attrs = {"x_num_col_dims": 1, "y_num_col_dims": 1}
    block.append_op(type="mul", inputs={"X": ["x"], "Y": ["w"]}, outputs={"Out": ["h"]}, attrs=attrs)
    block.append_op(
        type="scale", inputs={"X": ["h"]}, outputs={"Out": ["out"]}, attrs={"scale": 2, "bias": 0.1}
    )
    return program


def message_of(program: Program):
    return messages().ProgramDesc.FromString(program.desc.serialize_to_string())


def wire_attrs(program: Program, index: int = 0) -> dict:
    types = messages().OpDesc.DESCRIPTOR.fields_by_name["attrs"].message_type.fields_by_name["type"].enum_type
    op = message_of(program).blocks[0].ops[index]
    return {attr.name: types.values_by_number[attr.type].name for attr in op.attrs}


def test_round_trip_keeps_everything_the_format_has():
    program = small_program()
    data = program.desc.serialize_to_string()
    copy = Program.parse_from_string(data)
    assert copy.desc.serialize_to_string() == data
    assert list(copy.global_block().vars) == ["x", "w", "h", "out"]
    x = copy.global_block().var("x")
    assert (x.shape, x.dtype, x.lod_level, x.need_check_feed, x.persistable) == (
        (-1, 4),
        VarType.FP32,
        1,
        True,
        False,
    )
    w = copy.global_block().var("w")
    assert w.persistable and not isinstance(w, Parameter)
    mul, scale = copy.global_block().ops
    assert (mul.input("X"), mul.input("Y"), mul.output("Out")) == (["x"], ["w"], ["h"])
    assert (scale.attr("scale"), scale.attr("bias")) == (2.0, np.float32(0.1).item())
    assert copy.global_block().var("out").op is scale


def test_attributes_have_the_types_that_fluid_insists_on():
    program = small_program()
    assert wire_attrs(program, 0)["x_num_col_dims"] == "INT"
    kinds = wire_attrs(program, 1)
    assert (kinds["scale"], kinds["bias"], kinds["bias_after_scale"]) == ("FLOAT", "FLOAT", "BOOLEAN")
    block = program.global_block()
    out = block.create_var(name="filled", shape=[2], dtype="int64")
    attrs = {"shape": [2], "value": 3, "dtype": VarType.INT64, "op_role_var": []}
    block.append_op(type="fill_constant", outputs={"Out": [out]}, attrs=attrs)
    kinds = wire_attrs(program, 2)
    wanted = {"shape": "LONGS", "value": "FLOAT", "dtype": "INT", "op_role_var": "STRINGS"}
    assert {name: kinds[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("value", "kind", "read"),
    [
        (3, "INT", 3),
        (2**40, "LONG", 2**40),
        (np.float32(0.5), "FLOAT", 0.5),
        (0.9, "FLOAT", 0.8999999761581421),
        (True, "BOOLEAN", True),
        ("é", "STRING", "é"),
        ((1, -2), "INTS", [1, -2]),
        ([1, 2**33], "LONGS", [1, 2**33]),
        ([1, 0.1], "FLOATS", [1.0, 0.10000000149011612]),
        (np.array([1.5, 2.0]), "FLOATS", [1.5, 2.0]),
        ([True, False], "BOOLEANS", [True, False]),
        (["a", "b"], "STRINGS", ["a", "b"]),
    ],
)
def test_any_value_round_trips(value, kind, read):
    program = small_program()
    program.global_block().ops[0]._set_attr("own", value)
    assert wire_attrs(program)["own"] == kind
    copy = Program.parse_from_string(program.desc.serialize_to_string())
    assert copy.global_block().ops[0].attr("own") == read


@pytest.mark.parametrize("value", [object(), [1, "a"], {"a": 1}])
def test_a_value_that_cannot_be_saved_is_named(value):
    program = small_program()
    program.global_block().ops[0]._set_attr("own", value)
    with pytest.raises(TypeError, match="attribute 'own' of operator mul cannot be saved"):
        program.desc.serialize_to_string()


def test_a_declared_type_that_the_value_does_not_have_is_an_error():
    program = small_program()
    program.global_block().ops[1]._set_attr("scale", "much")
    with pytest.raises(
        TypeError, match="'scale' of operator scale cannot be saved: expected FLOAT, got 'much'"
    ):
        program.desc.serialize_to_string()


def test_reads_a_program_of_paddle():
    program = Program.parse_from_string((DATA / "inference" / "__model__").read_bytes())
    block = program.global_block()
    assert [op.type for op in block.ops] == [
        "feed", "mul", "elementwise_add", "tanh", "mul", "elementwise_add", "scale", "fetch",
    ]  # fmt: skip
    assert block.ops[1].attr("x_num_col_dims") == 1
    assert block.var("feed").type == VarType.FEED_MINIBATCH
    assert block.var("fc_0.w_0").shape == (4, 3)
    parsed = Program.parse_from_string(program.desc.serialize_to_string())
    assert parsed.desc.serialize_to_string() == program.desc.serialize_to_string()


def test_reads_a_training_program_of_paddle():
    program = Program.parse_from_string((DATA / "adam.pdmodel").read_bytes())
    ops = program.global_block().ops
    assert [op.type for op in ops].count("adam") == 4
    adam = next(op for op in ops if op.type == "adam")
    assert (adam.attr("beta1"), adam.attr("epsilon"), adam.attr("op_role")) == (
        0.8999999761581421,
        np.float32(1e-8).item(),
        2,
    )
    assert sorted(adam.outputs) == ["Beta1PowOut", "Beta2PowOut", "Moment1Out", "Moment2Out", "ParamOut"]


def test_sub_blocks():
    program = Program.parse_from_string((DATA / "while.bin").read_bytes())
    assert program.num_blocks == 2
    inner = program.block(1)
    assert inner.parent_idx == 0
    assert [op.type for op in inner.ops] == ["increment", "less_than"]
    assert program.global_block().ops[-1].attr("sub_block") is inner
    copy = Program.parse_from_string(program.desc.serialize_to_string())
    assert copy.global_block().ops[-1].attr("sub_block") is copy.block(1)


def test_the_text_is_that_of_fluid():
    program = small_program()
    text = program.to_string()
    assert text.startswith('blocks {\n  idx: 0\n  parent_idx: -1\n  vars {\n    name: "x"\n')
    assert text.endswith("version {\n  version: 1008005\n}\n")
    assert str(program) == text
    assert str(program.global_block().var("w")) == (
        'name: "w"\ntype {\n  type: LOD_TENSOR\n  lod_tensor {\n    tensor {\n      data_type: FP32\n'
        "      dims: 4\n      dims: 3\n    }\n  }\n}\npersistable: true\n"
    )
    assert str(program.global_block().ops[1]).startswith(
        'inputs {\n  parameter: "ScaleTensor"\n}\ninputs {\n'
    )


def test_details_are_what_is_not_saved():
    program = small_program()
    text = program.global_block().var("w").to_string(True, with_details=True)
    assert text.endswith(
        "persistable: true\nerror_clip: None\nstop_gradient: False\ntrainable: True\n"
        "optimize_attr: {'learning_rate': 1.0}\nregularizer: None\ndo_model_average: None\n"
    )
    whole = program.to_string(True, with_details=True)
    assert whole.startswith('blocks {\n  idx: 0\n  parent_idx: -1\n  vars {\n    name: "x"\n    type {\n')
    assert "    need_check_feed: true\n    error_clip: None\n    stop_gradient: True\n  }\n" in whole
    assert '  ops {\n    inputs {\n      parameter: "X"\n' in whole
    assert whole.endswith("\n  }\n}")


def test_other_kinds_of_variables_round_trip():
    program = Program()
    block = program.global_block()
    block.create_var(name="array", type=VarType.LOD_TENSOR_ARRAY, dtype="int64", shape=[2])
    block.create_var(name="rows", type=VarType.SELECTED_ROWS, dtype="float64", shape=[5, 2])
    block.create_var(name="reader", type=VarType.READER, persistable=True)
    copy = Program.parse_from_string(program.desc.serialize_to_string()).global_block()
    assert (copy.var("array").type, copy.var("array").dtype) == (VarType.LOD_TENSOR_ARRAY, VarType.INT64)
    assert (copy.var("rows").type, copy.var("rows").shape) == (VarType.SELECTED_ROWS, (5, 2))
    assert (copy.var("reader").type, copy.var("reader").persistable) == (VarType.READER, True)


@pytest.mark.parametrize("data", [b"hello", b"", b"\x80\x02}q\x00.", b"\x00" * 40])
def test_foreign_bytes_are_refused(data):
    with pytest.raises(FormatError, match="the bytes"):
        Program.parse_from_string(data)


def test_a_cut_off_program_is_refused():
    data = (DATA / "inference" / "__model__").read_bytes()
    for size in (1, 10, 500, 2500):
        with pytest.raises(FormatError, match="not a"):
            Program.parse_from_string(data[:size])


def test_only_bytes_are_read():
    with pytest.raises(TypeError, match="from bytes, got str"):
        Program.parse_from_string("blocks {}")


def test_damaged_blocks_are_refused():
    message = message_of(small_program())
    message.blocks[0].parent_idx = 7
    with pytest.raises(FormatError, match="block 0 of 1 has idx 0, parent_idx 7"):
        Program.parse_from_string(message.SerializeToString())
    message.blocks[0].parent_idx = -1
    attr = message.blocks[0].ops[0].attrs.add(name="sub_block", type=8, block_idx=3)
    with pytest.raises(FormatError, match="'sub_block' in block 0 names block 3 of 1"):
        Program.parse_from_string(message.SerializeToString())
    attr.block_idx = 0
    with pytest.raises(FormatError, match="names block 0"):
        Program.parse_from_string(message.SerializeToString())


@pytest.mark.parametrize("name", [b"scale_0.tmp_0", b"Out", b"bias_after_scale", b"x_in", b"op_role_var"])
def test_names_that_are_not_text_are_refused(name):
    program = Program()
    with fluid.program_guard(program, Program()):
        fluid.layers.scale(fluid.data("x_in", [2, 3]), 2.0)
    saved = program.desc.serialize_to_string()
    for place in range(len(saved)):
        if saved.startswith(name, place):
            damaged = saved[:place] + b"\xff" + saved[place + 1 :]
            with pytest.raises(FormatError):
                Program.parse_from_string(damaged)


def test_operators_that_do_not_fit_are_refused():
    message = message_of(small_program())
    message.blocks[0].ops[0].inputs[0].arguments[0] = "nobody"
    with pytest.raises(OperatorError, match="names variable 'nobody'"):
        Program.parse_from_string(message.SerializeToString())
    message.blocks[0].ops[0].type = "no_such_operator"
    with pytest.raises(NotSupportedError, match="no operator 'no_such_operator'"):
        Program.parse_from_string(message.SerializeToString())
