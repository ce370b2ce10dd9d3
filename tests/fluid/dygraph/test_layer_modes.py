"""Where the parameters of layers belong: see also the recorded cases `d_layers_in_programs` and `d_layers_by_mode`."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph
from fluidlite.base.errors import StaticModeError
from fluidlite.framework import mode

SCRIPT = """
import fluidlite.as_paddle
import paddle, paddle.fluid as fluid
kinds = [type(fluid.dygraph.Linear(1, 1).weight).__name__]
{choice}
kinds.append(type(fluid.dygraph.Linear(1, 1).weight).__name__)
with fluid.program_guard(fluid.Program(), fluid.Program()):
    kinds.append(type(fluid.dygraph.Linear(1, 1).weight).__name__)
    with fluid.dygraph.guard():
        kinds.append(type(fluid.dygraph.Linear(1, 1).weight).__name__)
print(*kinds)
"""


@pytest.mark.parametrize(
    ("choice", "kinds"),
    [
        ("import paddle.optimizer", "Parameter Parameter Parameter ParamBase"),
        ("import paddle.nn", "Parameter ParamBase Parameter ParamBase"),
        ("paddle.disable_static()", "Parameter ParamBase Parameter ParamBase"),
        ("import paddle.nn; paddle.enable_static()", "Parameter Parameter Parameter ParamBase"),
        ("fluid.enable_dygraph()", "Parameter ParamBase ParamBase ParamBase"),
    ],
)
def test_default_of_a_script_follows_the_names_it_uses(python, choice, kinds):
    done = python("-c", SCRIPT.format(choice=choice))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == kinds.split()


def test_layers_of_paddle_nn_belong_to_the_program_of_a_guard(programs):
    from fluidlite.paddle import nn

    x = fluid.data("x", [None, 3])
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    out = net(x)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    (got,) = exe.run(feed={"x": np.ones((2, 3), np.float32)}, fetch_list=[out])
    assert got.shape == (2, 1) and [p.name for p in net.parameters()][0] == "linear_0.w_0"


def test_evaluation_mode_reaches_the_operators_of_a_program(programs):
    x = fluid.data("x", [None, 2, 4, 4])
    norm = dygraph.BatchNorm(2)
    norm(x)
    norm.eval()
    norm(x)
    operators = fluid.default_main_program().global_block().ops
    assert [op.attr("is_test") for op in operators] == [False, True]


def test_programs_and_eager_tensors_do_not_mix(programs):
    layer = dygraph.Linear(2, 2)
    with dygraph.guard():
        tensor = dygraph.to_variable(np.ones((1, 2), np.float32))
        with pytest.raises(TypeError, match=r"'linear_0.w_0' of a static program.*dygraph.guard"):
            layer(tensor)


def test_values_of_a_layer_in_a_program_are_refused_at_the_first(programs):
    layer = dygraph.Linear(2, 2)
    state = {name: np.zeros(p.shape, np.float32) for name, p in layer.state_dict().items()}
    with pytest.raises(StaticModeError, match=r"set_value\(\).*linear_0.w_0"):
        layer.set_dict(state)
    with pytest.raises(StaticModeError, match=r"clear_gradient\(\)"):
        layer.clear_gradients()


def test_a_guard_ends_with_its_block():
    before = mode.layers_compute()
    with pytest.raises(ZeroDivisionError), fluid.program_guard(fluid.Program()):
        assert not mode.layers_compute()
        raise ZeroDivisionError
    assert mode.layers_compute() is before


@pytest.mark.parametrize(
    ("make", "statistics"),
    [
        (lambda: dygraph.LayerNorm([3, 3]), ("Mean", "Variance")),
        (lambda: dygraph.GroupNorm(4, 2), ("Mean", "Variance")),
        (lambda: dygraph.InstanceNorm(4), ("SavedMean", "SavedVariance")),
        (lambda: dygraph.BatchNorm(4), ("SavedMean", "SavedVariance")),
    ],
)
def test_normalisations_name_their_statistics_before_their_results(programs, make, statistics):
    """As in Fluid, whose programs call the result `layer_norm_0.tmp_2`."""
    with fluid.unique_name.guard():
        make()(fluid.data("x", [2, 4, 3, 3]))
    op = fluid.default_main_program().global_block().ops[-1]
    names = [op.output(slot)[0] for slot in (*statistics, "Y")]
    assert names == [f"{op.type}_0.tmp_{place}" for place in range(3)]
