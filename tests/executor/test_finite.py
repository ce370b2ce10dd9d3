"""FLAGS_check_nan_inf: programs stop at the first result with NaN or infinities, of those that Paddle 1.8.5 checks."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base import flags
from fluidlite.base.errors import EnforceNotMet, EOFException
from fluidlite.executor.interpreter.interpreter import Interpreter

from ..engines import run_by
from ..refusals import refuses


@pytest.fixture(autouse=True)
def checking(monkeypatch):
    make = Interpreter.__init__

    def made(self, *args, **how):
        assert type(self) is not Interpreter, "the interpreter has run something"
        make(self, *args, **how)

    monkeypatch.setattr(Interpreter, "__init__", made)
    monkeypatch.setenv("FLAGS_check_nan_inf", "0")  # put back afterwards
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    yield
    flags.set_checks_finite(False)


def program(build, lod=False):
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = main.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = build(fluid.data("x", [None, 3], "float32", lod_level=int(lod)))
    return main, startup, out


def run(main, out, x, scope=None, lengths=None):
    exe = fluid.Executor(fluid.CPUPlace())
    x = np.array(x, "float32")
    fed = x if lengths is None else fluid.create_lod_tensor(x, [lengths], fluid.CPUPlace())
    with fluid.scope_guard(scope or fluid.Scope()):
        return np.array(exe.run(main, feed={"x": fed}, fetch_list=[out], return_numpy=False)[0])


def first_values(startup):
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.Executor(fluid.CPUPlace()).run(startup)
    return scope


def held(scope, name):
    return np.array(scope.find_var(name).get_tensor())


@pytest.mark.parametrize(
    "build, x, where",
    [
        (layers.log, [[-1, 2, 3]],
         r"\[op=log\] \[tensor=log_0.tmp_0\] find nan or inf: of 3 elements 1 are NaN"),
        (layers.log, [[0, 2, 0]], r"\[op=log\] .* 0 are NaN and 2 infinite"),
        (lambda x: layers.mean(layers.scale(x, 2.0)), [[np.nan, 2, 3]],
         r"\[op=scale\] \[tensor=scale_0.tmp_0\]"),
        (lambda x: layers.reshape(x, [3]), [[1, np.inf, 3]],
         r"\[op=reshape2\] \[tensor=reshape2_0.tmp_0\]"),
        (lambda x: x / x, [[1, 0, 3]], r"\[op=elementwise_div\]"),
    ],
)  # fmt: skip
def test_the_operator_and_its_variable_are_named(build, x, where):
    main, _, out = program(build)
    refuses(lambda: run(main, out, x), EnforceNotMet, where)


def test_the_flag_applies_to_planned_programs_from_then_on():
    main, _, out = program(layers.log)
    scope = fluid.Scope()
    fluid.set_flags({"FLAGS_check_nan_inf": False})
    for _ in range(3):
        assert np.isnan(run(main, out, [[-1, 1, 1]], scope)).tolist() == [[True, False, False]]
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    np.testing.assert_array_equal(run(main, out, [[1, 1, 1]], scope), [[0, 0, 0]])
    refuses(lambda: run(main, out, [[-1, 1, 1]], scope), EnforceNotMet, "op=log")


def test_integers_feeds_and_arrays_are_not_checked():
    def build(x):
        first = layers.fill_constant([1], "int64", 0)
        return layers.isfinite(layers.array_read(layers.array_write(x, first), first))

    main, _, out = program(build)
    assert run(main, out, [[np.inf, 1, 1]]).tolist() == [False]


def test_a_parameter_that_its_update_spoils_can_be_read_and_no_more_are_updated():
    def build(x):
        loss = layers.mean(layers.fc(x, 1, bias_attr="b", param_attr="w"))
        fluid.optimizer.SGD(1e38).minimize(loss)
        return loss

    main, startup, loss = program(build)
    order = [op.outputs["ParamOut"][0] for op in main.global_block().ops if op.type == "sgd"]
    scope = first_values(startup)
    before = {name: held(scope, name) for name in order}
    refuses(lambda: run(main, loss, [[1e20, 1, 1]], scope), EnforceNotMet, r"\[op=sgd\] \[tensor=w\]")
    assert np.isinf(held(scope, "w")[0, 0])
    for name in order[: order.index("w")]:
        assert (held(scope, name) != before[name]).all()
    for name in order[order.index("w") + 1 :]:
        np.testing.assert_array_equal(held(scope, name), before[name])


def test_what_comes_before_is_written_and_what_comes_after_is_not():
    def build(x):
        w = layers.create_parameter(
            [3], "float32", name="w", default_initializer=fluid.initializer.Constant(1.0)
        )
        layers.assign(w * 2.0, w)
        y = layers.log(x)
        layers.assign(w * 2.0, w)
        return y

    main, startup, out = program(build)
    scope = first_values(startup)
    run(main, out, [[1, 1, 1]], scope)
    refuses(lambda: run(main, out, [[-1, 1, 1]], scope), EnforceNotMet, r"\[op=log\]")
    assert held(scope, "w").tolist() == [8, 8, 8]


def test_one_plan_checks_all_batch_sizes():
    main, _, out = program(lambda x: layers.log(layers.relu(layers.scale(x, 2.0)) + 1.0))
    scope = fluid.Scope()
    for rows in (2, 5, 3, 40):
        run(main, out, np.ones((rows, 3)), scope)
    with pytest.raises(
        EnforceNotMet, match=r"\[op=scale\] \[tensor=scale_0.tmp_0\] .* of 18 elements 0 are NaN"
    ):
        run(main, out, np.full((6, 3), 3e38), scope)
    text = fluid.Executor(fluid.CPUPlace()).describe(main, scope)
    assert (
        text.count("instructions on the CPU") == 1
        and "interpreter" not in text
        and "run in segments" not in text
    )


def less(a, b):
    return layers.less_than(*(layers.fill_constant([1], "float32", n) for n in (a, b)))


def a_loop(x):
    turn, end = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    goes_on = layers.less_than(turn, end)
    with layers.While(goes_on).block():
        layers.assign(layers.elementwise_mul(x, x), x)
        layers.increment(turn)
        layers.less_than(turn, end, cond=goes_on)
    return x


def a_gradient_of_a_loop(x):
    x.stop_gradient = False
    turn, end = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    turn.stop_gradient = True
    _, y = layers.while_loop(
        lambda turn, y: turn < end, lambda turn, y: [turn + 1, layers.sqrt(y)], [turn, x]
    )
    return fluid.gradients(layers.reduce_sum(y), x)[0]


def nobody_reads(x):
    turn, end = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 2)
    goes_on = layers.less_than(turn, end)
    with layers.While(goes_on).block():
        layers.log(x)
        layers.increment(turn)
        layers.less_than(turn, end, cond=goes_on)
    return layers.isfinite(x)


def steps(x):
    rnn, steps = layers.StaticRNN(), layers.reshape(x, [3, 1, 1])
    with rnn.step():
        step = rnn.step_input(steps)
        state = rnn.memory(shape=[1, 1], batch_ref=step, init_value=1.0, ref_batch_dim_idx=0)
        new = layers.elementwise_mul(state, step)
        rnn.update_memory(state, new)
        rnn.step_output(layers.log(new))
    return rnn()


def words(x):
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        state = rnn.memory(shape=[3], value=1.0)
        new = layers.elementwise_mul(layers.elementwise_mul(state, word), word)
        rnn.update_memory(state, new)
        rnn.output(layers.log(new))
    return rnn()


def chosen_rows(x):
    branches = layers.IfElse(
        layers.less_than(layers.slice(x, [1], [0], [1]), layers.fill_constant([1], "float32", 0))
    )
    with branches.true_block():
        branches.output(layers.log(branches.input(x)))
    with branches.false_block():
        branches.output(branches.input(x))
    return branches()[0]


def a_rate(x):
    rate = layers.create_global_var([1], 1.0, "float32", persistable=True, name="rate")
    with layers.Switch() as switch:
        with switch.case(less(0, 1)):
            layers.assign(layers.log(layers.fill_constant([1], "float32", -2.0)), rate)
        with switch.default():
            layers.assign(layers.fill_constant([1], "float32", 2.0), rate)
    return rate


def rows_of_a_table(x):
    found = fluid.embedding(
        layers.cast(x, "int64"),
        [5, 2],
        is_sparse=True,
        param_attr=fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(0.0)),
    )
    loss = layers.reduce_sum(layers.sqrt(found))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def a_table_of_large_steps(x):
    loss = layers.reduce_sum(
        fluid.embedding(layers.cast(x, "int64"), [5, 2], is_sparse=True, param_attr="table")
    )
    return fluid.optimizer.SGD(3e38).minimize(layers.scale(loss, 10.0)) and loss


def found_rows(x):
    rows = layers.gather_nd(x, layers.where(x > 0.0))
    return layers.log(rows - 1.0)


# What Paddle 1.8.5 says of the same programs; `None`: nothing.
NAMED = [
    (a_loop, [[1, 1e15, 1]], "elementwise_mul", "elementwise_mul_0.tmp_0"),
    (a_gradient_of_a_loop, [[0, 1, 2]], "sqrt_grad", "x@GRAD"),
    (nobody_reads, [[-1, 1, 1]], "log", "log_0.tmp_0"),
    (steps, [[1, -1, 2]], "log", "log_0.tmp_0"),
    (words, [[1, 1, 1], [1e30, 1, 1], [-1, 1, 1]], "elementwise_mul", "elementwise_mul_1.tmp_0"),
    (chosen_rows, [[-1, 1, 2], [1, 1, 1]], "log", "log_0.tmp_0"),
    (chosen_rows, [[1, 1, 2], [1, 1, 1]], None, None),
    (a_rate, [[1, 1, 1]], "log", "log_0.tmp_0"),
    (rows_of_a_table, [[1, 1, 2]], "sqrt_grad", "embedding_0.tmp_0@GRAD"),
    (a_table_of_large_steps, [[1, 1, 2]], "sgd", "table"),
    (found_rows, [[1, 2, 3]], "log", "log_0.tmp_0"),
    (lambda x: layers.cond(less(0, 1), lambda: x, lambda: x * 0.0), [[np.inf, 1, 1]], "assign",
     "_generated_var_0"),
    (lambda x: layers.cond(less(0, 1), lambda: x * 1.0,
     lambda: layers.log(layers.fill_constant([1, 3], "float32", -1.0))), [[1, 1, 1]], None, None),
    (lambda x: layers.batch_norm(x, moving_mean_name="mean", moving_variance_name="variance"),
     [[1, np.inf, 2], [1, 1, 1]], "batch_norm", "mean"),
    (lambda x: layers.isfinite(layers.cast(layers.cast(x, "float16"), "float32")), [[1e30, 1, 2]], "cast",
     "cast_0.tmp_0"),
    (lambda x: layers.assign(np.array([np.inf], "float32")), [[1, 1, 1]], "assign_value", "assign_0.tmp_0"),
    (lambda x: layers.isfinite(layers.Print(x)), [[1, np.inf, 2]], None, None),
]  # fmt: skip


@pytest.mark.parametrize("build, x, operator, variable", NAMED)
def test_the_first_operator_is_named_in_any_block(build, x, operator, variable):
    main, startup, out = program(build, lod=build is words)
    scope, lengths = first_values(startup), [1, 2] if build is words else None
    for _ in range(1 if build is a_table_of_large_steps else 2):
        if operator is None:
            run(main, out, x, scope, lengths)
        else:
            with pytest.raises(
                EnforceNotMet, match=rf"\[op={operator}\] \[tensor={variable}\] .*test_finite.py:"
            ):
                run(main, out, x, scope, lengths)
    assert "interpreter" not in fluid.Executor(fluid.CPUPlace()).describe(main, scope)


def test_the_interpreter_names_the_same(monkeypatch):
    monkeypatch.undo()
    with run_by("interpret"):
        for build, x, operator, variable in NAMED:
            main, startup, out = program(build, lod=build is words)
            scope = first_values(startup)
            if operator is None:
                run(main, out, x, scope)
            else:
                with pytest.raises(EnforceNotMet, match=rf"\[op={operator}\] \[tensor={variable}\]"):
                    run(main, out, x, scope, [1, 2] if build is words else None)


def test_plans_with_loops_and_branches_have_checks():
    for build in (a_loop, a_gradient_of_a_loop, nobody_reads):
        main, _, out = program(build)
        scope = fluid.Scope()
        run(main, out, [[1, 1, 1]], scope)
        text = fluid.Executor(fluid.CPUPlace()).describe(main, scope)
        assert "  loop(" in text and "  check_finite(" in text and "run in segments" not in text


def test_initial_values_are_checked_in_order():
    def build(x):
        for name, value in (("a", 1.0), ("b", float("nan")), ("c", 1.0)):
            layers.create_global_var([2], value, "float32", name=name, persistable=True)
        return x

    _, startup, _ = program(build)
    scope = fluid.Scope()
    with pytest.raises(EnforceNotMet, match=r"\[op=fill_constant\] \[tensor=b\]"), fluid.scope_guard(scope):
        fluid.Executor(fluid.CPUPlace()).run(startup)
    assert held(scope, "c").tolist() == [1, 1]  # each comes in front of those that were there
    assert not scope.find_var("a").get_tensor()._is_initialized()


def test_predictors_single_operators_and_what_comes_before_reading(tmp_path):
    main, startup, out = program(layers.log)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe, main)
    predictor = fluid.core.create_paddle_predictor(fluid.core.AnalysisConfig(str(tmp_path)))
    given = fluid.core.PaddleTensor(np.array([[-1, 1, 1]], "float32"))
    refuses(lambda: predictor.run([given]), EnforceNotMet, r"\[op=log\]")

    scope = fluid.Scope()
    scope.var("x").get_tensor().set(np.array([-1], "float32"), fluid.CPUPlace())
    scope.var("y")
    with pytest.raises(EnforceNotMet, match=r"\[op=log\]"):
        fluid.op.Operator("log", X="x", Out="y").run(scope, fluid.CPUPlace())

    def counting(x):
        count = layers.autoincreased_step_counter()
        reader = fluid.io.PyReader(feed_list=[x], capacity=2, iterable=False)
        reader.decorate_batch_generator(lambda: iter([[np.ones((1, 3), "float32")]]))
        return reader, [count, layers.scale(x, 2.0)]

    main, startup, (reader, fetches) = program(counting)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        reader.start()
        exe.run(main, fetch_list=fetches)
        refuses(lambda: exe.run(main, fetch_list=fetches), (EOFException, fluid.core.EOFException))


def test_data_parallel_programs_are_looked_at():
    main, _, out = program(lambda x: layers.mean(layers.log(x)))
    compiled = fluid.CompiledProgram(main).with_data_parallel(
        loss_name=out.name, places=[fluid.CPUPlace()] * 2
    )
    refuses(lambda: run(compiled, out, [[1, 1, 1], [-1, 1, 1]]), EnforceNotMet, r"\[op=log\]")


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


def test_functions_of_dygraph_that_became_programs_are_checked():
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
