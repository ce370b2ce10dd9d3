"""`basic_gru` and `basic_lstm` against loops in NumPy; recorded losses are those of Paddle 1.8.5."""

import numpy as np
import pytest
from scipy.special import expit as sigmoid

import fluidlite as fluid
from fluidlite.contrib.layers import basic_gru, basic_lstm

X = np.sin(np.arange(60, dtype="float32")).reshape(3, 4, 5)
LENGTHS = np.array([4, 1, 3], "int32")
STATE = np.cos(np.arange(24, dtype="float32")).reshape(4, 3, 2)
SIZE = 2
RECORDED = {1: 0.5728704, 2: 0.5328504, 6: 0.4004938}
"""The loss after so many steps."""


def gru_step(x, states, weights):
    (h,), (gate, candidate, gate_bias, bias) = states, weights
    reset, update = np.split(sigmoid(np.concatenate([x, h]) @ gate + gate_bias), 2)
    new = np.tanh(np.concatenate([x, reset * h]) @ candidate + bias)
    return [update * h + (1 - update) * new]


def lstm_step(x, states, weights, forget_bias=0.5):
    (h, c), (weight, bias) = states, weights
    i, j, f, o = np.split(np.concatenate([x, h]) @ weight + bias, 4)
    c = c * sigmoid(f + forget_bias) + sigmoid(i) * np.tanh(j)
    return [np.tanh(c) * sigmoid(o), c]


def expected(step, weights, starts, lengths, ways):
    """All states of the last layer, and the last ones of each kind, sequence by sequence."""
    kinds, layers = len(starts), len(weights) // ways
    out, last = np.zeros((3, 4, ways * SIZE)), np.zeros((kinds, layers, ways, 3, SIZE))
    for s in range(3):
        for way in range(ways):
            given, states = X[s], [[start[k, s] for start in starts] for k in range(ways * layers)]
            times = range(4)[:: -1 if way else 1]
            for k in range(layers):
                mine, made = states[k * ways + way], np.zeros((4, SIZE))
                for t in times:
                    if t < lengths[s]:
                        mine = step(given[t], mine, weights[way * layers + k])
                    made[t] = mine[0]
                given = made
                last[:, k, way, s] = mine
            out[s, :, way * SIZE : (way + 1) * SIZE] = given
    return out, *last.reshape(kinds, layers * ways, 3, SIZE)


