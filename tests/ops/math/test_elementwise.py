"""elementwise_*: broadcasting by axis, gradients, integers."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet
from fluidlite.ops import registry
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel
from ..in_program import OneOperator

RNG = np.random.default_rng(4)


def _uniform(*shape):
    return RNG.uniform(0.5, 1.5, shape).astype("float32")


X = _uniform(2, 3, 4, 5)
LAYOUTS = {
    "same": ((2, 3, 4, 5), -1, (2, 3, 4, 5)),
    "tail": ((4, 5), -1, (1, 1, 4, 5)),
    "middle": ((3, 4), 1, (1, 3, 4, 1)),
    "channel": ((3,), 1, (1, 3, 1, 1)),
    "trailing_ones": ((2, 3, 1, 1), 0, (2, 3, 1, 1)),
    "dropped_ones": ((3, 1, 1), 1, (1, 3, 1, 1)),
    "one": ((1,), -1, (1, 1, 1, 1)),
    "inner_one": ((2, 1, 4, 5), -1, (2, 1, 4, 5)),
    "two_ones": ((2, 1, 4, 1), -1, (2, 1, 4, 1)),
    "ones_around": ((3, 1, 5), 1, (1, 3, 1, 5)),
}
FUNCTIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum,
    "min": np.minimum, "pow": np.power,
}  # fmt: skip


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_value_and_gradients(name, layout):
    shape, axis, aligned = LAYOUTS[layout]
    x = X[:, :, :2, :2] if layout == "same" else X
    y = _uniform(*shape)[..., :2, :2] if layout == "same" else _uniform(*shape)
    aligned = y.shape if layout == "same" else aligned
    expected = FUNCTIONS[name](x, y.reshape(aligned))
    check(f"elementwise_{name}", {"X": x, "Y": y}, {"axis": axis}, {"Out": expected}, grads=["X", "Y"])


@pytest.mark.parametrize("y", [(2, 1, 4), (3, 1, 2, 4), (2, 3, 1, 1, 5, 1)])
def test_dimensions_that_y_lacks_are_a_kernels_work(y):
    x = tuple(6 if n == 1 else n for n in y)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        one = fluid.data("one", [None, *x[1:]])
        one.stop_gradient = False
        other = fluid.layers.create_parameter(y, "float32")
        gradients = fluid.gradients(fluid.layers.reduce_sum(one * other), [one, other])
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        feed = {"one": _uniform(*x)}
        dx, dy = exe.run(feed=feed, fetch_list=gradients)
        assert "reference" not in exe.describe()
    assert dy.shape == y
    axes = tuple(k for k, n in enumerate(y) if n == 1)
    np.testing.assert_allclose(dy, feed["one"].sum(axes, keepdims=True), rtol=1e-5)
    assert dx.shape == x


def test_x_may_be_the_smaller():
    x, y = _uniform(4), _uniform(2, 3, 4)
    check("elementwise_mul", {"X": x, "Y": y}, {}, {"Out": x * y}, grads=["X", "Y"])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_second_derivatives(name):
    inputs = {"X": _uniform(2, 3, 2), "Y": _uniform(3), "Out@GRAD": _uniform(2, 3, 2)}
    if name == "div":
        inputs["Out"] = inputs["X"] / inputs["Y"].reshape(1, 3, 1)
    op_type = f"elementwise_{name}_grad"
    check(op_type, inputs, {"axis": 1}, grads=["X", "Y", "Out@GRAD"], programs=False)


# Recorded from Paddle 1.8.5.
LEFT, RIGHT = [-7, -6, 7, 6, 5], [3, 3, -3, -3, 5]
INTEGERS = {
    "add": [-4, -3, 4, 3, 10], "div": [-2, -2, -2, -2, 1], "floordiv": [-2, -2, -2, -2, 1],
    "mod": [-1, 0, 1, 0, 0], "max": [3, 3, 7, 6, 5], "pow": [-343, -216, 0, 0, 3125],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", sorted(INTEGERS))
def test_integers(name, dtype):
    x, y = np.array(LEFT, dtype), np.array(RIGHT, dtype)
    check(f"elementwise_{name}", {"X": x, "Y": y}, {}, {"Out": np.array(INTEGERS[name], dtype)})


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_lowest_integer_over_minus_one(dtype):
    """Its quotient has no place among the integers; as everywhere here, it is taken modulo 2^bits."""
    lowest = np.iinfo(dtype).min
    inputs = {"X": np.array([lowest, 7], dtype), "Y": np.array([-1], dtype)}
    check("elementwise_floordiv", inputs, {}, {"Out": np.array([lowest, -7], dtype)})
    check("elementwise_mod", inputs, {}, {"Out": np.array([0, 0], dtype)})


def test_mod_of_floats_has_the_sign_of_y():
    x, y = np.array(LEFT, "float32"), np.array(RIGHT, "float32")
    check("elementwise_mod", {"X": x, "Y": y}, {}, {"Out": np.array([2, 0, -2, 0, 0], "float32")})


@pytest.mark.parametrize("name", ["div", "mod", "floordiv"])
def test_integer_division_by_zero_is_an_error(name):
    with pytest.raises(ValueError, match="division by zero"):
        run_kernel(f"elementwise_{name}", {"X": np.array([1, 2]), "Y": np.array([1, 0])}, {})


def test_ties_give_y_the_gradient():
    inputs = {"X": np.array([1.0, 2, 2]), "Y": np.array([2.0, 2, 1]), "Out@GRAD": np.ones(3)}
    for name, dx in (("max", [0, 0, 1]), ("min", [1, 0, 0])):
        found = run_kernel(f"elementwise_{name}_grad", inputs, {})
        np.testing.assert_array_equal(found["X@GRAD"][0], dx)
        np.testing.assert_array_equal(found["Y@GRAD"][0], 1 - np.array(dx))


def test_unknown_sizes():
    found = infer("elementwise_add", {"X": np.zeros((2, 3, 4)), "Y": np.zeros((3,))}, {"axis": 1})
    assert found["Out"][0][0] == (2, 3, 4)


@pytest.mark.parametrize(
    ("x", "y", "axis", "words"),
    [
        ((2, 3), (4,), -1, "3 is not 4"),
        ((2, 3), (3,), 3, "axis must be in"),
        ((2, 3), (3, 2), -1, "cannot broadcast"),
    ],
)
def test_shapes_that_do_not_fit(x, y, axis, words):
    with pytest.raises(OperatorError, match=words):
        infer("elementwise_add", {"X": np.zeros(x), "Y": np.zeros(y)}, {"axis": axis})


@pytest.mark.parametrize("engine", ["interpret", "plan"])
def test_types_must_agree_when_the_operator_runs(engine):
    """Fluid appends the operator whatever is declared, so that a program can be built and pruned."""
    inputs = {"X": [np.zeros(2, "float32")], "Y": [np.zeros(2, "int64")]}
    case = OneOperator(registry.find("elementwise_add"), inputs, {}, {"Out": [None]}, None)
    with pytest.raises(OperatorError, match="elementwise_add.*Y must have the dtype of X"):
        case.run(engine, ["Out_out_0"])


@pytest.mark.parametrize("engine", ["interpret", "plan"])
@pytest.mark.parametrize("y", [np.array([1, 0]), np.array([0])], ids=str)
@pytest.mark.parametrize("name", ["div", "mod", "floordiv"])
def test_integer_division_by_zero_in_a_program(name, y, engine):
    definition = registry.find(f"elementwise_{name}")
    inputs = {"X": [np.array([1, 2])], "Y": [y]}
    case = OneOperator(definition, inputs, {}, {"Out": [None]}, None)
    with pytest.raises(
        EnforceNotMet, match=f"elementwise_{name}.*integer division by zero: Y must not hold 0"
    ):
        case.run(engine, ["Out_out_0"])
