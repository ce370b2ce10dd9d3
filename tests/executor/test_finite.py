"""FLAGS_check_nan_inf: programs stop at the first result with NaN or infinities; what Paddle 1.8.5 looks at is too."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base import flags
from fluidlite.base.errors import EnforceNotMet


@pytest.fixture(autouse=True)
def checking(monkeypatch):
    monkeypatch.setenv("FLAGS_check_nan_inf", "0")  # put back afterwards
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    yield
    flags.set_checks_finite(False)


def program(build, shape=(-1, 3)):
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = main.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = build(fluid.data("x", list(shape), "float32"))
    return main, startup, out


def run(main, out, x, scope=None):
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(scope or fluid.Scope()):
        return exe.run(main, feed={"x": np.array(x, "float32")}, fetch_list=[out])[0]


@pytest.mark.parametrize(
    "build, x, where",
    [
        (
            layers.log,
            [[-1, 2, 3]],
            r"\[op=log\] \[tensor=log_0.tmp_0\] find nan or inf: of 3 elements 1 are NaN",
        ),
        (layers.log, [[0, 2, 0]], r"\[op=log\] .* 0 are NaN and 2 infinite"),
        (
            lambda x: layers.mean(layers.scale(x, 2.0)),
            [[np.nan, 2, 3]],
            r"\[op=scale\] \[tensor=scale_0.tmp_0\]",
        ),
        (lambda x: layers.reshape(x, [3]), [[1, np.inf, 3]], r"\[op=reshape2\] \[tensor=reshape2_0.tmp_0\]"),
        (lambda x: x / x, [[1, 0, 3]], r"\[op=elementwise_div\]"),
    ],
)
def test_the_operator_and_its_variable_are_named(build, x, where):
    main, _, out = program(build)
    with pytest.raises(EnforceNotMet, match=where):
        run(main, out, x)


def test_steps_that_were_planned_are_looked_at_from_then_on():
    main, _, out = program(layers.log)
    scope = fluid.Scope()
    fluid.set_flags({"FLAGS_check_nan_inf": False})
    for _ in range(3):
        assert np.isnan(run(main, out, [[-1, 1, 1]], scope)).tolist() == [[True, False, False]]
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    np.testing.assert_array_equal(run(main, out, [[1, 1, 1]], scope), [[0, 0, 0]])
    with pytest.raises(EnforceNotMet, match="op=log"):
        run(main, out, [[-1, 1, 1]], scope)


def test_integers_feeds_and_arrays_are_not_looked_at():
    def build(x):
        layers.array_write(x, layers.fill_constant([1], "int64", 0))
        return layers.isfinite(x)

    main, _, out = program(build)
    assert run(main, out, [[np.inf, 1, 1]]).tolist() == [False]


def test_a_parameter_that_its_update_spoils_can_be_read():
    def build(x):
        loss = layers.mean(layers.fc(x, 1, bias_attr=False, param_attr="w"))
        fluid.optimizer.SGD(1e38).minimize(loss)
        return loss

    main, startup, loss = program(build)
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.Executor(fluid.CPUPlace()).run(startup)
    with pytest.raises(EnforceNotMet, match=r"\[op=sgd\] \[tensor=w\]"):
        run(main, loss, [[1e20, 1, 1]], scope)
    assert np.isinf(np.array(scope.find_var("w").get_tensor())[0, 0])


def test_operators_in_loops_and_startup_programs_are_looked_at():
    def build(x):
        turn, end = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
        goes_on = layers.less_than(turn, end)
        with layers.While(goes_on).block():
            layers.assign(layers.elementwise_mul(x, x), x)
            layers.increment(turn)
            layers.less_than(turn, end, cond=goes_on)
        return x

    main, _, out = program(build)
    with pytest.raises(EnforceNotMet, match=r"\[op=elementwise_mul\]"):
        run(main, out, [[1, 1e15, 1]])
    _, startup, _ = program(lambda x: layers.create_global_var([2], float("nan"), "float32", name="w"))
    with (
        pytest.raises(EnforceNotMet, match=r"\[op=fill_constant\] \[tensor=w\]"),
        fluid.scope_guard(fluid.Scope()),
    ):
        fluid.Executor(fluid.CPUPlace()).run(startup)


def test_data_parallel_programs_are_looked_at():
    main, _, out = program(lambda x: layers.mean(layers.log(x)))
    compiled = fluid.CompiledProgram(main).with_data_parallel(
        loss_name=out.name, places=[fluid.CPUPlace()] * 2
    )
    with pytest.raises(EnforceNotMet, match=r"\[op=log\]"):
        run(compiled, out, [[1, 1, 1], [-1, 1, 1]])


def test_sound_training_is_what_it_is_without():
    def build(x):
        hidden = layers.dropout(layers.fc(x, 8), 0.3)
        loss = layers.mean(layers.batch_norm(hidden) * hidden)
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss

    def losses(on):
        fluid.set_flags({"FLAGS_check_nan_inf": on})
        main, startup, loss = program(build)
        scope = fluid.Scope()
        with fluid.scope_guard(scope):
            fluid.Executor(fluid.CPUPlace()).run(startup)
        x = np.random.default_rng(0).normal(size=(4, 3))
        return [run(main, loss, x, scope).item() for _ in range(3)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=2e-5)


def test_eager_tensors_are_not_looked_at():
    with fluid.dygraph.guard():
        assert np.isnan(layers.log(fluid.dygraph.to_variable(np.array([-1.0], "float32"))).numpy()).all()


def test_functions_of_dygraph_that_became_programs_are_looked_at():
    @fluid.dygraph.declarative
    def slope(x):
        return layers.sqrt(x)

    with fluid.dygraph.guard():
        for values, refused in (([4.0], False), ([0.0], True)):
            x = fluid.dygraph.to_variable(np.array(values, "float32"))
            x.stop_gradient = False
            y = slope(x)
            if refused:
                with pytest.raises(EnforceNotMet, match=r"\[op=sqrt_grad\]"):
                    y.backward()
            else:
                y.backward()
                np.testing.assert_allclose(x.gradient(), [0.25])
        with pytest.raises(EnforceNotMet, match=r"\[op=sqrt\]"):
            slope(fluid.dygraph.to_variable(np.array([-1.0], "float32")))
