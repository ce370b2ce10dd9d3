"""contrib.mixed_precision: what real Paddle 1.8.5 makes of a program, and what comes out when it runs."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.contrib import mixed_precision as amp
from fluidlite.contrib.mixed_precision import fp16_utils


def network():
    x = fluid.data("x", [None, 6], "float32")
    hidden = layers.fc(x, 4, act="relu")
    return layers.mean(layers.square(layers.fc(hidden, 2)))


def minimized(build=network, optimizer=None, **options):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = build()
        decorated = amp.decorate(optimizer or fluid.optimizer.SGD(0.1), **options)
        decorated.minimize(loss)
    return main, startup, loss, decorated


def casts(program):
    """(source, result, role) of every cast."""
    ops = [op for op in program.global_block().ops if op.type == "cast"]
    return [(op.input("X")[0], op.output("Out")[0], op.attr("op_role")) for op in ops]


def test_casts_and_gradients_of_parameters():
    main, _, _, _ = minimized(use_dynamic_loss_scaling=False)
    assert casts(main) == [
        ("fc_0.w_0", "fc_0.w_0.cast_fp16", 0),
        ("x", "x.cast_fp16", 0),
        ("fc_0.b_0", "fc_0.b_0.cast_fp16", 0),
        ("fc_1.w_0", "fc_1.w_0.cast_fp16", 0),
        ("fc_1.b_0", "fc_1.b_0.cast_fp16", 0),
        ("fc_1.tmp_1", "fc_1.tmp_1.cast_fp32", 0),
        ("fc_1.tmp_1.cast_fp32@GRAD", "fc_1.tmp_1@GRAD", 1),
        ("fc_0.w_0.cast_fp16@GRAD", "fc_0.w_0@GRAD", 2),
        ("fc_0.b_0.cast_fp16@GRAD", "fc_0.b_0@GRAD", 2),
        ("fc_1.w_0.cast_fp16@GRAD", "fc_1.w_0@GRAD", 2),
        ("fc_1.b_0.cast_fp16@GRAD", "fc_1.b_0@GRAD", 2),
    ]
    (made,) = (op for op in main.global_block().ops if "fc_0.w_0.cast_fp16@GRAD" in op.output_arg_names)
    assert made.type == "mul_grad"
    assert made.attr("op_role_var") == ["fc_0.w_0", "fc_0.w_0.cast_fp16@GRAD"]
    assert [op.type for op in main.global_block().ops][-8:] == ["elementwise_div"] * 4 + ["sgd"] * 4


def test_lists():
    lists = amp.AutoMixedPrecisionLists({"tanh", "softmax"}, {"conv2d", "relu"}, {"w"})
    assert lists.white_list == {"matmul", "mul", "softmax", "tanh"}
    assert {"conv2d", "relu"} <= lists.black_list
    assert "softmax" not in lists.black_list
    assert not {"tanh", "relu"} & lists.gray_list
    assert amp.AutoMixedPrecisionLists().gray_list == amp.fp16_lists.gray_list
    with pytest.raises(ValueError, match="overlap custom black list: tanh"):
        amp.AutoMixedPrecisionLists({"tanh"}, {"tanh"})


def test_black_variables_stay_float32():
    lists = amp.AutoMixedPrecisionLists(custom_black_varnames={"fc_0.w_0"})
    main, _, _, _ = minimized(amp_lists=lists, use_dynamic_loss_scaling=False)
    assert ("fc_0.w_0", "fc_0.w_0.cast_fp16", 0) not in casts(main)
    assert ("fc_1.w_0", "fc_1.w_0.cast_fp16", 0) in casts(main)
    assert main.global_block().var("fc_0.tmp_0").dtype == fluid.core.VarDesc.VarType.FP32


def test_what_a_parameter_is_cast_to_is_shared():
    def build():
        x = fluid.data("x", [None, 6], "float32")
        twice = layers.fc(
            layers.fc(x, 6, param_attr="w", bias_attr=False), 6, param_attr="w", bias_attr=False
        )
        return layers.mean(twice)

    main, _, _, _ = minimized(build, use_dynamic_loss_scaling=False)
    assert [result for source, result, _ in casts(main) if source == "w"] == ["w.cast_fp16"]


def losses(main, startup, loss, steps=6, fetch=(), feeds=None):
    exe, out = fluid.Executor(fluid.CPUPlace()), []
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        rng = np.random.RandomState(0)
        for step in range(steps):
            x = rng.rand(8, 6).astype("float32")
            if feeds is not None:
                x *= feeds[step]
            out.append(
                [np.ravel(value)[0] for value in exe.run(main, feed={"x": x}, fetch_list=[loss, *fetch])]
            )
    return np.array(out)


@pytest.mark.parametrize("dynamic", [False, True])
def test_trains_as_in_float32(dynamic):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = network()
        fluid.optimizer.SGD(0.1).minimize(loss)
    wanted = losses(main, startup, loss)
    main, startup, loss, _ = minimized(init_loss_scaling=128.0, use_dynamic_loss_scaling=dynamic)
    got = losses(main, startup, loss)
    np.testing.assert_allclose(got, wanted, rtol=5e-3)
    assert not np.array_equal(got, wanted)


def test_scale_follows_the_steps():
    main, startup, loss, decorated = minimized(
        init_loss_scaling=8.0, incr_every_n_steps=2, decr_every_n_nan_or_inf=1, decr_ratio=0.25
    )
    fetch = [decorated.get_loss_scaling(), "fc_0.w_0"]
    got = losses(main, startup, loss, 8, fetch, [1, 1, 1, np.inf, np.inf, np.inf, np.inf, 1])
    # As real Paddle counts, where every operator is on the black list: bad steps train nothing.
    assert got[:, 1].tolist() == [8, 8, 16, 16, 4, 4, 1, 1]
    assert len(set(got[2:7, 2])) == 1
    assert got[7, 2] != got[6, 2]


def test_scaled_loss():
    main, startup, loss, decorated = minimized(init_loss_scaling=32.0, use_dynamic_loss_scaling=False)
    scaled = decorated.get_scaled_loss()
    got = losses(main, startup, loss, 1, [scaled])[0]
    assert got[1] == 32 * got[0]


def test_previous_and_later_operators():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = layers.fill_constant([1], "float32", 1.0)
        y = layers.scale(x, 2.0)
        layers.increment(x)
        z = layers.scale(x, 3.0)
    ops = main.global_block().ops
    assert fp16_utils.find_true_prev_op(ops, ops[1], x.name) is ops[0]
    assert fp16_utils.find_true_prev_op(ops, ops[0], y.name) is None
    with pytest.raises(ValueError, match=f"only one previous op that outputs {x.name} variable"):
        fp16_utils.find_true_prev_op(ops, z.op, x.name)
    assert fp16_utils.find_true_post_op(ops, ops[1], x.name) == [ops[2], ops[3]]
    block = main.global_block().desc
    assert fp16_utils.find_op_index(block, ops[3].desc) == 3
    assert fp16_utils.find_op_index(fluid.Program().global_block().desc, ops[3].desc) == -1


def test_a_gradient_that_something_else_reads():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        loss = network()
        fp16_utils.rewrite_program(main, amp.AutoMixedPrecisionLists())
        pairs = fluid.backward.append_backward(loss)
        layers.scale(pairs[0][1], 2.0)
        with pytest.raises(ValueError, match="should not be used by a non-optimize op"):
            fp16_utils.update_role_var_grad(main, pairs)
