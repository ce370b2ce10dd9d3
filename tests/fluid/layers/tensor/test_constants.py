"""Layers that make constants, variables, parameters and random numbers."""

import numpy as np
import pytest

from fluidlite import CPUPlace, Executor, layers
from fluidlite.base.dtypes import VarType, to_numpy
from fluidlite.data import data
from fluidlite.executor.interpreter.interpreter import Interpreter
from fluidlite.executor.scope import Scope
from fluidlite.framework import Parameter, Variable
from fluidlite.initializer import Constant
from fluidlite.param_attr import ParamAttr


def _value(programs, var, feed=None):
    scope = Scope()
    Interpreter(programs[1], scope, {}).run()
    run = Interpreter(programs[0], scope, {name: (array, ()) for name, array in (feed or {}).items()})
    run.run()
    return run.fetch(var.name).array


@pytest.mark.parametrize(
    "layer", [layers.uniform_random, layers.gaussian_random, lambda s: layers.ones(s, "float32")]
)
def test_sizes_of_a_shape_have_no_gradient(programs, layer):
    sizes = layers.shape(data("x", [None, 4], "float32"))
    rows = layers.slice(sizes, [0], [0], [1])
    assert not rows.stop_gradient
    layer([rows, 2])
    assert rows.stop_gradient
    layer(sizes)
    assert sizes.stop_gradient


def test_numbers_next_to_variable_sizes_of_uniform_random_are_int64_under_its_name(programs):
    rows = layers.slice(layers.shape(data("x", [None, 4], "float32")), [0], [0], [1])
    made = layers.uniform_random([rows, 2])
    (drawn,) = [op for op in programs[0].global_block().ops if op.type == "uniform_random"]
    assert drawn.input("ShapeTensorList") == [rows.name, "uniform_random_0.tmp_0"]
    assert programs[0].global_block().var("uniform_random_0.tmp_0").dtype == VarType.INT64
    assert made.name == "uniform_random_0.tmp_1"
    assert _value(programs, made, {"x": np.ones((3, 4), "float32")}).shape == (3, 2)


CONSTANTS = {
    "fill_constant": (lambda: layers.fill_constant([2, 3], "float32", 0.1), np.full((2, 3), 0.1, "float32")),
    "large": (lambda: layers.fill_constant([1], "int64", 2**53 + 1), np.array([2**53 + 1])),
    "fraction": (lambda: layers.fill_constant([2], "int32", 1.7), np.array([1, 1], "int32")),
    "bool": (lambda: layers.fill_constant([2], "bool", True), np.array([True, True])),
    "zeros": (lambda: layers.zeros([2, 2], "int32"), np.zeros((2, 2), "int32")),
    "ones": (lambda: layers.ones([2], "float64"), np.ones(2)),
    "range": (lambda: layers.range(0, 5, 2, "int64"), np.array([0, 2, 4])),
    "backwards": (lambda: layers.range(5, 0, -2, "int32"), np.array([5, 3, 1], "int32")),
    "floats": (lambda: layers.range(0.0, 1.0, 0.3, "float32"), np.array([0, 0.3, 0.6, 0.9], "float32")),
    "linspace": (lambda: layers.linspace(0, 10, 5, "float32"), np.array([0, 2.5, 5, 7.5, 10], "float32")),
    "eye": (lambda: layers.eye(2, 3), np.eye(2, 3, dtype="float32")),
    "diag": (lambda: layers.diag(np.array([1, 2], "float32")), np.diag([1, 2]).astype("float32")),
    "assign": (lambda: layers.assign(np.array([[1, 2]], "int64")), np.array([[1, 2]])),
    "bools": (lambda: layers.assign(np.array([True, False])), np.array([True, False])),
    "cast": (lambda: layers.cast(layers.ones([2], "float32") * -1.7, "int32"), np.array([-1, -1], "int32")),
    "zeros_like": (lambda: layers.zeros_like(layers.ones([2], "int64")), np.zeros(2, "int64")),
    "ones_like": (lambda: layers.ones_like(layers.zeros([2], "float32")), np.ones(2, "float32")),
    "increment": (lambda: layers.increment(layers.ones([1], "float32"), 2.0), np.array([3], "float32")),
    "clip": (lambda: layers.clip(layers.ones([2], "float32"), -1, 0.5), np.array([0.5, 0.5], "float32")),
    "clip_by_norm": (
        lambda: layers.clip_by_norm(layers.ones([4], "float32"), 1.0),
        np.full(4, 0.5, "float32"),
    ),
    "sign": (lambda: layers.sign(np.array([-2, 0, 3], "float32")), np.array([-1, 0, 1], "float32")),
    "argmax": (lambda: layers.argmax(np_var([[1, 5, 2], [7, 7, 1]]), -1), np.array([1, 0])),
    "argmin": (lambda: layers.argmin(np_var([[1, 5, 2], [7, 7, 1]])), np.array([0, 0, 1])),
    "argsort": (lambda: layers.argsort(np_var([[1, 5, 1]]), descending=True)[1], np.array([[1, 0, 2]])),
}


