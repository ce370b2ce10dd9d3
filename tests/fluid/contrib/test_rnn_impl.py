"""`BasicGRUUnit` and `BasicLSTMUnit`: results, names of parameters, operators."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.contrib.layers import BasicGRUUnit, BasicLSTMUnit

X = np.linspace(-1, 1, 15, dtype="float32").reshape(3, 5)
H = np.linspace(0.5, -0.7, 12, dtype="float32").reshape(3, 4)
C = np.linspace(-2, 1, 12, dtype="float32").reshape(3, 4)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def weights(shapes):
    return [
        np.cos(0.7 * np.arange(np.prod(s)) + i).reshape(s).astype("float32") for i, s in enumerate(shapes)
    ]


GRU = weights([(9, 8), (9, 4), (8,), (4,)])
LSTM = weights([(9, 16), (16,)])


def gru():
    gates = sigmoid(np.concatenate([X, H], 1) @ GRU[0] + GRU[2])
    reset, update = gates[:, :4], gates[:, 4:]
    candidate = np.tanh(np.concatenate([X, reset * H], 1) @ GRU[1] + GRU[3])
    return (update * H + (1 - update) * candidate,)


def lstm(forget_bias=1.0):
    i, j, f, o = np.split(np.concatenate([X, H], 1) @ LSTM[0] + LSTM[1], 4, axis=1)
    cell = C * sigmoid(f + forget_bias) + sigmoid(i) * np.tanh(j)
    return np.tanh(cell) * sigmoid(o), cell


@pytest.mark.parametrize(
    ("unit", "given", "values", "expected"),
    [
        (lambda: BasicGRUUnit("u", 4), (X, H), GRU, gru()),
        (lambda: BasicLSTMUnit("u", 4), (X, H, C), LSTM, lstm()),
        (lambda: BasicLSTMUnit("u", 4, forget_bias=0.25), (X, H, C), LSTM, lstm(0.25)),
    ],
    ids=["gru", "lstm", "forget_bias"],
)
def test_one_step_in_both_modes(unit, given, values, expected):
    names = ["x", "h", "c"][: len(given)]
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        made = unit()
        got = made(*(fluid.data(name, [-1, a.shape[1]]) for name, a in zip(names, given, strict=True)))
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        for parameter, value in zip(made.parameters(), values, strict=True):
            fluid.global_scope().find_var(parameter.name).get_tensor().set(value, fluid.CPUPlace())
        fetch = got if isinstance(got, tuple) else [got]
        for mine, theirs in zip(
            exe.run(feed=dict(zip(names, given, strict=True)), fetch_list=list(fetch)), expected, strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    with fluid.dygraph.guard():
        made = unit()
        tensors = [fluid.dygraph.to_variable(a) for a in given]
        made(*tensors)
        for parameter, value in zip(made.parameters(), values, strict=True):
            parameter.set_value(value)
        got = made(*tensors)
        for mine, theirs in zip(got if isinstance(got, tuple) else [got], expected, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-5, atol=1e-6)


def test_names_of_parameters():
    attrs = {"param_attr": fluid.ParamAttr(name="pw"), "bias_attr": fluid.ParamAttr(name="pb")}
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x, h, c = (fluid.data(name, [-1, 5]) for name in "xhc")
        made = [BasicGRUUnit("a", 5), BasicLSTMUnit("a", 5), BasicGRUUnit("a", 5, **attrs)]
        for unit, given in zip(made, [(x, h), (x, h, c), (x, h)], strict=True):
            unit(*given)
        assert [[p.name for p in unit.parameters()] for unit in made] == [
            [f"a/BasicGRUUnit_0.{name}" for name in ("w_0", "w_1", "b_0", "b_1")],
            ["a/BasicLSTMUnit_0.w_0", "a/BasicLSTMUnit_0.b_0"],
            ["pw_gate", "pw_candidate", "pb_gate", "pb_candidate"],
        ]


def test_operators_are_those_of_fluid(programs):
    x, h, c = (fluid.data(name, [-1, 5]) for name in "xhc")
    BasicGRUUnit("a", 5)(x, h)
    block = fluid.default_main_program().global_block()
    assert " ".join(op.type for op in block.ops) == (
        "concat matmul elementwise_add sigmoid split elementwise_mul concat matmul elementwise_add tanh "
        "elementwise_mul scale elementwise_mul elementwise_add"
    )
    assert block.ops[-1].attr("axis") == 0
    first = len(block.ops)
    BasicLSTMUnit("a", 5)(x, h, c)
    assert " ".join(op.type for op in block.ops[first:]) == (
        "fill_constant concat matmul elementwise_add split elementwise_add sigmoid elementwise_mul sigmoid tanh "
        "elementwise_mul elementwise_add tanh sigmoid elementwise_mul"
    )


@pytest.mark.parametrize(
    ("shape", "other", "axis"),
    [((-1, 3), (-1,), 0), ((-1, 3), (-1, 3), 0), ((-1, 3), (3,), -1), ((2, 3), (2, 3), -1)],
)
def test_open_dimensions_meet_at_the_front(programs, shape, other, axis):
    total = fluid.data("x", shape) + fluid.data("y", other)
    assert total.block.ops[-1].attr("axis") == axis
    assert total.shape == shape
