"""ModelAverage and ExponentialMovingAverage: names, windows, and numbers against recordings of Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.ops.registry import find

L, opt = fluid.layers, fluid.optimizer


pytestmark = pytest.mark.usefixtures("alone")


def network(**options):
    """A weight `w` of halves, trained by the mean of x @ w; and what runs its step k."""
    x = fluid.data("x", [None, 2])
    start = fluid.initializer.Constant(0.5)
    attr = fluid.ParamAttr(name="w", initializer=start, **options)
    loss = L.mean(L.fc(x, 2, bias_attr=False, param_attr=attr))
    opt.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())

    def step(k):
        exe.run(fluid.default_main_program(), feed={"x": np.full((2, 2), k + 1, "float32")})

    return exe, step


def value(name="w"):
    found = np.array(fluid.global_scope().find_var(name).get_tensor())
    assert np.all(found == found.ravel()[0])
    return float(found.ravel()[0])


# After each of five steps on Paddle 1.8.5: w, its average before and inside `apply`, and the decay.
STEADY = [
    (0.45, 0.315, 0.45, 0.3), (0.35, 0.38, 0.41758242, 0.3), (0.2, 0.2652747, 0.27263588, 0.3),
    (0.0, 0.08179076, 0.08245867, 0.3), (-0.25, -0.15026239, -0.15062842, 0.3),
]  # fmt: skip
SCHEDULED = [
    (0.45, 0.3681818, 0.45, 0.18181819), (0.35, 0.375, 0.4, 0.25), (0.2, 0.26, 0.2672148, 0.3),
    (0.0, 0.08016444, 0.08081907, 0.3), (-0.25, -0.15075427, -0.1511215, 0.3),
]  # fmt: skip


@pytest.mark.parametrize("scheduled", [False, True])
def test_exponential_average_is_that_of_paddle(scheduled, engine):
    exe, step = network()
    steps = L.cast(L.autoincreased_step_counter(), "float32") if scheduled else None
    ema = opt.ExponentialMovingAverage(0.3, thres_steps=steps)
    ema.update()
    exe.run(fluid.default_startup_program())
    with ema.apply(exe):
        assert value() == 0
    for k, recorded in enumerate(SCHEDULED if scheduled else STEADY):
        step(k)
        seen = [value(), value("w_ema_0")]
        with ema.apply(exe):
            seen.append(value())
        seen.append(value("scheduled_ema_decay_rate"))
        np.testing.assert_allclose(seen, recorded, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(value(), recorded[0], atol=1e-6)
    assert value("@EMA_STEP_COUNTER@") == 5


def test_a_test_program_counts_no_updates(engine):
    """In real Paddle its runs count, so that averages are divided by too much."""
    exe, step = network()
    ema = opt.ExponentialMovingAverage(0.3)
    ema.update()
    test = fluid.default_main_program().clone(for_test=True)
    assert not test.global_block().has_var("@EMA_STEP_COUNTER@")
    exe.run(fluid.default_startup_program())
    for k, recorded in enumerate(STEADY):
        step(k)
        exe.run(test, feed={"x": np.ones((2, 2), "float32")})
        with ema.apply(exe):
            np.testing.assert_allclose(value(), recorded[2], rtol=1e-5, atol=1e-6)


def test_averages_stay_until_they_are_restored(engine):
    exe, step = network()
    ema = opt.ExponentialMovingAverage(0.3, name="own_")
    ema.update()
    exe.run(fluid.default_startup_program())
    step(0)
    trained = value()
    with ema.apply(exe, need_restore=False):
        pass
    assert value() == value("own_w_ema_0") != trained
    ema.restore(exe)
    assert value() == trained


def test_an_error_inside_restores(engine):
    exe, step = network()
    ema = opt.ExponentialMovingAverage(0.3)
    ema.update()
    exe.run(fluid.default_startup_program())
    for k in range(2):
        step(k)
    trained = value()
    with pytest.raises(KeyError), ema.apply(exe):
        assert value() != trained
        raise KeyError
    assert value() == trained


def test_integer_steps_change_nothing_and_say_so(engine):
    network()
    with pytest.warns(UserWarning, match="thres_steps '@STEP_COUNTER@' has no effect"):
        opt.ExponentialMovingAverage(0.3, thres_steps=L.autoincreased_step_counter())


@pytest.mark.parametrize("average", [opt.ModelAverage, opt.ExponentialMovingAverage])
def test_parameters_may_stay_out(average, engine):
    network(do_model_average=False)
    made = average(0.3)
    assert not made.apply_program.global_block().all_parameters()
    assert "w_sum_1_0" not in fluid.default_main_program().global_block().vars


def test_model_average_is_the_mean_of_the_window(engine):
    exe, step = network()
    average = opt.ModelAverage(0.5, min_average_window=2, max_average_window=3)
    exe.run(fluid.default_startup_program())
    weights, seen = [], []
    for k in range(7):
        step(k)
        weights.append(value())
        with average.apply(exe):
            seen.append(value())
        assert value() == weights[-1]
    # Windows end after steps 2, 4 and 7: an average reaches back to the beginning of the last full one.
    begins = [0, 0, 0, 2, 2, 2, 4]
    want = [np.mean(weights[begin : k + 1]) for k, begin in enumerate(begins)]
    np.testing.assert_allclose(seen, want, rtol=1e-5, atol=1e-6)


def test_model_average_names_its_sums(programs):
    network()
    opt.ModelAverage(0.5)
    main = fluid.default_main_program().global_block()
    op = main.ops[-1]
    assert op.type == "average_accumulates" and op.attr("op_role_var") == ["w", "w.tmp_0"]
    assert sorted(name for name in main.vars if name.startswith("w_")) == [
        "w_num_accumulates_0", "w_num_updates_0", "w_old_num_accumulates_0",
        "w_sum_1_0", "w_sum_2_0", "w_sum_3_0",
    ]  # fmt: skip


def test_long_windows_are_summed_in_parts():
    state = {f"in_sum_{k}": [np.zeros(1, "float32")] for k in (1, 2, 3)}
    counts = {"in_num_accumulates": 5, "in_old_num_accumulates": 0, "in_num_updates": 16383}
    state.update((name, [np.array([n])]) for name, n in counts.items())
    made = find("average_accumulates").call(
        np, {"param": [np.ones(1, "float32")], **state}, {"average_window": 1.0}
    )
    assert [float(part[0]) for part in made] == [0, 1, 0, 6, 0, 16384]


def test_the_operators_are_those_of_paddle():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        fluid.layers.fc(fluid.data("x", [2, 3]), 2, bias_attr=False)
        average = fluid.optimizer.ExponentialMovingAverage(0.9)
        average.update()
    types = [op.type for op in average.apply_program.global_block().ops]
    block = ["fill_constant", "greater_than", "logical_not", "conditional_block"]
    assert types == ["cast", "elementwise_pow", "assign", *block, "assign"]
    assert main.global_block().ops[2].output("Out") == ["tmp_4"]
