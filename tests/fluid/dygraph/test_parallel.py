"""`DataParallel` and its helpers, for one process."""

import sys

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph
from fluidlite.base.errors import NotSupportedError
from fluidlite.dygraph import DataParallel, Linear, ParallelEnv, prepare_context, to_variable

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in (
        "PADDLE_TRAINERS_NUM",
        "PADDLE_TRAINER_ID",
        "PADDLE_TRAINER_ENDPOINTS",
        "FLAGS_selected_gpus",
    ):
        monkeypatch.delenv(name, raising=False)


def test_trains_as_without():
    layer = Linear(2, 2)
    net = DataParallel(layer, prepare_context())
    loss = fluid.layers.mean(net(to_variable(np.ones((1, 2), "float32"))))
    assert net.scale_loss(loss) is loss
    with net.no_sync():
        loss.backward()
    net.apply_collective_grads()
    assert layer.weight.gradient().tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_names():
    net = DataParallel(Linear(2, 2))
    assert net.full_name() == "linear_0_data_parallel_0"
    assert list(net.state_dict()) == ["weight", "bias"]
    assert [name for name, _ in net.named_parameters()] == ["_layers.weight", "_layers.bias"]
    net.set_dict({"weight": np.zeros((2, 2), "float32"), "bias": np.ones(2, "float32")})
    assert net.set_state_dict(net.state_dict()) == ([], [])
    assert not net.parameters()[0].numpy().any()


def test_environment(monkeypatch):
    env = ParallelEnv()
    assert (env.nranks, env.local_rank, env.dev_id, env.world_size, env.rank) == (1, 0, 0, 1, 0)
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:2")
    monkeypatch.setenv("FLAGS_selected_gpus", "3")
    env = dygraph.parallel.Env()
    assert (env.nranks, env.local_rank, env.dev_id, env.trainer_endpoints) == (2, 1, 3, ["a:1", "b:2"])
    with monkeypatch.context() as without, pytest.raises(NotSupportedError, match="needs MPI"):
        without.setitem(sys.modules, "mpi4py", None)
        prepare_context()


def test_backward_strategy():
    strategy = dygraph.BackwardStrategy()
    assert strategy.sort_sum_gradient is False
    strategy.sort_sum_gradient = True
    layer = Linear(2, 1)
    fluid.layers.mean(layer(to_variable(np.ones((1, 2), "float32")))).backward(strategy)
    assert layer.weight.gradient().tolist() == [[1], [1]]
