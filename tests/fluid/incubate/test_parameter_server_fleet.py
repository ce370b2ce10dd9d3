"""fleet with parameter servers: strategies, what it refuses, and the programs that it makes."""

import os

import pytest

import fluidlite as fluid
import fluidlite.incubate.fleet.parameter_server.distribute_transpiler as ps
from fluidlite import layers
from fluidlite.communicator import Communicator
from fluidlite.incubate.fleet.base import role_maker
from fluidlite.transpiler.distribute_transpiler import DistributedMode, DistributeTranspilerConfig

TWO = ["127.0.0.1:7264", "127.0.0.1:7265"]
WORKER, SERVER = role_maker.Role.WORKER, role_maker.Role.SERVER


@pytest.fixture
def fleet(monkeypatch):
    """A fleet of its own, for worker 1 of 2 or server 1 of 2."""
    made = ps.DistributedTranspiler()
    monkeypatch.setattr(ps, "fleet", made)

    def init(role=WORKER, index=1, workers=2):
        made.init(role_maker.UserDefinedRoleMaker(index, role, workers, TWO))
        return made

    return init


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in list(os.environ):
        if name.startswith("FLAGS_communicator") or name == "CPU_NUM":
            monkeypatch.delenv(name)


def built(fleet, strategy, sparse=True, optimizer=fluid.optimizer.SGD):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64")
        rows = layers.embedding(ids, [3001, 10], is_sparse=sparse, param_attr="emb")
        loss = layers.mean(layers.fc(rows, 2))
        fleet.distributed_optimizer(optimizer(0.1), strategy).minimize(loss)
    return fleet.main_program, fleet.startup_program


def ops(program, *types):
    return [op for op in program.global_block().ops if op.type in types]


def strategy(name, *args):
    return getattr(ps.StrategyFactory, f"create_{name}_strategy")(*args)