def np_var(values):
    return layers.assign(np.array(values, "float32"))


@pytest.mark.parametrize("case", sorted(CONSTANTS))
def test_values(programs, case):
    build, expected = CONSTANTS[case]
    var = build()
    made = _value(programs, var)
    assert made.dtype == expected.dtype == to_numpy(var.dtype)
    np.testing.assert_allclose(made, expected, rtol=1e-6)


def test_text_of_the_value_loses_nothing(programs):
    layers.fill_constant([1], "int64", 2**53 + 1)
    layers.fill_constant([1], "float32", 0.1)
    assert [op.attr("str_value") for op in programs[0].global_block().ops] == ["9007199254740993", "0.1"]


def test_shape_from_variables(programs):
    three = layers.fill_constant([1], "int32", 3)
    mixed = layers.fill_constant([2, three], "float32", 1.5)
    assert mixed.shape == (2, -1)
    whole = layers.fill_constant(layers.fill_constant([2], "int64", 3), "int32", three)
    np.testing.assert_array_equal(_value(programs, mixed), np.full((2, 3), 1.5, "float32"))
    np.testing.assert_array_equal(_value(programs, whole), np.full((3, 3), 3, "int32"))
    names = [op.output("Out")[0] for op in programs[0].global_block().ops]
    assert names[:3] == ["fill_constant_0.tmp_0", "fill_constant_2.tmp_0", "fill_constant_1.tmp_0"]


def test_a_shape_of_two_dimensions_is_read_row_by_row(programs):
    shape = layers.fill_constant([1, 2], "int32", 3)
    made = layers.fill_constant(shape, "float32", 1.5)
    assert len(made.shape) == 2
    (value,) = Executor(CPUPlace()).run(programs[0], fetch_list=[made])
    np.testing.assert_array_equal(value, np.full((3, 3), 1.5, "float32"))


def test_sizes_become_int32_where_they_do_in_fluid(programs):
    size = layers.fill_constant([1], "int64", 3)
    for make in (layers.uniform_random, layers.gaussian_random, lambda shape: layers.randint(0, 5, shape)):
        make([size, size])
    kinds = [op.type for op in programs[0].global_block().ops]
    assert kinds == ["fill_constant", "uniform_random", *["cast"] * 2, "gaussian_random", "randint"]
    layers.randint(0, 5, layers.fill_constant([2], "int64", 3))
    assert programs[0].global_block().ops[-2].type == "fill_constant"


def test_names_of_results_are_those_of_fluid(programs):
    x = layers.data("x", [4])
    assert [layers.tril(x).name, layers.tril(x, name="abc").name, layers.triu(x).name] == [
        "tril_0",
        "abc",
        "triu_0",
    ]
    names = [layers.full([1], 1.0).name, layers.fill_constant([1], "float32", 1.0).name]
    assert names == ["full_0.tmp_0", "fill_constant_1.tmp_0"]


def test_batch_size_like(programs):
    x = data("x", [None, 4])
    feed = {"x": np.zeros((5, 4), "float32")}
    like = layers.fill_constant_batch_size_like(x, [1, 2], "int64", 7)
    assert like.shape == (-1, 2)
    drawn = layers.uniform_random_batch_size_like(x, [3, 1], input_dim_idx=1, output_dim_idx=1, seed=1)
    normal = layers.gaussian_random_batch_size_like(x, [-1, 2], seed=1)
    np.testing.assert_array_equal(_value(programs, like, feed), np.full((5, 2), 7))
    assert _value(programs, drawn, feed).shape == (3, 4)
    assert _value(programs, normal, feed).shape == (5, 2)


def test_random_layers(programs):
    drawn = layers.uniform_random([3], min=-1.0, max=1.0, seed=3)
    normal = layers.gaussian_random([3], 1.0, 2.0, seed=3)
    whole = layers.randint(0, 10, [6], seed=7)
    below = layers.randint(4, shape=[50], dtype="int32")
    np.testing.assert_allclose(_value(programs, drawn), [-0.9998651, -0.4898053, 0.6081157], rtol=1e-6)
    np.testing.assert_allclose(_value(programs, normal), [2.1872685, 3.0648081, 1.3008784], rtol=2e-6)
    np.testing.assert_array_equal(_value(programs, whole), [0, 5, 2, 2, 7, 3])
    made = _value(programs, below)
    assert made.dtype == np.int32
    assert set(made) <= {0, 1, 2, 3}


