"""center_loss, add_position_encoding and similarity_focus as layers."""

import numpy as np
import pytest

import fluidlite as fluid

layers = fluid.layers


pytestmark = pytest.mark.usefixtures("alone")


@pytest.mark.parametrize("moves", [True, False])
def test_centres_move_with_each_run(moves):
    x, label = fluid.data("x", [None, 3], "float32"), fluid.data("label", [None, 1], "int64")
    start = fluid.ParamAttr("centres", fluid.initializer.Constant(0.5))
    loss = layers.center_loss(x, label, 4, 0.2, start, update_center=moves)
    ops = fluid.default_main_program().global_block().ops
    assert [op.type for op in ops] == ["fill_constant", "center_loss"]
    assert ops[1].output("CentersOut") == ["centres"] and ops[1].input("CenterUpdateRate") == [
        "centerloss_alpha"
    ]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 3), "float32"), "label": np.array([[1], [2]])}
    costs = [exe.run(feed=feed, fetch_list=[loss])[0][0, 0] for _ in range(3)]
    shares = [0.9**k if moves else 1 for k in range(3)]
    np.testing.assert_allclose(costs, [3 * (0.5 * share) ** 2 / 2 for share in shares], rtol=1e-5)


def test_the_first_of_several_says_how_fast_centres_move():
    """All of a block have their rate in one variable, which is set by the last layer first, as in Fluid."""
    x, label = fluid.data("x", [None, 3], "float32"), fluid.data("label", [None, 1], "int64")
    for name, alpha in (("slow", 0.1), ("fast", 0.5)):
        layers.center_loss(x, label, 4, alpha, fluid.ParamAttr(name, fluid.initializer.Constant(0.0)))
    ops = fluid.default_main_program().global_block().ops
    assert [op.type for op in ops] == ["fill_constant"] * 2 + ["center_loss"] * 2
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones((1, 3), "float32"), "label": np.array([[1]])})
    slow, fast = (np.array(fluid.global_scope().find_var(name).get_tensor()) for name in ("slow", "fast"))
    np.testing.assert_allclose(
        slow[1], 0.05, rtol=1e-6
    )  # one row and the 1 that counts are added to: 0.1 / 2
    np.testing.assert_array_equal(fast, slow)


def test_declared_shapes_and_types_are_those_of_fluid():
    """An open size times n is -n there, and what operators leave for their gradients has its own shape and type."""
    x = fluid.data("x", [None, 3, 4], "float32")
    assert layers.flatten(x, 2).shape == (-3, 4)
    assert layers.fc(layers.flatten(x, 2), 5, bias_attr=False).shape == (-3, 5)
    assert layers.fc(layers.flatten(x, 2), 5).shape == (-1, 5)
    layers.layer_norm(x, begin_norm_axis=2)
    rows = fluid.data("rows", [None, 4], "float32", lod_level=1)
    layers.sequence_pool(rows, "max")
    found, _ = layers.topk(rows, fluid.data("k", [1], "int32"))
    assert found.shape == (-1, 1)
    variables = fluid.default_main_program().global_block().vars
    assert variables["layer_norm_0.tmp_0"].shape == (-3,)
    assert variables["sequence_pool_0.tmp_1"].dtype == fluid.core.VarDesc.VarType.FP32


def test_wrong_arguments():
    x = fluid.data("x", [None, 2, 3, 3], "float32")
    with pytest.raises(ValueError, match="axis must be 1, 2 or 3"):
        layers.similarity_focus(x, 0, [0])
    with pytest.raises(ValueError, match="indexes can not be empty"):
        layers.similarity_focus(x, 1, [])
    with pytest.raises(TypeError, match="indexes must be list type"):
        layers.similarity_focus(x, 1, 0)
    assert (
        layers.add_position_encoding(fluid.data("s", [None, 4], "float32", lod_level=1), 1.0, 1.0).lod_level
        == 1
    )


def test_gradient_of_position_encoding_that_is_the_same_in_each_run():
    x = fluid.data("x", [2, 4, 6], "float32")
    x.stop_gradient = False
    gradient = fluid.gradients(layers.add_position_encoding(x, 0.5, 1.0), x)
    (made,) = fluid.Executor().run(feed={"x": np.ones((2, 4, 6), "float32")}, fetch_list=gradient)
    np.testing.assert_array_equal(made, np.full((2, 4, 6), 0.5, "float32"))
