"""DistributeTranspiler: programs of trainers and servers, as Paddle 1.8.5 makes them."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.transpiler.distribute_transpiler import (
    DistributedMode,
    ServerRuntimeConfig,
    same_or_split_var,
    slice_variable,
)
from fluidlite.transpiler.geo_sgd_transpiler import GeoSgdTranspiler
from fluidlite.transpiler.ps_dispatcher import HashName, PSDispatcher, RoundRobin

TWO = "127.0.0.1:7164,127.0.0.1:7165"
FIRST, SECOND = TWO.split(",")


class Named:
    def __init__(self, name, shape=(1,)):
        self.name, self.shape = name, shape


def net(rate=0.1, optimizer=fluid.optimizer.SGD, width=100, sparse=None, **kwargs):
    """Fully connected layers of 1000 x `width` and `width` x 1, or a sparse table before them."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        y = fluid.data("y", [None, 1], "float32")
        if sparse:
            x = layers.embedding(
                fluid.data("ids", [None, 1], "int64"), sparse, is_sparse=True, param_attr="emb"
            )
        else:
            x = fluid.data("x", [None, 1000], "float32")
        loss = layers.mean(layers.square_error_cost(layers.fc(layers.fc(x, width), 1), y))
        optimizer(rate() if callable(rate) else rate, **kwargs).minimize(loss)
    return main, startup


def transpiled(net, trainer=0, servers=TWO, sync=True, trainers=2, **config):
    main, startup = net
    settings = fluid.DistributeTranspilerConfig()
    for name, value in config.items():
        setattr(settings, name, value)
    t = fluid.DistributeTranspiler(settings)
    t.transpile(
        trainer, program=main, startup_program=startup, pservers=servers, trainers=trainers, sync_mode=sync
    )
    return t


def ops(block, *types):
    return [op for op in block.ops if op.type in types]


def test_slices():
    def cut(shape, count, least):
        return [text.partition(":")[2] for text in slice_variable([Named("a", shape)], count, least)]

    assert cut((1000, 100), 3, 8192) == ["0:33400", "1:33400", "2:33200"]
    assert cut((10,), 4, 2) == ["0:3", "1:3", "2:3", "3:1"]
    assert cut((7, 3, 5), 4, 8) == ["0:30", "1:30", "2:30", "3:15"]
    assert cut((8192 * 3 + 1,), 4, 8192) == ["0:8193", "1:8193", "2:8191"]
    assert cut((100,), 1, 10) == ["0:100"]
    assert same_or_split_var("a.block0", "a") and not same_or_split_var("ab", "a")


def test_dispatchers():
    x, y = Named("x"), Named("y")
    robin = RoundRobin(["a", "b", "c"])
    assert robin.dispatch([x, y]) + robin.dispatch([x, y]) == ["a", "b", "c", "a"]
    robin.reset()
    assert robin.dispatch([x]) == ["a"]
    hashed = HashName(["a", "b", "c"])
    assert hashed.dispatch([x, y]) == hashed.dispatch([x, y])
    with pytest.raises(NotImplementedError):
        PSDispatcher(["a"]).dispatch([x])


def test_config_says_what_does_not_go_together():
    config = fluid.DistributeTranspilerConfig()
    with pytest.raises(ValueError, match="sync_mode is false at first"):
        config.runtime_split_send_recv = True
    config.sync_mode = False
    config.runtime_split_send_recv = True
    with pytest.raises(ValueError, match="runtime_split_send_recv is false at first"):
        config.sync_mode = True
    assert fluid.DistributeTranspiler(config).distributed_mode == DistributedMode.ASYNC
    config = fluid.DistributeTranspilerConfig()
    config.min_block_size = 100
    with pytest.raises(AssertionError, match="at least 8192, got 100"):
        fluid.DistributeTranspiler(config)
    with pytest.raises(TypeError, match="ServerRuntimeConfig"):
        fluid.DistributeTranspiler()._set_server_config(3)
    fluid.DistributeTranspiler()._set_server_config(ServerRuntimeConfig())


