"""Wrong element types are refused while a program is built, where Fluid 1.8.5 refuses them."""

import pytest

import fluidlite as fluid
from fluidlite.base.dtypes import VarType
from fluidlite.ops import input_types
from fluidlite.ops.registry import find, known_types

pytestmark = pytest.mark.usefixtures("alone")
layers = fluid.layers
ALL = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize(
    ("layer", "build", "taken"),
    [
        ("relu", layers.relu, {"float16", "float32", "float64"}),
        ("square", layers.square, {"int32", "int64", "float16", "float32", "float64"}),
        ("log", layers.log, {"float32", "float64"}),
        ("fc", lambda x: layers.fc(x, 2), {"float16", "float32", "float64"}),
        ("conv2d", lambda x: layers.conv2d(layers.reshape(x, [1, 1, 4, 4]), 2, 3), {"float32", "float64"}),
        ("lrn", lambda x: layers.lrn(layers.reshape(x, [1, 1, 4, 4])), {"float32"}),
        ("embedding", lambda x: fluid.embedding(x, [8, 2]), {"int64"}),
        ("one_hot", lambda x: layers.one_hot(x, 8), {"int32", "int64"}),
        ("reduce_all", layers.reduce_all, {"bool"}),
        ("argsort", layers.argsort, {"uint8", "int16", "int32", "int64", "float32", "float64"}),
        ("scale", lambda x: layers.scale(x, 2.0), set(ALL) - {"bool"}),
        ("square_error_cost", lambda x: layers.square_error_cost(x, x), {"float32", "float64"}),
    ],
)
@pytest.mark.parametrize("dtype", ALL)
def test_types_that_a_layer_takes(layer, build, taken, dtype):
    x = fluid.data("x", [16, 1], dtype)
    if layer in ("conv2d", "lrn") and dtype not in ("float32", "float64"):
        layer = "reshape" if dtype not in ("int32", "int64", "float16") else layer
    if dtype in taken or (layer, dtype) == ("conv2d", "float16"):
        build(x)
        return
    before = len(fluid.default_main_program().global_block().ops)
    with pytest.raises(
        TypeError, match=rf"The data type of '\w+' in (fluid.)?{layer}\w* must be \[.*received {dtype}"
    ):
        build(x)
    assert len(fluid.default_main_program().global_block().ops) <= before + 1


def test_operators_of_python_are_not_checked():
    x = fluid.data("x", [4], "uint8")
    assert (x + x).dtype == VarType.UINT8


def test_the_table_names_inputs_that_exist():
    by_layer = {"square_error_cost", "ones_like"}
    for op_type, slot in input_types._BY_INPUT:
        if op_type not in by_layer:
            assert op_type in known_types()
            assert slot in find(op_type).slots


def shaped(*shape, dtype="float32"):
    return layers.data(f"x{len(shape)}{dtype}", list(shape), dtype=dtype, append_batch_size=False)


@pytest.mark.parametrize(
    ("error", "build"),
    [
        (TypeError, lambda: layers.embedding(shaped(4, 1, dtype="int64"), [8, 2], dtype="int32")),
        (TypeError, lambda: fluid.embedding(shaped(4, dtype="int64"), [8, 2], dtype="bool")),
        (TypeError, lambda: layers.lod_reset(shaped(6, 3, dtype="uint8"), target_lod=[0, 6])),
        (TypeError, lambda: layers.lod_append(shaped(6, 3, dtype="bool"), [0, 6])),
        (TypeError, lambda: layers.less_than(shaped(4), shaped(4), force_cpu=1)),
        (TypeError, lambda: layers.pool2d(shaped(2, 3, 4, 4), 2, use_cudnn=0)),
        (TypeError, lambda: layers.pool3d(shaped(2, 3, 4, 4, 4), 2, use_cudnn="False")),
        (ValueError, lambda: layers.pool2d(shaped(2, 3, 4, 4), 2.5)),
        (ValueError, lambda: layers.pool2d(shaped(2, 3, 4, 4), "3")),
        (ValueError, lambda: layers.pool2d(shaped(2, 3, 4, 4), [[1, 2]])),
        (ValueError, lambda: layers.pool2d(shaped(2, 3, 4, 4), 2, pool_stride={})),
        (fluid.core.EnforceNotMet, lambda: layers.pool2d(shaped(2, 3, 4, 4), 2, ceil_mode="False")),
        (fluid.core.EnforceNotMet, lambda: layers.pool2d(shaped(2, 3, 4, 4), 2, exclusive=[])),
        (fluid.core.EnforceNotMet, lambda: layers.topk(shaped(4), 2.0)),
        (TypeError, lambda: layers.adaptive_pool2d(shaped(2, 3, 4, 4, dtype="int8"), 2)),
    ],
)
def test_errors_that_scripts_catch(error, build):
    with pytest.raises(error):
        build()


@pytest.mark.parametrize("dtype", ALL)
def test_pooling_takes_any_type_while_it_is_built(dtype):
    assert layers.pool2d(shaped(2, 3, 4, 4, dtype=dtype), 2).shape == (2, 3, 3, 3)
    assert layers.pool3d(shaped(2, 3, 4, 4, 4, dtype=dtype), 2).shape == (2, 3, 3, 3, 3)
    if dtype in ("int32", "int64"):
        assert layers.adaptive_pool2d(shaped(2, 3, 4, 4, dtype=dtype), 2).shape == (2, 3, 2, 2)


def test_attributes_have_the_type_of_their_default():
    block, x = fluid.default_main_program().global_block(), shaped(4)
    out = {"Out": [block.create_var(name="out")]}
    for attrs in ({"scale": 2, "bias_after_scale": 1}, {"scale": True}):
        block.append_op(type="scale", inputs={"X": [x]}, outputs=out, attrs=attrs)
    for attrs in ({"scale": "2"}, {"bias": [1.0]}, {"bias_after_scale": "False"}):
        with pytest.raises(fluid.core.EnforceNotMet, match=rf"attribute {next(iter(attrs))} must be of type"):
            block.append_op(type="scale", inputs={"X": [x]}, outputs=out, attrs=attrs)
    with pytest.raises(fluid.core.EnforceNotMet, match="attribute axis must be of type int.* got 1.0"):
        inputs = {"X": [x], "Y": [x]}
        block.append_op(type="elementwise_add", inputs=inputs, outputs=out, attrs={"axis": 1.0})
