"""Programs of several trainers, operator by operator as Paddle 1.8.5 made them: type, inputs, ring, role."""

from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.framework.gradients.exchange import in_messages
from fluidlite.transpiler import collective
from tests.recorded import sections

RECORDED = sections(Path(__file__).with_suffix(".txt"))
ENDPOINTS = ["127.0.0.1:6170", "127.0.0.1:6171", "127.0.0.1:6172"]


def built(normalised=False):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x, y = fluid.data("x", [-1, 4]), fluid.data("y", [-1, 1])
        if normalised:
            hidden = fluid.layers.fc(fluid.layers.layer_norm(x), 4, param_attr="shared")
            hidden = fluid.layers.fc(hidden, 4, param_attr="shared", bias_attr=False)
        else:
            hidden = fluid.layers.fc(x, 3, act="relu")
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        decay = fluid.regularizer.L2Decay(1e-4)
        fluid.optimizer.Momentum(0.1, 0.9, regularization=decay).minimize(loss)
    return main, startup


def transpiled(way, *args, endpoints=ENDPOINTS, rank=1, **net):
    main, startup = built(**net)
    with fluid.unique_name.guard():
        getattr(collective, way)(*args).transpile(startup, main, rank, endpoints, ENDPOINTS[rank], False)
    return main.global_block(), startup.global_block()


def lines(block):
    described = []
    for op in block.ops:
        if op.type != "c_gen_nccl_id":
            names = ",".join(name for slot in sorted(op.input_names) for name in op.input(slot))
            described.append(
                f"{op.type} {names or '-'} {op.attrs.get('ring_id', '-')} {int(op.attrs.get('op_role', 0))}"
            )
    return described


def test_gradients_are_reduced_as_soon_as_they_are_there():
    main, startup = transpiled("GradAllReduce")
    assert lines(startup)[-8:] == RECORDED["CONNECTED"].splitlines()
    expected = RECORDED["REDUCED"].splitlines()
    at = lines(main).index(expected[0])
    assert lines(main)[at : at + len(expected)] == expected
    scale = next(op for op in main.ops if op.type == "scale")
    assert scale.attrs["scale"] == pytest.approx(1 / 3)


def exchanged(program):
    """Where something is exchanged: what an operator makes, and of what."""
    kinds = ("c_allreduce_sum", "begin_gradient_sums", "gradient_sums")
    ops = program.global_block().ops
    return [(op.type, op.input("X"), ops[at - 1].type) for at, op in enumerate(ops) if op.type in kinds]


@pytest.mark.parametrize("bucket", [1 << 20, 16])
def test_gradients_travel_together(bucket):
    main, _ = transpiled("GradAllReduce")
    found = exchanged(in_messages(main.program, bucket))
    names = [f"{name}@GRAD" for name in ("fc_1.b_0", "fc_1.w_0", "fc_0.b_0", "fc_0.w_0")]
    if bucket == 16:
        assert found == [
            ("begin_gradient_sums", names[:2], "c_sync_calc_stream"),
            ("begin_gradient_sums", names[2:], "c_sync_calc_stream"),
            ("gradient_sums", names[:2], "begin_gradient_sums"),
            ("gradient_sums", names[2:], "gradient_sums"),
        ]
    else:
        assert found == [("gradient_sums", names, "c_sync_calc_stream")]
    assert len(exchanged(main.program)) == 4


def test_fetched_gradients_are_sent_separately():
    main, _ = transpiled("GradAllReduce")
    at = next(at for at, op in enumerate(main.ops) if op.type == "c_sync_comm_stream")
    named = main.vars["fc_1.w_0@GRAD"]
    main._insert_op(at, type="scale", inputs={"X": named}, outputs={"Out": named}, attrs={"scale": 2.0})
    found = exchanged(in_messages(main.program))
    assert [names for _, names, _ in found] == [
        ["fc_1.w_0@GRAD"],
        ["fc_1.b_0@GRAD", "fc_0.b_0@GRAD", "fc_0.w_0@GRAD"],
    ]
    alone, _ = built()
    assert in_messages(alone) is alone


def test_parameters_of_local_updates_travel_together():
    main, _ = transpiled("LocalSGD")
    ((kind, names, _),) = exchanged(in_messages(main.program))
    assert kind == "gradient_sums" and sorted(names) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]


def test_connecting():
    _, startup = transpiled("GradAllReduce")
    ids = [op for op in startup.ops if op.type == "c_gen_nccl_id"]
    assert [op.output("Out") for op in ids] == [["nccl_id_0"], ["nccl_id_1"]]
    assert ids[0].attrs["endpoint"] == ENDPOINTS[1] and ids[0].attrs["rank"] == 1
    assert ids[0].attrs["other_endpoints"] == [ENDPOINTS[0], ENDPOINTS[2]]
    assert startup.var("nccl_id_0").persistable
    made = next(op for op in startup.ops if op.type == "c_comm_init")
    assert (made.attrs["nranks"], made.attrs["rank"]) == (3, 1)


