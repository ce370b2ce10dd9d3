"""Role makers, and fleet in one process."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.incubate.fleet.base import role_maker
from fluidlite.incubate.fleet.collective import Collective, DistributedStrategy, TrainStatus, fleet

from ...refusals import refuses

WORKER, SERVER = role_maker.Role.WORKER, role_maker.Role.SERVER


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    import os

    for name in list(os.environ):
        if name.startswith(("PADDLE_", "OMPI_", "TRAINING_")):
            monkeypatch.delenv(name)


def test_collective_workers_of_the_environment(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:6170,127.0.0.1:6171")
    made = role_maker.PaddleCloudRoleMaker(is_collective=True)
    made.generate_role()
    assert (made.worker_index(), made.worker_num(), made.is_first_worker()) == (1, 2, False)
    assert made.get_trainer_endpoints() == ["127.0.0.1:6170", "127.0.0.1:6171"]
    assert made.to_string().startswith("role: None, current_id: 1, worker_endpoints: ['127.0.0.1:6170'")


def test_servers_of_the_environment(monkeypatch):
    for name, value in {
        "TRAINING_ROLE": "PSERVER",
        "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:7000,127.0.0.1:7001",
        "POD_IP": "127.0.0.1",
        "PADDLE_PORT": "7001",
        "PADDLE_TRAINERS_NUM": "3",
    }.items():
        monkeypatch.setenv(name, value)
    made = role_maker.PaddleCloudRoleMaker()
    made.generate_role()
    assert made.is_server() and not made.is_worker() and made.server_index() == 1
    assert made.worker_num() == 3 and len(made.get_pserver_endpoints()) == 2
    monkeypatch.setenv("TRAINING_ROLE", "else")
    refuses(lambda: role_maker.PaddleCloudRoleMaker().generate_role(), ValueError, "TRAINING_ROLE must be")


@pytest.mark.parametrize(
    "options, error",
    [
        ({}, TypeError),
        ({"worker_num": 0, "server_endpoints": ["a"]}, ValueError),
        ({"worker_num": 1, "server_endpoints": "a"}, TypeError),
        ({"worker_num": 1, "server_endpoints": []}, ValueError),
        ({"worker_num": 1, "server_endpoints": ["a", "a"]}, ValueError),
        ({"worker_num": 1, "server_endpoints": [1]}, TypeError),
        ({"worker_num": 1, "server_endpoints": ["a"], "role": 3}, TypeError),
        ({"worker_num": 1, "server_endpoints": ["a"], "current_id": -1}, ValueError),
        ({"worker_num": 1, "server_endpoints": ["a"], "current_id": "0"}, TypeError),
        ({"worker_num": 1, "server_endpoints": ["a"], "role": SERVER, "current_id": 1}, ValueError),
    ],
)
def test_roles_that_cannot_be(options, error):
    """The types of Paddle 1.8.5's errors."""
    refuses(lambda: role_maker.UserDefinedRoleMaker(**options), error)


def test_roles_that_scripts_say():
    made = role_maker.UserDefinedRoleMaker(1, SERVER, 2, ["a:1", "b:2"])
    assert made.is_server() and made.server_index() == 1 and made.worker_num() == 2
    made = role_maker.UserDefinedCollectiveRoleMaker(1, ["a:1", "b:1"])
    assert made.is_worker() and not made.is_first_worker() and made.worker_num() == 2
    with pytest.raises(ValueError, match="less than or equal"):
        role_maker.UserDefinedCollectiveRoleMaker(2, ["a:1", "b:1"])
    refuses(made.is_server, NotImplementedError)


def test_files_are_shared_out():
    workers, given = Collective(), list("abcdefg")
    shares = []
    for rank in range(3):
        workers.init(role_maker.UserDefinedCollectiveRoleMaker(rank, ["a:1", "b:1", "c:1"]))
        shares.append(workers.split_files(given))
    assert shares == [list("abc"), list("de"), list("fg")]
    refuses(lambda: workers.split_files("a"), TypeError, "should be a list")
    refuses(lambda: workers.init("x"), TypeError, "instance of RoleMakerBase")
    refuses(lambda: Collective().worker_num(), AttributeError, "fleet.init")


def built():
    x = fluid.data("x", [-1, 2])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr="w"))
    return loss


def test_alone_it_trains_as_without(tmp_path):
    fed = {"x": np.ones((2, 2), np.float32)}
    values = []
    for way in ("without", "nccl2", "collective"):
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 3
        with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
            loss, optimizer, runs = built(), fluid.optimizer.SGD(0.1), main
            if way == "without":
                optimizer.minimize(loss)
            else:
                fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
                strategy = DistributedStrategy()
                strategy.mode, strategy.collective_mode = way, None if way == "nccl2" else "grad_allreduce"
                ops, pairs = fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
                assert {p.name for p, _ in pairs} == {"fc_0.b_0", "w"} and len(ops) == 2
                runs = fleet.main_program
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            values.append([exe.run(runs, fed, [loss])[0].item() for _ in range(3)])
            if way == "collective":
                fleet.save_persistables(exe, str(tmp_path / "all"))
                assert {"w", "fc_0.b_0"} <= {path.name for path in (tmp_path / "all").iterdir()}
                checkpointing(exe, tmp_path / "points")
    assert values[0] == values[1] == values[2]


def checkpointing(exe, root):
    """The folders that Paddle 1.8.5 makes."""
    root = str(root)
    weight = fluid.global_scope().find_var("w").get_tensor()
    assert fleet.load_check_point(exe, root, trainer_id=0) is None
    with pytest.raises(AssertionError, match="Can't find checkpoint"):
        fleet.load_check_point(exe, root, trainer_id=0, ignore_empty=False)
    before = np.array(weight)
    fleet.save_check_point(exe, root, TrainStatus(3))
    weight.set(before + 1, fluid.CPUPlace())
    fleet.save_check_point(exe, root, TrainStatus(4))
    names = [f"__paddle_fleet_checkpoint__.{k}" for k in range(2)]
    import os

    assert sorted(os.listdir(root)) == names
    assert sorted(os.listdir(f"{root}/{names[0]}")) == ["_paddle_fleet_param__", "fleet_train_status"]
    weight.set(before, fluid.CPUPlace())
    found = fleet.load_check_point(exe, root, trainer_id=0)
    assert found == TrainStatus(4) and found.next() == 5 and np.array_equal(np.array(weight), before + 1)
    fleet.clean_redundant_check_points(root)
    assert os.listdir(root) == names[1:]


@pytest.mark.parametrize(
    "options, error",
    [
        ({"mode": "collective"}, ValueError),
        ({"mode": "else"}, ValueError),
        ({"collective_mode": "local_sgd"}, AssertionError),
        ({"forward_recompute": True}, ValueError),
    ],
)
def test_strategies_that_cannot_be(options, error):
    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    strategy = DistributedStrategy()
    for name, value in options.items():
        setattr(strategy, name, value)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        loss = built()
        refuses(lambda: fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss), error)
