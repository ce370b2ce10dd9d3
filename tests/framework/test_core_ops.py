"""fluid.core.ops: operators as functions of eager tensors."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import core
from fluidlite.core import ops
from fluidlite.ops.registry import find

X = np.array([[-1.0, 2.0, 3.0], [4.0, -5.0, 6.0]], "float32")


@pytest.fixture(autouse=True)
def dygraph():
    with fluid.dygraph.guard():
        yield


def tensor(array, leaf=True):
    made = fluid.dygraph.to_variable(np.array(array))
    made.stop_gradient = not leaf
    return made


def test_inputs_and_attributes():
    x, y = tensor(X), tensor(X[:, :1], leaf=False)
    np.testing.assert_array_equal(ops.relu(x).numpy(), np.maximum(X, 0))
    np.testing.assert_array_equal(core.ops.elementwise_add(x, y, "axis", 0).numpy(), X + X[:, :1])
    np.testing.assert_array_equal(
        ops.concat([x, y], "axis", 1).numpy(), np.concatenate([X, X[:, :1]], axis=1)
    )
    np.testing.assert_array_equal(
        ops.relu(x, "use_mkldnn", False, "no_such", 3).numpy(), np.maximum(X, 0)
    )  # as in Fluid


def test_gradients_go_through():
    x = tensor(X)
    ops.mean(ops.square(x)).backward()
    np.testing.assert_allclose(x.gradient(), X / 3, rtol=1e-6)


def test_several_results():
    x = tensor(X)
    values, places = ops.top_k(x, "k", 2)
    np.testing.assert_array_equal(values.numpy(), [[3, 2], [6, 4]])
    np.testing.assert_array_equal(places.numpy(), [[2, 1], [2, 0]])
    parts = ops.split(x, 3, "axis", 1, "num", 3)
    assert isinstance(parts, list) and [part.shape for part in parts] == [[2, 1]] * 3
    out, shape = ops.reshape2(x, "shape", [3, 2])
    assert out.shape == [3, 2] and shape.shape == [0, 2, 3]


def test_inputs_that_may_be_none():
    y, mean, variance = ops.layer_norm(tensor(X), None, None, "begin_norm_axis", 1)
    np.testing.assert_allclose(mean.numpy(), X.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(variance.numpy(), X.var(axis=1), rtol=1e-5)
    np.testing.assert_allclose(y.numpy().std(axis=1), [1, 1], rtol=1e-4)
    np.testing.assert_allclose(ops.matmul(tensor(X), tensor(X), None, "transpose_Y", True).numpy(), X @ X.T)


def test_results_into_tensors():
    out = tensor(np.zeros(1, "float32"), leaf=False)
    assert ops.fill_constant(out, "shape", [2], "dtype", 5, "value", 3.0) is out
    np.testing.assert_array_equal(out.numpy(), [3, 3])
    param, rate, grad = tensor(X), tensor(np.array([0.5], "float32")), tensor(X, leaf=False)
    param.persistable = True
    assert ops.sgd(param, rate, grad, param) is param
    np.testing.assert_allclose(param.numpy(), X / 2)
    image, ones = tensor(np.arange(8, dtype="float32").reshape(2, 1, 2, 2)), tensor(np.ones(1, "float32"))
    mean, variance = tensor(np.zeros(1, "float32"), leaf=False), tensor(np.ones(1, "float32"), leaf=False)
    made = ops.batch_norm(image, ones, ones, mean, variance, mean, variance, "momentum", 0.5)
    assert len(made) == 5 and made[1] is mean
    np.testing.assert_allclose(mean.numpy(), [1.75])


def test_the_order_is_that_of_fluid():
    """Where the declaration lists inputs in another order."""
    param, moment, rate = tensor(X), tensor(np.zeros_like(X)), tensor(np.array([1.0], "float32"))
    new, squares = ops.adagrad(param, tensor(X), moment, rate, "epsilon", 0.0)
    np.testing.assert_allclose(squares.numpy(), X * X)
    np.testing.assert_allclose(new.numpy(), X - np.sign(X), atol=1e-6)


def test_every_listed_slot_is_declared():
    for table in (ops._TAKES, ops._GIVES, ops._INTO):
        for name, slots in table.items():
            definition = find(name)
            assert set(slots) <= {*definition.inputs_by_name, *definition.outputs_by_name}, name
    functions = [getattr(ops, name) for name in dir(ops)]
    assert len(functions) > 300 and all(one.__doc__.startswith(one.type + "(") for one in functions)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: ops.relu(), TypeError, r"it is relu\(X, name, value, ...\), called with \(\)"),
        (lambda x: ops.relu(X), TypeError, r"called with \(ndarray\)"),
        (lambda x: ops.relu(x, "axis"), core.EnforceNotMet, "should be even, names and values"),
        (lambda x: ops.split(x, "num", 3), TypeError, r"split\(X, the number of Out, name, value"),
        (lambda x: ops.concat(x, "axis", 0), TypeError, r"concat\(\[X, ...\], name"),
    ],
)
def test_calls_that_do_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call(tensor(X))


def test_in_traced_functions():
    @fluid.dygraph.declarative
    def double(x):
        return ops.scale(ops.concat([x, x], "axis", 0), "scale", 2.0)

    np.testing.assert_array_equal(double(tensor(X)).numpy(), np.concatenate([X, X]) * 2)
