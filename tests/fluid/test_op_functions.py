"""Families of functions: each has its name, words, defaults and the family's signature."""

import inspect
import pickle

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base.dtypes import VarType
from fluidlite.op_functions import run_layer
from fluidlite.paddle.nn import functional


@pytest.mark.parametrize(
    ("function", "name", "first", "data_format"),
    [
        (layers.conv2d, "conv2d", "input", "NCHW"),
        (layers.conv3d, "conv3d", "input", "NCDHW"),
        (functional.conv1d, "conv1d", "x", "NCL"),
        (functional.conv3d_transpose, "conv3d_transpose", "x", "NCDHW"),
    ],
)
def test_members_are_functions_of_their_own(function, name, first, data_format):
    assert function.__name__ == function.__qualname__ == name
    assert f"{name}`)" in function.__doc__
    assert pickle.loads(pickle.dumps(function)) is function
    taken = inspect.signature(function).parameters
    assert next(iter(taken)) == first
    assert taken["data_format"].default == data_format


def test_errors_of_wrong_calls_name_the_function():
    with pytest.raises(TypeError, match=r"^conv3d\(\) missing 3 required positional arguments: 'input', "):
        layers.conv3d()
    with pytest.raises(TypeError, match=r"^conv3d\(\) got an unexpected keyword argument 'filters'"):
        layers.conv3d(None, 1, 1, filters=2)


def test_arguments_of_a_layer_are_inputs_and_attributes_of_its_operator():
    def layer(boxes, image_info, prior_box_var, target_box, box_clip=2.0, unused=1, name=None):
        return run_layer(
            "box_decoder_and_assign", locals(), without=("unused",), PriorBox="boxes", BoxScore="image_info"
        )

    with fluid.program_guard(fluid.Program()):
        given = [fluid.data(name, [2, 1 if name == "b" else 4], "float32") for name in "abcd"]
        made = layer(*given, name="made")
        (op,) = fluid.default_main_program().global_block().ops
    slots = {slot: op.input(slot) for slot in ("PriorBox", "PriorBoxVar", "TargetBox", "BoxScore")}
    assert slots == {"PriorBox": ["a"], "PriorBoxVar": ["c"], "TargetBox": ["d"], "BoxScore": ["b"]}
    assert op.attr("box_clip") == 2.0
    assert [one.name for one in made] == ["made.tmp_0", "made.tmp_1"]


def test_attributes_that_are_none_keep_their_defaults_and_tuples_become_lists():
    def layer(x, axes, starts=(0,), ends=(1,)):
        decrease_axis = None
        return run_layer("slice", locals(), Input="x")

    with fluid.program_guard(fluid.Program()):
        layer(fluid.data("x", [2, 4], "float32"), (1,))
        (op,) = fluid.default_main_program().global_block().ops
    assert op.attr("axes") == [1] and op.attr("starts") == [0]
    assert op.attr("decrease_axis") == []


@pytest.mark.parametrize(
    ("called", "message"),
    [({}, r"no use for the arguments \['speed'\]"), ({"Alpha": "speed"}, r"to be called \['Alpha'\]")],
)
def test_arguments_that_the_operator_does_not_have_are_errors(called, message):
    with pytest.raises(LookupError, match=message), fluid.program_guard(fluid.Program()):
        run_layer("elu", {"x": fluid.data("x", [2, 4], "float32"), "speed": 1.0}, **called)


def test_inputs_that_are_no_tensors_are_called_as_the_layer_calls_them():
    def layer(boxes, others):
        return run_layer("iou_similarity", locals(), X="boxes", Y="others")

    with fluid.program_guard(fluid.Program()):
        boxes = fluid.data("boxes", [2, 4], "float32")
        for wrong in (None, 1.0):
            with pytest.raises(TypeError, match="'others' in iou_similarity must be a Variable"):
                layer(boxes, wrong)


def test_a_variable_is_the_input_and_a_number_the_attribute_of_an_argument_that_is_both():
    def layer(x, exponent):
        return run_layer("pow", locals(), factor="exponent", FactorTensor="exponent")

    with fluid.program_guard(fluid.Program()):
        x, exponent = fluid.data("x", [2], "float32"), fluid.data("exponent", [1], "float32")
        layer(x, exponent)
        layer(x, 3.0)
        by_variable, by_number = fluid.default_main_program().global_block().ops
    assert by_variable.input("FactorTensor") == ["exponent"] and by_variable.attr("factor") == 1.0
    assert by_number.attr("factor") == 3.0 and not by_number.input("FactorTensor")


