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
        (
            "square_error_cost",
            lambda x: layers.square_error_cost(x, x),
            {"float32", "float64"},
        ),
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
