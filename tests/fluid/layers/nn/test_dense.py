"""Fully connected layers and embeddings: appended operators, names and initial values as in Fluid 1.8, errors."""

import numpy as np
import pytest

from fluidlite import input as any_shape
from fluidlite import layers
from fluidlite.data import data
from fluidlite.param_attr import ParamAttr


def listed(program):
    """The operators as (type, input names, output names)."""
    ops = program.global_block().ops
    return [
        (op.type, [n for names in op.inputs.values() for n in names], list(op.output_arg_names)) for op in ops
    ]


def test_fc_of_two_inputs(programs):
    x, y = data("x", [None, 3, 4], "float32"), data("y", [None, 5], "float32")
    out = layers.fc([x, y], 6, act="softmax")
    assert listed(programs[0]) == [
        ("mul", ["x", "fc_0.w_0"], ["fc_0.tmp_0"]),
        ("mul", ["y", "fc_0.w_1"], ["fc_0.tmp_1"]),
        ("sum", ["fc_0.tmp_0", "fc_0.tmp_1"], ["fc_0.tmp_2"]),
        ("elementwise_add", ["fc_0.tmp_2", "fc_0.b_0"], ["fc_0.tmp_3"]),
        ("softmax", ["fc_0.tmp_3"], ["fc_0.tmp_4"]),
    ]
    assert out.shape == (-1, 6)
    params = {p.name: p.shape for p in programs[0].all_parameters()}
    assert params == {"fc_0.w_0": (12, 6), "fc_0.w_1": (5, 6), "fc_0.b_0": (6,)}
    startup = programs[1].global_block().ops
    assert [op.output_arg_names for op in startup] == [["fc_0.b_0"], ["fc_0.w_1"], ["fc_0.w_0"]]
    assert startup[1].attr("max") == pytest.approx(0.7385489344596863)


@pytest.mark.parametrize(("dims", "shape"), [(1, (-1, 6)), (2, (-1, 3, 6)), (-1, (-1, 3, 6))])
def test_fc_keeps_leading_dimensions(programs, dims, shape):
    out = layers.fc(data("x", [None, 3, 4], "float32"), 6, num_flatten_dims=dims, bias_attr=False)
    assert out.shape == shape
    assert [op.type for op in programs[0].global_block().ops] == ["mul"]


def test_layers_of_one_name_go_on_counting(programs):
    x = data("x", [None, 4], "float32")
    layers.fc(x, 2, name="own")
    assert layers.fc(x, 2, name="own").name == "own.tmp_3"
    assert [p.name for p in programs[0].all_parameters()] == ["own.w_0", "own.b_0", "own.w_1", "own.b_1"]


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda x: layers.fc("x", 3), TypeError, "The type of 'input' in fc must be a Variable"),
        (lambda x: layers.fc(x.astype("int64"), 3), TypeError,
         "data type of 'input' in fc must be .*int64"),
        (lambda x: layers.fc(x, 3, num_flatten_dims=2), ValueError,
         r"'num_flatten_dims' of fc must be in \[1, 2\)"),
        (lambda x: layers.fc(data("free", [2, None], "float32"), 3), ValueError,
         "needs to know the dimensions"),
        (lambda x: layers.fc([x, x], 3, param_attr=["a"] * 3), ValueError, "2 inputs but param_attr has 3"),
    ],
)  # fmt: skip
def test_fc_refuses(programs, build, error, message):
    x = data("x", [None, 4], "float32")
    with pytest.raises(error, match=message):
        build(x)


def test_embeddings(programs):
    ids, grid = data("ids", [None, 1], "int64"), data("grid", [None, 3], "int64")
    first = layers.embedding(ids, [10, 4], is_sparse=True, padding_idx=-1)
    second = any_shape.embedding(grid, [10, 4], param_attr="embedding_0.w_0")
    assert listed(programs[0]) == [
        ("lookup_table", ["ids", "embedding_0.w_0"], ["embedding_0.tmp_0"]),
        ("lookup_table_v2", ["grid", "embedding_0.w_0"], ["embedding_1.tmp_0"]),
    ]
    assert (first.shape, second.shape) == ((-1, 4), (-1, 3, 4))
    attrs = programs[0].global_block().ops[0].attrs
    assert (attrs["padding_idx"], attrs["is_sparse"], attrs["remote_prefetch"]) == (9, True, True)
    assert len(programs[1].global_block().ops) == 1


@pytest.mark.parametrize(("given", "meant"), [(None, -1), (-1, 9), (-11, -1), (10, 10), (12, 12)])
def test_padding_is_what_it_is_in_fluid(programs, given, meant):
    any_shape.embedding(data("ids", [None], "int64"), [10, 4], padding_idx=given)
    assert programs[0].global_block().ops[0].attrs["padding_idx"] == meant


def test_embedding_refuses(programs):
    with pytest.raises(TypeError, match="data type of 'input' in fluid.layers.embedding must be .*float32"):
        layers.embedding(data("x", [None, 1], "float32"), [10, 4])
    with pytest.raises(ValueError, match=r"last dimension of Ids must be 1.*test_dense.py"):
        layers.embedding(data("grid", [None, 3], "int64"), [10, 4])


def test_param_attr_reaches_the_table(programs):
    layers.embedding(
        data("ids", [None, 1], "int64"), [10, 4], param_attr=ParamAttr(name="t", learning_rate=0.5)
    )
    table = programs[0].global_block().var("t")
    assert table.optimize_attr == {"learning_rate": 0.5}
    assert np.prod(table.shape) == 40