def test_one_operator_with_two_gradients():
    main, _ = transpiled("GradAllReduce", normalised=True)
    expected = RECORDED["TWO_OF_ONE"].splitlines()
    at = lines(main).index(expected[0])
    assert lines(main)[at : at + len(expected)] == expected


def test_local_updates_and_their_mean():
    main, startup = transpiled("LocalSGD")
    assert lines(startup)[-4:] == RECORDED["SNAPSHOTS"].splitlines()
    expected = RECORDED["LOCAL"].splitlines()
    assert lines(main)[-len(expected) :] == expected
    assert main.var("fc_0.w_0@SNAPSHOT").persistable and startup.var("fc_0.w_0@SNAPSHOT").stop_gradient


def test_devices_of_one_process():
    main, startup = transpiled("SingleProcessMultiThread")
    assert startup.ops[-1].type == "c_comm_init_all"
    assert {op.attrs["ring_id"] for op in main.ops if op.type == "c_allreduce_sum"} == {0}


def test_endpoints_as_text_and_number_of_rings():
    main, startup = transpiled("GradAllReduce", 1, endpoints=",".join(ENDPOINTS))
    assert {op.attrs["ring_id"] for op in main.ops if "ring_id" in op.attrs} == {0}
    assert [op.type for op in startup.ops].count("c_comm_init") == 1


@pytest.mark.parametrize(
    "endpoints, rank, error",
    [(["a:1"], 0, "greater than 1"), (ENDPOINTS[1:], 0, "is not in"), (ENDPOINTS, -1, "rank must be")],
)
def test_what_cannot_be(endpoints, rank, error):
    main, startup = built()
    with pytest.raises(ValueError, match=error):
        collective.GradAllReduce().transpile(
            startup, main, rank, endpoints, ENDPOINTS[rank] if rank >= 0 else ENDPOINTS[0], False
        )


def test_a_program_for_three_does_not_start_alone():
    main, startup = built()
    collective.GradAllReduce().transpile(startup, main, 0, ENDPOINTS, ENDPOINTS[0], False)
    with fluid.scope_guard(fluid.Scope()), pytest.raises(fluid.core.EnforceNotMet, match="launch -n 3"):
        fluid.Executor(fluid.CPUPlace()).run(startup)


def test_devices_of_one_process_train_alone():
    """With one endpoint the program runs as it did before."""
    losses = []
    for way in (False, True):
        main, startup = built()
        if way:
            collective.SingleProcessMultiThread().transpile(startup, main, 0, ["a:1"], "a:1", False)
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            feed = {"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}
            losses.append([exe.run(main, feed, ["mean_0.tmp_0"])[0].item() for _ in range(3)])
    assert losses[0] == losses[1]


def test_who_trains_together_in_mode_nccl2():
    """The variables that Paddle 1.8.5 makes, and the operator that fills them."""
    _, startup = built()
    collective.nccl2(1, ENDPOINTS, startup, nccl_comm_num=2, use_hierarchical_allreduce=True)
    block = startup.global_block()
    made = block.ops[-1]
    assert made.type == "gen_nccl_id" and made.output("NCCLID") == ["NCCLID"]
    assert made.attrs["trainers"] == ENDPOINTS and made.attrs["trainer_id"] == 1
    names = [name for name in block.vars if "NCCLID" in name]
    assert names[:4] == ["NCCLID", "NCCLID_1", "Hierarchical_inter_NCCLID_0", "Hierarchical_exter_NCCLID_0"]
    with fluid.scope_guard(fluid.Scope()):
        fluid.Executor(fluid.CPUPlace()).run(startup)


@pytest.mark.parametrize(
    "options, last",
    [
        ({"mode": "nccl2"}, "gen_nccl_id"),
        ({"mode": "collective", "collective_mode": "grad_allreduce"}, "c_sync_comm_stream"),
        ({"mode": "collective", "collective_mode": "local_sgd"}, "assign"),
        ({"mode": "collective"}, None),
        ({"mode": "else"}, None),
    ],
)
def test_modes_of_distribute_transpiler(options, last):
    main, startup = built()
    config = fluid.DistributeTranspilerConfig()
    for name, value in options.items():
        setattr(config, name, value)
    transpiler = fluid.DistributeTranspiler(config)
    arguments = {"program": main, "startup_program": startup, "trainers": ",".join(ENDPOINTS)}
    if last is None:
        with pytest.raises(ValueError, match="invalid mode"):
            transpiler.transpile(1, current_endpoint=ENDPOINTS[1], **arguments)
    else:
        transpiler.transpile(1, current_endpoint=ENDPOINTS[1], **arguments)
        assert startup.global_block().ops[-1].type == last