def run(build, feed, steps=1):
    """The results of a program's last step with set parameters, and the parameters of each unit."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetched = build()
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        values = {}
        for k, p in enumerate(main.all_parameters()):
            values[p.name] = np.cos(0.7 * np.arange(np.prod(p.shape)) + k).reshape(p.shape).astype("float32")
            fluid.global_scope().find_var(p.name).get_tensor().set(values[p.name], fluid.CPUPlace())
        for _ in range(steps):
            got = exe.run(main, feed=feed, fetch_list=list(fetched))
    return got, values


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_layers_and_directions(unit, initial, lengths):
    kinds, each = (2, 2) if unit == "lstm" else (1, 4)

    def build():
        x = fluid.data("x", [-1, -1, 5])
        starts = [fluid.data(f"s{k}", [4, -1, SIZE]) if initial else None for k in range(kinds)]
        options = {"sequence_length": fluid.data("n", [-1], "int32") if lengths else None, "num_layers": 2}
        layer = basic_lstm if unit == "lstm" else basic_gru
        more = {"forget_bias": 0.5} if unit == "lstm" else {}
        return layer(x, *starts, SIZE, bidirectional=True, **options, **more)

    feed = {"x": X}
    feed.update({"n": LENGTHS} if lengths else {})
    starts = [STATE + k if initial else np.zeros_like(STATE) for k in range(kinds)]
    feed.update({f"s{k}": start for k, start in enumerate(starts)} if initial else {})
    got, values = run(build, feed)
    flat = list(values.values())
    weights = [flat[k : k + each] for k in range(0, len(flat), each)]
    step = lstm_step if unit == "lstm" else gru_step
    want = expected(step, weights, starts, LENGTHS if lengths else [4, 4, 4], 2)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_training_is_that_of_fluid():
    def build():
        x, n = fluid.data("x", [-1, 4, 5]), fluid.data("n", [-1], "int32")
        out, _, cell = basic_lstm(x, None, None, SIZE, num_layers=2, sequence_length=n, bidirectional=True)
        gru, _ = basic_gru(x, None, SIZE, sequence_length=n, batch_first=True)
        loss = sum(fluid.layers.mean(fluid.layers.square(v)) for v in (out, cell, gru))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return [loss]

    for steps, loss in RECORDED.items():
        np.testing.assert_allclose(run(build, {"x": X, "n": LENGTHS}, steps)[0][0], [loss], rtol=1e-5)


def test_names_of_parameters():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [-1, 4, 5])
        basic_lstm(x, None, None, 3, bidirectional=True, param_attr=fluid.ParamAttr("p"), name="both")
        basic_gru(x, None, 3, bias_attr=fluid.ParamAttr("b"))
    assert [p.name for p in main.all_parameters()] == [
        *("p_fw_w_0", "both_layers_0/BasicLSTMUnit_0.b_0", "p_bw_w_0", "p"),
        *("basic_gru_layers_0/BasicGRUUnit_0.w_0", "basic_gru_layers_0/BasicGRUUnit_0.w_1"),
        *("b_fw_b_0_gate", "b_fw_b_0_candidate"),
    ]


def test_backward_biases_without_a_name_are_made_after_the_weights_attribute():
    def starts(cells, bias_attr):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [-1, 4, 5])
            attr = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.3))
            cells(
                x,
                *[None] * (1 + (cells is basic_lstm)),
                3,
                bidirectional=True,
                param_attr=attr,
                bias_attr=bias_attr,
            )
        with fluid.scope_guard(fluid.Scope()):
            fluid.Executor(fluid.CPUPlace()).run(startup)
            biases = [p.name for p in main.all_parameters() if len(p.shape) == 1]
            return [float(np.array(fluid.global_scope().find_var(name).get_tensor())[0]) for name in biases]

    named, plain = (
        fluid.ParamAttr(name, initializer=fluid.initializer.Constant(0.5)) for name in ("bias", None)
    )
    np.testing.assert_allclose(starts(basic_lstm, None), [0, 0.3])
    np.testing.assert_allclose(starts(basic_lstm, plain), [0.5, 0.3])
    np.testing.assert_allclose(starts(basic_lstm, named), [0.5, 0.5])
    np.testing.assert_allclose(starts(basic_gru, plain), [0.5] * 4)


def test_dropout_is_for_training():
    def build():
        x = fluid.data("x", [-1, 4, 5])
        outs = [
            basic_gru(x, None, SIZE, dropout_prob=p, param_attr=fluid.ParamAttr("p"))[0] for p in (0.0, 0.5)
        ]
        return [*outs, fluid.default_main_program().clone(for_test=True)]

    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        plain, dropped, test = build()
        startup = fluid.default_startup_program()
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        plain_values, training = exe.run(main, feed={"x": X}, fetch_list=[plain, dropped])
        testing = exe.run(test, feed={"x": X}, fetch_list=[dropped])[0]
    kept = training != 0
    assert 0 < kept.sum() < kept.size
    np.testing.assert_allclose(training[kept], 2 * plain_values[kept], rtol=1e-5)
    np.testing.assert_allclose(testing, plain_values, rtol=1e-5)


def test_dygraph_mode_is_refused():
    with fluid.dygraph.guard(), pytest.raises(AssertionError, match="basic_gru is a layer of programs only"):
        basic_gru(fluid.dygraph.to_variable(X), None, SIZE)
