"""Initializers: the operators they make and the numbers those draw, against recordings of Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import initializer as init
from fluidlite.executor.interpreter.interpreter import Interpreter
from fluidlite.executor.scope import Scope
from fluidlite.framework import Program


def _build(initializer, shape, dtype="float32", seed=90):
    program = Program()
    program.random_seed = seed
    block = program.global_block()
    var = block.create_var(name="v", shape=shape, dtype=dtype, persistable=True)
    initializer(var, block)
    return program


def _fill(initializer, shape, dtype="float32", seed=90):
    scope = Scope()
    Interpreter(_build(initializer, shape, dtype, seed), scope, {}).run()
    return scope.find_var("v").get_tensor().array


# The first numbers that Paddle 1.8.5 drew, the program's seed being 90.
@pytest.mark.parametrize(
    ("initializer", "shape", "expected"),
    [
        (init.Uniform(-0.5, 0.5), (5, 7), [-0.497976989, 0.152920425, -0.378265530]),
        (init.Uniform(seed=11), (5, 7), [-0.999505460, 0.870713830, 0.229757309]),
        (init.Normal(1.0, 2.0), (5, 7), [0.322891116, -0.004478216, 3.114756823]),
        (init.Normal(seed=11), (5, 7), [1.214535832, 0.453406990, -0.679799616]),
        (init.TruncatedNormal(1.0, 2.0), (9, 7), [-2.930898428, 1.748885274, -1.170137167]),
        (init.TruncatedNormal(seed=11), (9, 7), [-1.995647073, 1.375734091, 0.278411150]),
        (init.Xavier(), (5, 7), [-0.704245806, 0.216262162, -0.534948230]),
        (init.Xavier(uniform=False), (5, 7), [-0.138214275, -0.205038264, 0.431672931]),
        (init.Xavier(fan_in=10, fan_out=20, seed=5), (5, 7), [-0.447113067, -0.066936910, -0.441164553]),
        (init.Xavier(), (4, 3, 2, 2), [-0.461037099, 0.141576827, -0.350205839]),
        (init.MSRA(), (5, 7), [-1.091012955, 0.335031867, -0.828738272]),
        (init.MSRA(uniform=False), (4, 3, 2, 2), [-0.138214275, -0.205038264, 0.431672931]),
        (init.MSRA(fan_in=10, seed=5), (5, 7), [-0.774422586, -0.115938127, -0.764119446]),
        (init.Bilinear(), (2, 2, 4, 4), [0.0625, 0.28125, 0.375]),
    ],
)
def test_values_are_those_of_paddle(initializer, shape, expected):
    made = _fill(initializer, shape)
    assert made.shape == shape
    assert made.dtype == np.float32
    np.testing.assert_allclose(made.ravel()[:3], expected, rtol=1e-6, atol=1e-7)


def test_one_initializer_serves_programs_with_different_seeds():
    shared = init.Uniform()
    first, second = (_fill(shared, (4,), seed=seed) for seed in (90, 91))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(_fill(shared, (4,), seed=90), first)


@pytest.mark.parametrize(
    ("shape", "fans"), [((), (1, 1)), ((4,), (4, 4)), ((3, 5), (3, 5)), ((4, 2, 3, 3), (18, 36))]
)
def test_fans(shape, fans):
    var = Program().global_block().create_var(shape=shape, dtype="float32")
    assert init.Initializer._compute_fans(var) == fans


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool", "float16"])
def test_constant(dtype):
    np.testing.assert_array_equal(_fill(init.Constant(1.0), (2, 3), dtype), np.ones((2, 3), dtype))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool", "float16"])
def test_numpy_array(dtype):
    value = np.array([[0, 1, 2], [3, 0, 5]])
    made = _fill(init.NumpyArrayInitializer(value.astype("float64")), (2, 3), dtype)
    assert made.dtype == dtype
    np.testing.assert_array_equal(made, value.astype(dtype))


def test_operators_are_put_first_and_say_what_fluid_says():
    program = _build(init.Uniform(-2.0, 3.0, seed=4, diag_num=2, diag_step=3, diag_val=7.0), (3, 3))
    block = program.global_block()
    init.Constant(0.5, force_cpu=True)(block.create_var(name="w", shape=[2], dtype="float32"), block)
    constant, uniform = block.ops
    assert (constant.type, uniform.type) == ("fill_constant", "uniform_random")
    assert constant.attr("force_cpu") is True
    named = ("min", "max", "seed", "diag_num", "diag_step", "diag_val", "shape", "dtype")
    assert [uniform.attr(name) for name in named] == [-2.0, 3.0, 4, 2, 3, 7.0, [3, 3], 5]


def test_bilinear_is_put_last():
    program = _build(init.Bilinear(), (1, 1, 2, 2))
    block = program.global_block()
    init.Bilinear()(block.create_var(name="w", shape=[1, 1, 2, 2], dtype="float32"), block)
    assert [op.output("Out") for op in block.ops] == [["v"], ["w"]]


def test_half_precision_is_drawn_in_single_precision_and_cast_at_the_end():
    program = _build(init.Normal(), (2,), "float16")
    block = program.global_block()
    assert [op.type for op in block.ops] == ["gaussian_random", "cast"]
    assert block.ops[1].input("X") == ["gaussian_random.v.tmp_0"]


def test_names_of_fluid():
    for name in ("Constant", "Uniform", "Normal", "TruncatedNormal", "Xavier", "MSRA", "Bilinear"):
        assert getattr(init, name) is getattr(init, name + "Initializer")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: init.Constant(None), TypeError, "the value of Constant must be a number, got None"),
        (lambda: init.Uniform(1.0, -1.0), ValueError, "must not be below its low, got low=1.0, high=-1.0"),
        (lambda: init.Uniform(diag_num=2), ValueError, "must both be positive or 0, got 2 and 0"),
        (lambda: init.Normal(None, 1.0), TypeError, "loc must be a number, got None"),
        (lambda: init.Normal(seed=0.5), TypeError, "seed of NormalInitializer must be an integer, got 0.5"),
        (lambda: init.MSRA(uniform=None), TypeError, "uniform of MSRA must be True or False"),
        (lambda: init.NumpyArrayInitializer([1, 2]), TypeError, "takes a numpy.ndarray, got list"),
        (lambda: _build(init.Bilinear(), [3, 4]), ValueError,
         r"length of shape must be 4, got \[3, 4\] for 'v'"),
        (lambda: _build(init.Bilinear(), [3, 4, 4, 5]), ValueError,
         r"shape\[2\] must be equal to shape\[3\]"),
        (lambda: _build(init.Normal(), [3], "int64"), TypeError,
         "NormalInitializer fills float16, .*'v' is .*INT64"),
        (lambda: _build(init.NumpyArrayInitializer(np.zeros(3)), [3], "float64"), TypeError,
         "'v' is VarType.FP64"),
        (lambda: _build(init.Initializer(), [3]), NotImplementedError, "Initializer does not say how"),
    ],
)  # fmt: skip
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_an_array_of_another_size_fails_when_it_is_filled_in():
    value = np.zeros(3, "float32")
    fluid.layers.create_parameter([3, 4], "float32", default_initializer=init.NumpyArrayInitializer(value))
    with pytest.raises(fluid.core.EnforceNotMet, match="assign_value"):
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