@pytest.mark.parametrize(
    "name, mode, config",
    [
        ("sync", 0, {"half_async": True, "completely_not_async": True, "geo_sgd_mode": False}),
        ("half_async", 2, {"half_async": True, "completely_not_async": False, "geo_sgd_mode": False}),
        ("async", 1, {"half_async": False, "completely_not_async": False, "geo_sgd_mode": False}),
        ("geo", 3, {"half_async": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": 100}),
    ],
)
def test_strategies(name, mode, config, monkeypatch):
    monkeypatch.setenv("CPU_NUM", "3")
    made = strategy(name)
    options = made.get_program_config()
    assert (options.sync_mode, options.runtime_split_send_recv) == (False, True)
    assert {key: getattr(options, key) for key in config} == config
    assert made.get_trainer_runtime_config().mode == mode
    assert made.get_build_strategy().async_mode and made.get_execute_strategy().num_threads == 3
    assert made.get_execute_strategy().use_thread_barrier is (mode in (0, 2))
    made.set_program_config(DistributeTranspilerConfig())  # and what the strategy is stays
    assert made.get_program_config().runtime_split_send_recv


def test_options_are_set_by_objects_or_dicts():
    made = strategy("async")
    made.set_server_runtime_config({"_rpc_send_thread_num": 3})
    assert made.get_server_runtime_config()._rpc_send_thread_num == 3
    for name in ("program_config", "server_runtime_config", "trainer_runtime_config", "execute_strategy"):
        with pytest.raises(TypeError, match=f"{name} only accept input type: dict or"):
            getattr(made, f"set_{name}")(5)
        with pytest.raises(ValueError, match="doesn't have key: nope"):
            getattr(made, f"set_{name}")({"nope": 1})
    with pytest.raises(ValueError, match="runtime_split_send_recv is false at first"):
        made.set_program_config({"sync_mode": True})
    made.set_debug_opt({"dump_param": ["w"]})
    assert made.get_debug_opt()["dump_param"] == ["w"] and made.get_debug_opt()["dump_file_num"] == 16
    with pytest.raises(NotImplementedError, match="StrategyFactory"):
        ps.DistributedStrategy().check_program_config()


def test_options_of_a_communicator(monkeypatch, capsys):
    monkeypatch.setenv("CPU_NUM", "4")
    monkeypatch.setenv("FLAGS_communicator_max_merge_var_num", "9")
    config = ps.TrainerRuntimeConfig()
    assert config.get_communicator_flags()["communicator_max_merge_var_num"] == "9"
    config.mode = DistributedMode.GEO
    assert config.get_communicator_flags() == {
        "communicator_thread_pool_size": "5",
        "communicator_send_wait_times": "5",
    }
    config.mode = DistributedMode.SYNC
    assert config.get_communicator_flags()["communicator_max_merge_var_num"] == "4"
    assert "must be equal to CPU_NUM" in capsys.readouterr().out
    assert "communicator_send_queue_size                 4" in repr(config)
    config.mode = 7
    with pytest.raises(ValueError, match="Unsupported Mode"):
        config.get_communicator_flags()


def test_what_a_config_means(fleet):
    for options, expected in [
        ({}, ps.SyncStrategy),
        ({"sync_mode": False}, ps.HalfAsyncStrategy),
        ({"sync_mode": False, "runtime_split_send_recv": True}, ps.AsyncStrategy),
        ({"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": 5}, ps.GeoStrategy),
    ]:
        config = DistributeTranspilerConfig()
        for name, value in options.items():
            setattr(config, name, value)
        made = fleet()
        built(made, config)
        assert type(made._transpile_config) is expected
    assert made._transpile_config.get_program_config().geo_sgd_need_push_nums == 5


def test_worker_with_barriers(fleet):
    made = fleet()
    main, startup = built(made, strategy("sync"))
    sends = {op.input("X")[0]: op.attr("send_varnames") for op in ops(main, "send")}
    assert sends["emb@GRAD"] == ["emb@GRAD.block0.trainer_1", "emb@GRAD.block1.trainer_1"]
    assert sends["fc_0.b_0@GRAD"] == ["fc_0.b_0@GRAD.trainer_1"]
    (barrier,) = ops(main, "send_barrier")
    assert barrier.attr("half_async") and barrier.attr("trainer_id") == 1
    assert not ops(main, "fetch_barrier", "sgd") and ops(main, "distributed_lookup_table")
    assert ops(startup, "fake_init") and made.main_program is main
    assert main._fleet_opt["mpi_rank"] == 1 and not made._origin_program._is_distributed
    Communicator(main, DistributedMode.SYNC)
    assert all(op.attr("do_not_run") for op in ops(main, "recv"))


def test_server_with_barriers_and_without(fleet):
    main, _ = built(fleet(SERVER), strategy("sync"))
    (serve,) = ops(main, "listen_and_serv")
    assert serve.attr("endpoint") == TWO[1] == main._ps_endpoint and not main._is_chief
    assert "emb@GRAD.block1.trainer_0" in serve.input("X") and serve.attr("distributed_mode") == 0
    main, _ = built(fleet(SERVER, workers=1), strategy("sync"))
    assert "emb@GRAD.block1" in ops(main, "listen_and_serv")[0].input("X")
    main, _ = built(fleet(SERVER), strategy("half_async"))
    assert ops(main, "listen_and_serv")[0].attr("distributed_mode") == DistributedMode.ASYNC


def test_trainers_that_update_by_themselves(fleet):
    made = fleet()
    main, startup = built(made, strategy("geo", 20))
    (send,) = ops(main, "send")
    assert send.input("X") == ["ids"] and send.attr("send_varnames") == ["emb"]
    assert len(ops(main, "sgd")) == 3 and not ops(main, "recv", "distributed_lookup_table")
    assert ops(startup, "send")[0].input("X") == ["param_init"] and len(ops(startup, "recv")) == 2
    info = made._transpiler._get_vars_info()
    assert dict(info["emb"]) == {
        "var_names": ["emb.block0", "emb.block1"],
        "sections": ["1501", "1500"],
        "epmap": TWO,
        "is_sparse": ["True"],
    }
    main, startup = built(fleet(SERVER), strategy("geo"))
    (serve,) = ops(main, "listen_and_serv")
    assert serve.attr("sparse_grad_to_param") == ["emb.block1.delta:emb.block1"]
    assert [[op.type for op in block.ops] for block in main.blocks[1:]] == [["sum"]] * (len(main.blocks) - 1)
    assert {op.type for op in startup.global_block().ops} == {"uniform_random"}


def test_what_servers_keep_for_updates_is_known(fleet):
    main, _ = built(fleet(), strategy("sync"), optimizer=fluid.optimizer.Adam)
    parts = main._parameters_on_pservers.get_distributed_vars_by_vtypes(["Optimizer"], groupby=True)
    moments = parts["emb_moment1_0"]
    assert [(var.endpoint, var.offset, tuple(var.slice.shape)) for var in moments] == [
        (TWO[0], 0, (1501, 10)),
        (TWO[1], 15010, (1500, 10)),
    ]
    tables = main._parameters_on_pservers.get_distributed_vars_by_vtypes(["RemotePrefetch"])
    assert [var.offset for var in tables] == [0, 15010]


@pytest.mark.parametrize("optimizer", [fluid.optimizer.Adadelta, fluid.optimizer.Lamb])
def test_optimizers_that_servers_do_not_know(fleet, optimizer):
    with pytest.raises(ValueError, match="Not supported optimizer for distributed training"):
        built(fleet(SERVER), strategy("async"), sparse=False, optimizer=optimizer)


def test_decay_of_tables_is_the_servers(fleet):
    regular = fluid.regularizer.L2Decay(0.1)

    def decayed(rate):
        return fluid.optimizer.SGD(rate, regularization=regular)

    worker, _ = built(fleet(), strategy("sync"), optimizer=decayed)
    assert not any("emb" in op.input_arg_names for op in ops(worker, "scale"))
    server, _ = built(fleet(SERVER), strategy("sync"), optimizer=decayed)
    block = server.blocks[1]
    assert [op.type for op in block.ops] == ["sum", "scale", "scale", "sum", "sgd"]
    assert block.ops[-1].input("Grad") == block.ops[-2].output("Out")


def test_what_fleet_refuses(fleet):
    one = ps.DistributedTranspiler()
    with pytest.raises(ValueError, match="use fleet.init"):
        one.distributed_optimizer(fluid.optimizer.SGD(0.1))
    made = fleet()
    with pytest.raises(ValueError, match="instance of Optimizer"):
        made.distributed_optimizer(5)
    with pytest.raises(TypeError, match="strategy must be an instance of DistributeTranspilerConfig"):
        made.distributed_optimizer(fluid.optimizer.SGD(0.1), 5)
    with pytest.raises(ValueError, match="startup_program is None"):
        made.init_server()
    with pytest.raises(ValueError, match="main_program is None"):
        made.run_server()
    with pytest.raises(AttributeError, match="call fleet.distributed_optimizer"):
        made.init_worker()
    with pytest.raises(TypeError, match="executor must be as Executor"):
        made.save_persistables(None, "x")
    main, _ = built(made, strategy("sync"))
    exe = fluid.Executor()
    with pytest.raises(ValueError, match="main_program is for local"):
        made.save_persistables(exe, "x", made._origin_program)
    with pytest.raises(TypeError, match="CompiledProgram is not allowed"):
        made.save_persistables(exe, "x", fluid.CompiledProgram(main))
    optimizer = made.distributed_optimizer(fluid.optimizer.SGD(0.1))
    with pytest.raises(TypeError, match="can not accept loss with list"):
        optimizer.minimize([])


def test_options_passed_to_communicators():
    with pytest.raises(TypeError, match=r"must be a fluid\.Program"):
        Communicator(5, 0)
    with pytest.raises(ValueError, match="one of DistributedMode"):
        Communicator(fluid.Program(), 9)
    with pytest.raises(ValueError, match="lack push_vars, trainers, push_nums"):
        Communicator(fluid.Program(), DistributedMode.GEO)
    first, second = (Communicator(fluid.Program(), DistributedMode.HALF_ASYNC) for _ in range(2))
    first.start()
    try:
        assert first.is_running() and not second.is_running()
        with pytest.raises(RuntimeError, match="another communicator"):
            second.start()
    finally:
        first.stop()
    assert not first.is_running()


def test_a_program_of_changes_needs_a_communicator(fleet):
    made = fleet()
    _, startup = built(made, strategy("geo"))
    for op in list(startup.global_block().ops):
        if op.type in ("recv", "fetch_barrier"):
            startup.global_block()._remove_op(startup.global_block().ops.index(op))
    with pytest.raises(
        fluid.core.EnforceNotMet, match=r"needs a running communicator: call fleet\.init_worker"
    ):
        fluid.Executor().run(startup, scope=fluid.Scope())