def test_constants_have_no_gradient(programs):
    stopped = [layers.zeros([1], "float32"), layers.range(0, 2, 1, "int64"), layers.eye(2)]
    stopped.append(layers.zeros_like(stopped[0]))
    assert all(var.stop_gradient for var in stopped)
    assert not layers.assign(stopped[0]).stop_gradient
    assert not layers.uniform_random([1]).stop_gradient


def test_create_parameter(programs):
    named = layers.create_parameter([2, 3], "float32", name="p", default_initializer=Constant(2.0))
    other = layers.create_parameter([2], "float32", attr=ParamAttr(learning_rate=0.5), is_bias=True)
    assert isinstance(named, Parameter)
    assert (named.name, other.name) == ("p", "create_parameter_0.b_0")
    assert other.optimize_attr == {"learning_rate": 0.5}
    assert [op.type for op in programs[1].global_block().ops] == ["fill_constant", "fill_constant"]
    np.testing.assert_array_equal(_value(programs, layers.assign(named)), np.full((2, 3), 2, "float32"))


def test_create_global_var_and_tensor(programs):
    var = layers.create_global_var([2], 1.5, "float32", persistable=True)
    assert (var.name, var.persistable, var.stop_gradient) == ("_generated_var_0", True, True)
    empty = layers.create_tensor("int64")
    assert (empty.name, empty.dtype) == ("create_tensor_0", VarType.INT64)
    layers.assign(np.array([4], "int64"), empty)
    np.testing.assert_array_equal(_value(programs, empty), [4])


def test_names_given_to_clip_are_the_results(programs):
    assert layers.clip(layers.ones([1], "float32"), 0.0, 1.0, name="mine").name == "mine"


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([3], (-1, 3)), ([None, 3], (-1, 3)), ([-1, 3], (-1, 3)), ([3, -1, 2], (3, -1, 2)), ([], (-1,))],
)
def test_layers_data_adds_the_batch_size_unless_it_is_there(programs, shape, expected):
    var = layers.data("x", shape)
    assert var.shape == expected
    assert var.is_data
    assert var.stop_gradient


def test_data(programs):
    full = layers.data("a", [2], append_batch_size=False, dtype="int64", lod_level=1, stop_gradient=False)
    assert (full.shape, full.lod_level, full.stop_gradient) == ((2,), 1, False)
    new = data("b", [None, 3, -1], "int64", lod_level=2)
    assert (new.shape, new.dtype, new.lod_level) == ((-1, 3, -1), VarType.INT64, 2)
    assert new.need_check_feed
    assert isinstance(new, Variable)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: layers.zeros(3, "float32"), TypeError,
         "'shape' in zeros must be a list or tuple, but received 3"),
        (lambda: layers.fill_constant([1], "int8", 1), TypeError,
         "'dtype' in fill_constant must be one of bool"),
        (lambda: layers.fill_constant([-1, 2], "float32", 1.0), ValueError, r"0 or more, got \[-1, 2\]"),
        (lambda: layers.fill_constant(3, "float32", 1.0), TypeError,
         "'shape' in fill_constant must be a list"),
        (lambda: layers.create_global_var([0.5], 1.0, "float32"), TypeError,
         "must be integers, but received 0.5"),
        (lambda: layers.assign([1, 2]), TypeError,
         "must be a Variable or numpy.ndarray, but received list"),
        (lambda: layers.assign(np.zeros(2)), TypeError,
         "bool, float32, int32 or int64, but received float64"),
        (lambda: layers.cast(3, "int32"), TypeError, "'x' in cast must be a Variable"),
        (lambda: layers.cast(layers.eye(2), "foo"), TypeError, "unknown data type 'foo'"),
        (lambda: layers.linspace(0, 1, 2, "int32"), TypeError,
         "must be float32 or float64, but received int32"),
        (lambda: layers.uniform_random([1], "int32"), TypeError,
         "'dtype' in uniform_random must be float32"),
        (lambda: layers.randint(3, 3), ValueError, "received low = 3, high = 3"),
        (lambda: layers.eye(0), TypeError, "sizes of eye must be positive integers, got 0"),
        (lambda: layers.clip(layers.eye(2), 2.0, 1.0), ValueError, "min must not be above max"),
        (lambda: layers.data("x", 3), TypeError, "'shape' in data must be a list or tuple"),
        (lambda: data(3, [1]), TypeError, "'name' in data must be a string, but received 3"),
    ],
)  # fmt: skip
def test_bad_arguments(programs, make, error, message):
    with pytest.raises(error, match=message):
        make()
