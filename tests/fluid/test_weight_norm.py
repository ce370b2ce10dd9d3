"""Weight normalisation: parameters, operators, and training against Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid

L = fluid.layers
X = np.random.RandomState(0).rand(118)[100:].reshape(3, 6).astype("float32")


pytestmark = pytest.mark.usefixtures("alone")


def value(name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


# The length and the first weights of the direction after three steps on Paddle 1.8.5, and the last loss.
RECORDED = {
    None: ([0.81698745], [0.46906474, 0.61280584], 0.00755544),
    0: ([0.27736795, 0.579502, 0.35074046, 0.16543527, 0.4051936, 0.26314017], [0.5, 0.5], 0.00621908),
    1: ([0.40849382] * 4, [0.46906462, 0.6128058], 0.00755546),
}


@pytest.mark.parametrize("dim", RECORDED)
def test_training_is_that_of_paddle(dim):
    x = fluid.data("x", [None, 6])
    attr = fluid.WeightNormParamAttr(dim=dim, initializer=fluid.initializer.Constant(0.5))
    loss = L.mean(L.square(L.fc(x, 4, param_attr=attr)))
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    losses = [exe.run(feed={"x": X}, fetch_list=[loss])[0][0] for _ in range(3)]
    length, direction, last = RECORDED[dim]
    np.testing.assert_allclose(value("fc_0.w_0_g").ravel(), length, rtol=1e-4)
    np.testing.assert_allclose(value("fc_0.w_0_v")[:2, 0], direction, rtol=1e-4)
    np.testing.assert_allclose(losses[-1], last, rtol=1e-4)


@pytest.mark.parametrize("dim", [0, 1, 2, 3, -1])
def test_lengths_begin_as_the_norms_of_the_directions(dim):
    image = fluid.data("image", [None, 2, 5, 5])
    L.conv2d(image, 3, 3, param_attr=fluid.WeightNormParamAttr(dim=dim, name="filters"))
    weight = next(
        op.input("Filter")[0] for op in fluid.default_main_program().global_block().ops if op.type == "conv2d"
    )
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    v, g = value("filters_v"), value("filters_g")
    others = tuple(axis for axis in range(4) if axis != dim % 4)
    assert g.shape == tuple(n if axis == dim % 4 else 1 for axis, n in enumerate(v.shape))
    np.testing.assert_allclose(g, np.sqrt((v * v).sum(others, keepdims=True)), rtol=1e-5)
    (made,) = exe.run(feed={"image": np.zeros((1, 2, 5, 5), "float32")}, fetch_list=[weight])
    np.testing.assert_allclose(made, v, rtol=1e-5)


def test_parameters_are_trained_and_named():
    L.fc(
        fluid.data("x", [None, 6]),
        4,
        param_attr=fluid.WeightNormParamAttr(dim=1, name="w", learning_rate=0.5),
    )
    params = {p.name: p for p in fluid.default_main_program().all_parameters()}
    assert list(params) == ["w_g", "w_v", "fc_0.b_0"]
    for name in ("w_g", "w_v"):
        assert params[name].trainable and params[name].optimize_attr == {"learning_rate": 0.5}
        assert params[name].do_model_average is False


def test_a_dimension_that_is_not_there():
    with pytest.raises(ValueError, match=r"dim of WeightNormParamAttr must be in \[-2, 2\), got 2"):
        L.fc(fluid.data("x", [None, 6]), 4, param_attr=fluid.WeightNormParamAttr(dim=2))
