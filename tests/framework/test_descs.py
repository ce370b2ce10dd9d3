"""`desc`: views of programs, blocks, operators and variables; recorded answers are those of Paddle 1.8.5."""

import pytest

import fluidlite as fluid
from fluidlite import core
from fluidlite.base.errors import EnforceNotMet
from fluidlite.framework import Operator
from fluidlite.framework.common_attrs import tuning
from fluidlite.ops.registry import find

VarType = core.VarDesc.VarType


@pytest.fixture
def block(programs):
    x = fluid.data("x", [None, 4], "float32")
    y = fluid.layers.fc(x, 3, name="f", act="relu")
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
    return programs[0].global_block()


def test_operators_show_their_slots_and_attributes(block):
    desc = block.ops[0].desc
    assert (desc.type(), desc.inputs(), desc.outputs()) == (
        "mul",
        {"X": ["x"], "Y": ["f.w_0"]},
        {"Out": ["f.tmp_0"]},
    )
    assert (
        desc.input("X") == ["x"]
        and desc.input_names() == ["X", "Y"]
        and desc.output_arg_names() == ["f.tmp_0"]
    )
    assert desc.attr("x_num_col_dims") == 1 and desc.attr_type("x_num_col_dims") == core.AttrType.INT
    assert str(desc.attr_type("op_namescope")) == "AttrType.STRING" and desc.attr("op_namescope") == "/"
    assert desc.attr("op_role_var") == [] and "op_device" in desc.attr_names()
    assert "test_descs.py" in desc.attr("op_callstack")[0]
    for call in (
        lambda: desc.attr("nope"),
        lambda: desc.attr_type("nope"),
        lambda: desc.input("Nope"),
        lambda: desc.output("Nope"),
    ):
        with pytest.raises(EnforceNotMet, match="(?i)nope"):
            call()
    assert desc.input("X") == ["x"] and desc == block.desc.op(0) and desc != block.desc.op(1)
    assert desc.block() == block.desc and len({desc, block.desc.op(0)}) == 1


def test_what_is_set_through_a_view_is_set_in_the_program(block):
    op, desc, before = block.ops[0], block.ops[0].desc, block.program._version
    desc._set_attr("x_num_col_dims", 2)
    assert op.attr("x_num_col_dims") == 2 and block.program._version > before
    op._set_attr("mine", [1.5])
    assert desc.attr("mine") == [1.5] and op.attr_type("mine") == core.AttrType.FLOATS
    desc.remove_attr("mine")
    assert not op.has_attr("mine")
    desc._rename_input("x", "z")
    desc.set_output("Out", ["o"])
    assert op.input("X") == ["z"] and op.output("Out") == ["o"]

    var = block.desc.find_var(b"f.w_0")
    var.set_shape([4, 5])
    var.set_dtype(VarType.FP64)
    var.set_persistable(False)
    var.set_lod_level(1)
    weight = block.var("f.w_0")
    assert (weight.shape, weight.dtype, weight.persistable, weight.lod_level) == (
        (4, 5),
        VarType.FP64,
        False,
        1,
    )
    weight.stop_gradient = True
    assert (var.name(), var.shape(), var.type()) == ("f.w_0", [4, 5], VarType.LOD_TENSOR)
    assert var == weight.desc


def test_operators_made_by_hand(block):
    count = len(block.ops)
    made = core.OpDesc()
    assert (made.type(), made.inputs(), made.input_arg_names()) == ("", {}, [])
    made.set_type("relu")
    made.set_input("X", ["f.tmp_0"])
    made.set_output("Out", ["new"])
    new = block.desc.var(b"new")
    assert new.shape() == [] and block.desc.has_var("new") and "new" in block.vars

    added = block.desc.append_op()
    assert added.type() == "" and block.desc.op_size() == count + 1
    added.copy_from(made)
    block._sync_with_cpp()
    assert isinstance(block.ops[-1], Operator) and block.ops[-1].type == "relu"
    added.infer_shape(block.desc)
    assert new.shape() == [-1, 3] and block.var("new").shape == (-1, 3)
    block.desc._prepend_op()
    block.desc._remove_op(0, 1)
    block.desc._remove_op(count, count + 1)
    assert len(block.ops) == count
    block.desc._rename_var(b"new", b"other")
    block.desc._remove_var(b"other")
    block.desc._remove_var(b"never there")
    assert block.desc.find_var(b"other") is None and block.desc.find_var_recursive("x").name() == "x"
    for index in (-1, count):
        with pytest.raises(IndexError):
            block.desc.op(index)


