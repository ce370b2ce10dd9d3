"""contrib: summary, op_freq_statistic, weight decay apart from gradients; recorded from Paddle 1.8.5."""

import re

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers


@pytest.fixture
def program():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        yield main


TABLE = """\
+-----+------------------+-----------+-----------+--------+-------+
| No. |             TYPE |     INPUT |    OUTPUT | PARAMs | FLOPs |
+-----+------------------+-----------+-----------+--------+-------+
|   0 |            prelu | (4, 8, 6) | (4, 8, 6) |      1 |  -192 |
|   1 | depthwise_conv2d | (4, 8, 6) | (4, 6, 4) |      9 |   432 |
|   2 |           conv2d | (4, 6, 4) | (6, 4, 2) |     48 |   768 |
|   3 |       batch_norm | (6, 4, 2) | (6, 4, 2) |     12 |    96 |
|   4 |           pool2d | (6, 4, 2) | (6, 1, 1) |      0 |     6 |
|   5 |              mul | (6, 1, 1) |      (3,) |     19 |    18 |
|   6 |             relu |      (3,) |      (3,) |      0 |    -3 |
+-----+------------------+-----------+-----------+--------+-------+
Total PARAMs: 89(0.0001M)
Total FLOPs: 1125(0.00G)
Notice: 
 now supported ops include [Conv, DepthwiseConv, FC(mul), BatchNorm, Pool, Activation(sigmoid, tanh, relu, leaky_relu, prelu)]
"""  # noqa: E501, W291


def test_summary(program, capsys):
    x = layers.prelu(fluid.data("x", [None, 4, 8, 6], "float32"), "all")
    x = layers.conv2d(x, 4, 3, groups=4, use_cudnn=False)
    x = layers.batch_norm(layers.conv2d(x, 6, [1, 2], stride=2, padding=1, dilation=2))
    layers.fc(layers.pool2d(x, global_pooling=True), 3, act="relu")
    fluid.contrib.summary(program)
    assert capsys.readouterr().out == TABLE


def test_operators_and_their_neighbours_are_counted(program):
    x = fluid.data("x", [None, 4], "float32")
    layers.relu(layers.fc([layers.relu(x), layers.relu(x)], 3, bias_attr=False))
    single, pairs = fluid.contrib.op_freq_statistic(program)
    assert list(single.items()) == [("relu", 3), ("mul", 2), ("sum", 1)]
    assert list(pairs.items()) == [("relu->mul", 2), ("mul->sum", 2), ("sum->relu", 1)]
    with pytest.raises(TypeError, match="you passed in <class 'int'>"):
        fluid.contrib.op_freq_statistic(3)


def decayed(optimizer, **arguments):
    extended = fluid.contrib.extend_with_decoupled_weight_decay(optimizer)(**arguments)
    x = fluid.data("x", [None, 3], "float32")
    _, pairs = extended.minimize(layers.mean(layers.fc(layers.fc(x, 4), 1)))
    return extended, [param.name for param, _ in pairs]


def test_weight_decay_comes_before_the_updates(program):
    _, names = decayed(fluid.optimizer.Adam, weight_decay=0.01, learning_rate=0.1)
    tail = [op for op in program.global_block().ops if op.attr("op_role") == 2]
    assert names == ["fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"]
    assert [op.type for op in tail] == ["scale"] * 4 + ["elementwise_sub", "assign"] * 4 + ["adam"] * 4
    assert [op.input("X")[0] for op in tail[:4]] == names
    assert re.fullmatch(r"/weight decay(_\d+)?/", tail[0].attr("op_namescope"))


def test_weight_decay_of_chosen_parameters(program):
    chosen, _ = decayed(
        fluid.optimizer.SGD,
        weight_decay=0.25,
        learning_rate=0.0,
        apply_decay_param_fun=lambda name: name == "fc_0.w_0",
    )
    assert str(chosen) == "Weight Decay, params: fc_0.w_0"
    startup = fluid.default_startup_program()
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        before = [value(name) for name in ("fc_0.w_0", "fc_1.w_0")]
        for _ in range(2):
            exe.run(program, feed={"x": np.ones((2, 3), "float32")})
        after = [value(name) for name in ("fc_0.w_0", "fc_1.w_0")]
    np.testing.assert_allclose(after[0], before[0] * 0.75**2, rtol=1e-6)
    np.testing.assert_array_equal(after[1], before[1])


def value(name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def test_what_weight_decay_refuses(program):
    with pytest.raises(TypeError, match="coeff should be float or Variable"):
        decayed(fluid.optimizer.SGD, weight_decay=1, learning_rate=0.1)
    with pytest.raises(TypeError, match="should be a derived class of Optimizer"):
        fluid.contrib.extend_with_decoupled_weight_decay(dict)


def test_bytes_of_elements():
    kind = fluid.core.VarDesc.VarType
    assert fluid.contrib.memory_usage_calc.dtype_to_size[kind.FP16] == 2
    assert len(fluid.contrib.memory_usage_calc.dtype_to_size) == 8
