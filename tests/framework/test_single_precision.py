"""Floats in attributes are of single precision, as in Fluid: programs of float64 compute with the rounded numbers."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers as L
from fluidlite.base.dtypes import attribute

X = np.array([[0.3, -0.7], [1.1, 2.3]])


def single(value):
    return float(np.float32(value))


CASES = {
    "scale": (lambda x: L.scale(x, 0.1, 0.3), X * single(0.1) + single(0.3)),
    "operator": (lambda x: x * 0.1, X * single(0.1)),
    "leaky_relu": (lambda x: L.leaky_relu(x, 0.1), np.where(X > 0, X, X * single(0.1))),
    "clip": (lambda x: L.clip(x, -0.1, 0.7), X.clip(single(-0.1), single(0.7))),
    "label_smooth": (lambda x: L.label_smooth(x, epsilon=0.1), X * single(0.9) + single(0.1) / 2),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_of_float64(name, programs):
    layer, expected = CASES[name]
    x = fluid.data("x", [2, 2], "float64")
    out = layer(x)
    exe = fluid.Executor(fluid.CPUPlace())
    loaded = fluid.Program.parse_from_string(programs[0].desc.serialize_to_string())
    for program in (programs[0], loaded):
        found = exe.run(program, feed={"x": X}, fetch_list=[out.name])[0]
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-16)
    with fluid.dygraph.guard():
        found = layer(fluid.dygraph.to_variable(X)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-16)


def test_rates_of_float64(programs):
    with fluid.program_guard(*programs):
        w = L.create_parameter([2], "float64", default_initializer=fluid.initializer.Constant(0.3))
        fluid.optimizer.SGD(0.1).minimize(L.reduce_sum(L.square(w)))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(programs[1])
    exe.run(programs[0])
    expected = single(0.3) - single(0.1) * 2 * single(0.3)
    assert np.array(fluid.global_scope().find_var(w.name).get_tensor()) == pytest.approx(expected, rel=1e-15)
    with fluid.dygraph.guard():
        w = fluid.dygraph.Layer().create_parameter(
            [2], dtype="float64", default_initializer=fluid.initializer.Constant(0.3)
        )
        L.reduce_sum(L.square(w)).backward()
        made = fluid.optimizer.SGD(0.1, parameter_list=[w])
        made.minimize(L.reduce_sum(w))
        assert w.numpy() == pytest.approx(expected, rel=1e-15)
        assert made._global_learning_rate().numpy() == single(0.1)


def test_what_attributes_hold(programs):
    op = L.scale(fluid.data("x", [2]), 0.1).op
    assert op.attr("scale") == op.all_attrs()["scale"] == single(0.1)
    op._set_attr("scale", 0.7)
    assert op.attr("scale") == single(0.7)
    assert L.adaptive_pool2d(fluid.data("y", [1, 1, 4, 4]), 2).op.attr("ksize") == [2, 2]
    assert attribute([1, 0.1]) == [1, single(0.1)] and attribute((0.1,)) == (single(0.1),)
    assert attribute(1e300) == np.inf and attribute(np.float64(0.1)) == single(0.1)
    assert attribute([2**40]) == [2**40] and attribute("0.1") == "0.1" and attribute(True) is True