def test_an_operator_without_type_cannot_run(programs):
    fluid.default_main_program().global_block().desc.append_op()
    with pytest.raises(EnforceNotMet, match="without type cannot be run"):
        fluid.Executor(fluid.CPUPlace()).run(fetch_list=[])


def test_programs_are_shown_saved_and_parsed(block):
    desc = block.program.desc
    assert desc.num_blocks() == 1 and desc.block(0).op_size() == len(block.ops) and desc._version() == 1008005
    other = core.ProgramDesc()
    assert other.block(0).op_size() == 0
    other.parse_from_string(desc.serialize_to_string())
    assert [op.type for op in fluid.Program._construct_from_desc(other).global_block().ops] == [
        op.type for op in block.ops
    ]
    copy = core.ProgramDesc(other)
    copy.block(0)._remove_op(0, 1)
    assert other.block(0).op_size() == copy.block(0).op_size() + 1
    inner = copy.append_block(copy.block(0))
    assert (inner.id, inner.parent, copy.num_blocks()) == (1, 0, 2)
    assert inner.find_var(b"x") is None and inner.has_var_recursive(b"x")
    for part in (block.desc, block.ops[0].desc, block.var("x").desc):
        assert part.serialize_to_string()


def test_ends_of_a_saved_program(block, tmp_path):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [block.var("f.tmp_2")], exe)
    read = fluid.Program.parse_from_string((tmp_path / "__model__").read_bytes())
    assert read.desc.get_feed_target_names() == ["x"] and len(read.desc.get_fetch_target_names()) == 1


def test_parameters_stay_parameters_after_parsing(block):
    read = fluid.Program.parse_from_string(block.program.desc.serialize_to_string())
    assert not read.all_parameters()
    read._copy_param_info_from(block.program)
    read._copy_data_info_from(block.program)
    assert [p.name for p in read.all_parameters()] == [p.name for p in block.all_parameters()]
    assert read.global_block().var("f.w_0").block is read.global_block()


def test_gradient_operators_as_fluid_makes_them(block):
    made, whose = core.get_grad_op_desc(block.ops[0].desc, set(), [])
    assert [(g.type(), g.inputs(), g.outputs()) for g in made] == [
        (
            "mul_grad",
            {"X": ["x"], "Y": ["f.w_0"], "Out@GRAD": ["f.tmp_0@GRAD"]},
            {"X@GRAD": ["x@GRAD"], "Y@GRAD": ["f.w_0@GRAD"]},
        )
    ]
    assert whose == {"f.w_0@GRAD": "f.w_0", "x@GRAD": "x", "f.tmp_0@GRAD": "f.tmp_0"}
    (grad,), _ = core.get_grad_op_desc(block.ops[0].desc, {"x@GRAD"}, [])
    assert grad.output("X@GRAD") == [] and grad.output("Y@GRAD") == ["f.w_0@GRAD"]
    assert core.get_grad_op_desc(block.ops[-1].desc, set(), []) == ([], {})


def test_notes_on_variables(block):
    var = block.var("x")
    assert var._get_info("kept") is None
    var._set_info("kept", 3)
    assert var._get_info("kept") == 3


def test_attributes_that_only_tune_fluids_kernels(block):
    mul = block.ops[0]
    assert mul.has_attr("use_mkldnn") and mul.attr("use_mkldnn") is False and mul.attr("scale_y") == [1.0]
    mul.attr("scale_y").append(2.0)
    assert mul.attr("scale_y") == [1.0] and "use_cudnn" not in mul.attr_names
    # Those of Paddle 1.8.5.
    assert mul.attr_names == sorted(
        "op_role_var op_device x_num_col_dims force_fp32_output y_num_col_dims op_role op_namescope op_callstack "
        "use_mkldnn scale_out scale_x scale_y".split()
    )
    mul._set_attr("use_mkldnn", True)
    assert mul.desc.attr("use_mkldnn") is True and mul.desc.attr_type("scale_y") == core.AttrType.FLOATS
    assert core.get_op_attrs_default_value(b"matmul")["head_number"] == 1


@pytest.mark.parametrize("op_type", ["conv2d", "mul", "relu", "nce"])
def test_they_are_no_attributes_of_ours(op_type):
    assert tuning(op_type) and not set(tuning(op_type)) & set(find(op_type).attrs)
