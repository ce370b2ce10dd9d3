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
