"""`fluid.dygraph.dygraph_to_static.partial_program`."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.dygraph import to_variable
from fluidlite.dygraph.dygraph_to_static.partial_program import (
    PartialProgramLayer,
    partial_program_from,
    valid_vars,
)

GIVEN = np.array([[1, -2], [3, 4]], "float32")


class Net(fluid.dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.hidden, self.norm = fluid.dygraph.Linear(2, 3), fluid.dygraph.BatchNorm(3)
        self.shift = to_variable(np.ones(3, "float32"))

    @fluid.dygraph.declarative
    def forward(self, x):
        hidden = self.norm(self.hidden(x) + self.shift)
        if fluid.layers.mean(hidden) > 100:
            hidden = hidden * 2
        return hidden


@pytest.fixture
def net():
    with fluid.dygraph.guard():
        yield Net()


def test_the_program_that_ran_last(net):
    x = to_variable(GIVEN)
    x.stop_gradient = False
    expected = net(x)
    expected.backward()
    wanted = [value.gradient() for value in (x, net.hidden.weight)]
    _, (concrete, _) = fluid.dygraph.ProgramTranslator().get_program_cache().last()
    layer = partial_program_from(concrete)
    net.clear_gradients()
    twin = to_variable(GIVEN)
    twin.stop_gradient = False
    found = layer([twin])
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    found.backward()
    for value, gradient in zip((twin, net.hidden.weight), wanted, strict=True):
        np.testing.assert_array_equal(value.gradient(), gradient)
    mean = net.norm._mean.numpy().copy()
    layer.eval()
    tested = layer([GIVEN])
    np.testing.assert_array_equal(net.norm._mean.numpy(), mean)
    net.eval()
    np.testing.assert_allclose(tested.numpy(), net(to_variable(GIVEN)).numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="takes 1 tensors, got 2"):
        layer([twin, twin])


def test_a_program_of_ones_own():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [-1, 2])
        w = fluid.layers.create_parameter([2, 3], "float32", name="w")
        outs = [fluid.layers.mul(x, w), fluid.layers.relu(x)]
    with fluid.dygraph.guard():
        weights = fluid.dygraph.Linear(2, 3, param_attr=fluid.ParamAttr("w")).weight
        first, second = PartialProgramLayer(main, [x], outs, [weights])([to_variable(GIVEN)])
        np.testing.assert_allclose(first.numpy(), GIVEN @ weights.numpy(), rtol=1e-6)
        np.testing.assert_array_equal(second.numpy(), np.maximum(GIVEN, 0))
        with pytest.raises(ValueError, match="the parameters w, which are not among"):
            PartialProgramLayer(main, [x], outs, [])


def test_no_variables_give_a_placeholder(net):
    (made,) = valid_vars([])
    assert (made.name, made.shape) == ("Fake_var", [1])
    assert valid_vars([net.shift]) == [net.shift] and valid_vars(None)[0].name == "Fake_var"


def test_parameters_that_are_none(net):
    net(to_variable(GIVEN))
    _, (concrete, _) = fluid.dygraph.ProgramTranslator().get_program_cache().last()
    parameters = concrete.parameters
    concrete.parameters = parameters[0]
    with pytest.raises(TypeError, match="should be list or tuple"):
        partial_program_from(concrete)
    concrete.parameters = ["linear.w.0", *parameters[1:]]
    with pytest.raises(TypeError, match=r"\[0\] should be framework.ParamBase"):
        partial_program_from(concrete)