def test_numbers_become_what_the_attribute_is_and_types_their_numbers():
    def layer(x, offset=1, factor=2):
        return run_layer("scale", {"x": x, "scale": factor, "bias": offset})

    with fluid.program_guard(fluid.Program()):
        x = fluid.data("x", [2], "float32")
        layer(x, offset=np.int64(3))
        run_layer("fill_any_like", {"x": x, "dtype": "int64", "value": np.array([2])})
        scaled, filled = fluid.default_main_program().global_block().ops
    assert (scaled.attr("scale"), scaled.attr("bias")) == (2.0, 3.0)
    assert type(scaled.attr("scale")) is type(scaled.attr("bias")) is float
    assert (filled.attr("dtype"), filled.attr("value")) == (int(VarType.INT64), 2.0)


def test_an_argument_that_is_an_output_takes_it(programs):
    x, out = fluid.data("x", [2], "float32"), fluid.layers.create_tensor("float32")
    assert run_layer("log1p", {"x": x, "out": out}) is out
    assert run_layer("log1p", {"x": x, "out": None}) is not out
    with pytest.raises(TypeError, match="'target' in log1p must be a Variable"):
        run_layer("log1p", {"x": x, "target": 3}, Out="target")
    with fluid.dygraph.guard():
        x, out = (fluid.dygraph.to_variable(np.ones(2, "float32")) for _ in range(2))
        assert run_layer("scale", {"x": x, "scale": 3, "out": out}) is out
        np.testing.assert_array_equal(out.numpy(), [3, 3])


def test_an_activation_is_that_of_the_result(programs):
    x = fluid.data("x", [2], "float32")
    made = run_layer("elementwise_add", {"x": x, "y": x, "act": "relu", "name": "sum"})
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types == ["elementwise_add", "relu"] and made.name == "sum.tmp_1"


@pytest.mark.parametrize("eager", [False, True])
def test_errors_of_input_types_name_the_arguments_of_the_layer(programs, eager):
    ids = fluid.data("ids", [2, 1], "int64")
    if eager:
        with fluid.dygraph.guard():
            ids = fluid.dygraph.to_variable(np.ones([2, 1], "int64"))
    floats = r"\['float16', 'float32', 'float64'\], but received int64"
    with pytest.raises(TypeError, match=f"data type of 'input' in softmax must be {floats}"):
        layers.softmax(ids)
    with pytest.raises(TypeError, match=f"data type of 'input' in cross_entropy must be {floats}"):
        layers.cross_entropy(ids, ids)
    with pytest.raises(TypeError, match=r"'input\[1\]' in sums must be a Variable"):
        layers.sums([ids, 3])
    with pytest.raises(ValueError, match="'x' of sum must not be empty"):
        layers.sum([])


def test_eager_tensors_are_refused_for_another_sort_of_numbers_only():
    """Fluid asks the kernels; a program refuses float64 here."""
    half = np.full([2, 1], 0.5)
    with fluid.dygraph.guard():
        values = fluid.dygraph.to_variable(half)
        assert layers.log_loss(values, values).dtype == VarType.FP64
    with fluid.program_guard(fluid.Program()):
        x = fluid.data("x", [2, 1], "float64")
        with pytest.raises(TypeError, match="'input' in log_loss must be .*float32.*received float64"):
            layers.log_loss(x, x)


@pytest.mark.parametrize("eager", [False, True])
def test_several_tensors_are_no_tensor(programs, eager):
    x = fluid.data("x", [2, 2], "float32")
    if eager:
        with fluid.dygraph.guard():
            x = fluid.dygraph.to_variable(np.ones([2, 2], "float32"))
    for given in ([x, x], (x, x, x), []):
        for layer, name in ((layers.relu, "x"), (layers.reduce_sum, "input"), (layers.softmax, "input")):
            with pytest.raises(
                TypeError, match=f"The type of '{name}' in {layer.__name__} must be a Variable"
            ):
                layer(given)
    np.testing.assert_array_equal(layers.sums([x, x]).shape, [2, 2])


@pytest.mark.usefixtures("alone")
def test_a_list_of_one_is_taken_where_fluid_does_not_ask_for_types():
    x = fluid.data("x", [None, 4])
    assert tuple(fluid.layers.reduce_max([x]).shape) == tuple(fluid.layers.reduce_max(x).shape)
    for layer in (fluid.layers.relu, fluid.layers.reduce_sum, fluid.layers.label_smooth):
        with pytest.raises(TypeError, match="must be a Variable|must be Variable|'(x|input|label)'"):
            layer([x])


@pytest.mark.usefixtures("alone")
def test_states_of_detection_map_are_three():
    found, label = (fluid.data(name, [None, 6], lod_level=1) for name in ("found", "label"))
    count, part = fluid.data("count", [None, 1], "int32"), fluid.data("part", [None, 2], lod_level=1)
    for states in ([], [count, part], [count, part, part, part]):
        for given in ({"input_states": states}, {"out_states": states}):
            with pytest.raises(ValueError, match="zip"):
                fluid.layers.detection.detection_map(found, label, 2, **given)


def test_callers_without_a_module_name(programs):
    names = {"layers": layers, "x": fluid.data("x", [3], "bool")}
    exec("out = layers.reduce_all(x)", names)
    assert names["out"].dtype == VarType.BOOL