def test_a_trainer_sends_gradients_as_they_come_and_receives_parameters():
    program = transpiled(net(), trainer=1).get_trainer_program(wait_port=False)
    block = program.global_block()
    sent = [(op.input("X"), op.attr("epmap")) for op in ops(block, "send")]
    assert sent == [
        (["fc_1.b_0@GRAD.trainer_1"], [SECOND]),
        (["fc_1.w_0@GRAD.trainer_1"], [FIRST]),
        (["fc_0.b_0@GRAD.trainer_1"], [FIRST]),
        (["fc_0.w_0@GRAD.block0.trainer_1", "fc_0.w_0@GRAD.block1.trainer_1"], [SECOND, FIRST]),
    ]
    (split,) = ops(block, "split_byref")
    assert split.attr("sections") == [500, 500]
    assert [op.type for op in block.ops[-8:]] == [
        "send", "send_barrier", "recv", "recv", "recv", "recv", "fetch_barrier", "concat",
    ]  # fmt: skip
    assert [op.output("Out") for op in ops(block, "recv")][1] == ["fc_0.w_0.block0", "fc_0.w_0.block1"]
    assert not ops(block, "sgd") and "learning_rate_0" not in block.vars
    (barrier,) = ops(block, "send_barrier")
    assert barrier.attr("endpoints") == [FIRST, SECOND] and barrier.attr("trainer_id") == 1


def test_a_server_means_gradients_and_updates():
    t = transpiled(net(optimizer=fluid.optimizer.Momentum, momentum=0.9))
    program, startup = t.get_pserver_programs(SECOND)
    listen = program.global_block().ops[-1]
    assert listen.type == "listen_and_serv" and listen.attr("Fanin") == 2
    assert listen.attr("grad_to_block_id") == ["fc_0.w_0@GRAD.block0:1", "fc_1.b_0@GRAD:2"]
    assert listen.input("X")[:2] == ["fc_0.w_0@GRAD.block0.trainer_0", "fc_0.w_0@GRAD.block0.trainer_1"]
    assert [op.type for op in program.block(1).ops] == ["sum", "scale", "momentum"]
    assert program.block(1).ops[1].attr("scale") == 0.5
    assert program.global_block().var("fc_0.w_0_velocity_0").shape == (500, 100)
    made = {op.output("Out")[0]: op.attr("shape") for op in startup.global_block().ops}
    assert made["fc_0.w_0.block0"] == made["fc_0.w_0_velocity_0"] == [500, 100] and "fc_0.b_0" not in made


def test_rates_decay_on_servers():
    def rate():
        return layers.piecewise_decay([3, 6], [0.1, 0.05, 0.01])

    program = transpiled(net(rate)).get_pserver_program(FIRST)
    listen = program.global_block().ops[-1]
    assert listen.attr("lr_decay_block_id") == 1
    decay = program.block(1)
    assert [op.type for op in decay.ops][:2] == ["increment", "cast"]
    inner = ops(decay, "conditional_block")
    assert [op.attr("sub_block").idx for op in inner] == [2, 3, 4]
    assert all(op.attr("sub_block").program is program for op in inner)
    assert {block.parent_idx for block in listen.attr("optimize_blocks")[1:]} == {4}


def test_steps_are_counted_without_barriers():
    t = transpiled(
        net(lambda: layers.exponential_decay(0.1, 10, 0.9)), trainer=1, sync=False, sync_mode=False
    )
    decay = t.get_pserver_program(FIRST).block(1).ops[0]
    assert decay.type == "sum" and decay.input("X")[1] == "@LR_DECAY_COUNTER@.trainer_1"
    block = t.get_trainer_program(wait_port=False).global_block()
    last = ops(block, "send")[-1]
    assert last.input("X") == ["@LR_DECAY_COUNTER@.trainer_1"] and last.attr("merge_add")
    assert last.attr("epmap") == [FIRST, SECOND]
    assert not ops(block, "send_barrier", "fetch_barrier")


def test_rows_of_sparse_tables_stay_on_servers():
    t = transpiled(net(sparse=[3000, 8], width=16))
    _, startup = t.origin_program, t.startup_program
    block = t.get_trainer_program(wait_port=False).global_block()
    assert not ops(block, "lookup_table")
    (lookup,) = ops(block, "distributed_lookup_table")
    assert lookup.attr("table_names") == ["emb.block0", "emb.block1"]
    assert lookup.attr("height_sections") == [1500, 1500]
    assert lookup.attr("endpoints") == [FIRST, SECOND]
    assert ops(block, "split_selected_rows") and all(
        "emb" not in op.output("Out")[0] for op in ops(block, "recv")
    )
    assert [op.type for op in startup.global_block().ops if "emb" in op.output_arg_names] == ["fake_init"]
    t = transpiled(net(sparse=[3000, 8], width=16))
    listen = t.get_pserver_program(FIRST).global_block().ops[-1]
    assert listen.attr("sparse_grad_to_param") == ["emb@GRAD.block0:emb.block0"]


def test_whole_variables_are_shuffled_alike_in_all_processes():
    t = transpiled(net(), slice_var_up=False)
    sent = {
        endpoint: [var.name for var in held["params"]] for endpoint, held in t.param_grad_ep_mapping.items()
    }
    assert sent == {FIRST: ["fc_1.b_0", "fc_0.w_0"], SECOND: ["fc_1.w_0", "fc_0.b_0"]}


def test_a_communicator_cuts_at_run_time():
    t = transpiled(net(), sync=False, sync_mode=False, runtime_split_send_recv=True, half_async=True)
    block = t.get_trainer_program(wait_port=False).global_block()
    whole = next(op for op in ops(block, "send") if op.input("X") == ["fc_0.w_0@GRAD"])
    assert whole.attr("sections") == [500, 500]
    assert whole.attr("send_varnames") == ["fc_0.w_0@GRAD.block0", "fc_0.w_0@GRAD.block1"]
    assert ops(block, "send_barrier")[0].attr("half_async")
    assert not ops(block, "split_byref", "concat", "fetch_barrier")


def test_delay_is_compensated():
    t = transpiled(net(), sync=False, enable_dc_asgd=True)
    program, startup = t.get_pserver_programs(FIRST)
    assert [op.type for op in program.block(1).ops] == [
        "ref_by_trainer_id", "elementwise_sub", "elementwise_mul", "elementwise_mul", "elementwise_add", "sgd",
    ]  # fmt: skip
    assert startup.global_block().ops[-1].output("Out") == ["fc_1.w_0.trainer_1_bak"]


def test_a_trainer_clips_its_own_gradients():
    t = transpiled(net(grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)))
    assert [op.type for op in t.get_pserver_program(FIRST).block(1).ops] == ["sum", "scale", "sgd"]
    block = t.get_trainer_program(wait_port=False).global_block()
    assert ops(block, "sqrt") and len(ops(block, "elementwise_mul")) == 4
    assert ops(block, "send")[0].input("X")[0].startswith("elementwise_mul_")


def test_optimizers_that_servers_do_not_know():
    t = transpiled(net(optimizer=fluid.optimizer.Lamb))
    with pytest.raises(ValueError, match="Not supported optimizer for distributed training: lamb"):
        t.get_pserver_program(FIRST)


def test_what_trainers_compute_themselves_is_begun_by_them(programs):
    """Statistics of batch_norm and averages of them are on the trainer, and an untrained table is."""
    main, startup = programs
    ids = fluid.data("ids", [None, 1], "int64")
    attr = fluid.ParamAttr("emb", trainable=False, do_model_average=True)
    rows = layers.embedding(ids, [3000, 8], is_sparse=True, param_attr=attr)
    loss = layers.mean(layers.batch_norm(layers.fc(rows, 4)))
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.optimizer.ModelAverage(0.15)
    fluid.optimizer.ExponentialMovingAverage(0.9).update()
    program = transpiled((main, startup)).get_trainer_program(wait_port=False)
    made = {name for op in startup.global_block().ops for name in op.output_arg_names}
    read = {name for op in program.global_block().ops for name in op.input_arg_names}
    held = {name for name in read if program.global_block().var(name).persistable}
    assert {"emb", "batch_norm_0.w_1", "batch_norm_0.w_2"} <= held <= made


def test_geo_always_slices_tables_and_layers():
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode, config.geo_sgd_mode, config.slice_var_up = False, True, False
    config.runtime_split_send_recv = True
    main, startup = net()
    t = GeoSgdTranspiler(config)
    t.transpile(0, program=main, startup_program=startup, pservers=TWO, trainers=2)
    held = [op.output("Out")[0] for op in t.get_pserver_program(FIRST).global_block().program.block(2).ops]
    assert held == ["fc_0.w_0.block1"]


def test_servers_begin_with_their_own_rows_of_given_numbers():
    numbers = np.arange(20000, dtype="float32").reshape(1000, 20)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        initial = fluid.initializer.NumpyArrayInitializer(numbers)
        out = layers.fc(layers.data("x", [1000]), 20, param_attr=fluid.ParamAttr("w", initializer=initial))
        fluid.optimizer.SGD(0.1).minimize(layers.mean(out))
    endpoints = ["127.0.0.1:6174", "127.0.0.1:6175"]
    made = fluid.DistributeTranspiler()
    made.transpile(0, program=main, pservers=",".join(endpoints), trainers=1, startup_program=startup)
    held = {}
    for endpoint in endpoints:
        _, begin = made.get_pserver_programs(endpoint)
        scope = fluid.Scope()
        fluid.Executor(fluid.CPUPlace()).run(begin, scope=scope)
        for name in ("w.block0", "w.block1"):
            if name in begin.global_block().vars:
                held[name] = np.array(scope.find_var(name).get_tensor())
    np.testing.assert_array_equal(np.concatenate([held["w.block0"], held["w.block1"]]), numbers)
