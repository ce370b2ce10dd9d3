"""Scans of sequences and loops lowered to scans: values and gradients, compiled against interpreted."""

import functools
import os
import signal
import threading

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import WIDTH, check, data, fc, number, numbers, ragged, repeated

layers = fluid.layers


pytestmark = pytest.mark.filterwarnings("ignore")

# Networks over sequences: words [rows, 3], still [sequences, 4].


def dynamic(step):
    """A DynamicRNN whose block is `step(rnn, words, still)`."""

    def build(words, still):
        rnn = layers.DynamicRNN()
        also = layers.scale(words, -1.0)
        with rnn.block():
            step(rnn, words, still, also)
        outs = rnn()
        return outs if isinstance(outs, list) else [outs]

    build.__name__ = step.__name__
    return build


@dynamic
def from_zero(rnn, words, still, also):
    word, state = rnn.step_input(words), rnn.memory(shape=[4], value=0.0)
    new = fc([word, state], 4, "zero")
    rnn.update_memory(state, new)
    rnn.output(new)


@dynamic
def from_start(rnn, words, still, also):
    word = rnn.step_input(words)
    state, other = rnn.memory(init=still, need_reorder=True), rnn.memory(shape=[4], value=0.5)
    new = fc([word, state, other], 4, "start")
    rnn.update_memory(state, new)
    rnn.update_memory(other, layers.sigmoid(state) * new)
    rnn.output(new, other)


@dynamic
def with_still(rnn, words, still, also):
    word, other = rnn.step_input(words), rnn.step_input(also)
    fixed = rnn.static_input(still)
    state = rnn.memory(shape=[4], value=0.0)
    new = fc([word, state], 4, "with") * layers.sigmoid(fixed) + fc(other, 4, "also")
    rnn.update_memory(state, new)
    rnn.output(new)


@dynamic
def last_ones(rnn, words, still, also):
    """Iterations read loop-carried variables only."""
    word, state = rnn.step_input(words), rnn.memory(shape=[3], value=1.0)
    rnn.update_memory(state, word)
    rnn.output(layers.elementwise_mul(state, word))


@dynamic
def chosen(rnn, words, still, also):
    """Steps that decide; fewer rows each time."""
    word, state = rnn.step_input(words), rnn.memory(shape=[4], value=0.1)
    zero = layers.fill_constant([1], "float32", 0.0)
    less = layers.less_than(layers.reshape(layers.reduce_sum(word), [1]), zero)
    new = layers.cond(
        less, lambda: fc([word, state], 4, "less"), lambda: layers.tanh(fc(word, 4, "more") - state)
    )
    rnn.update_memory(state, new)
    rnn.output(new)


@dynamic
def by_reference_kernels(rnn, words, still, also):
    """A step with an operator that has no native kernel."""
    word, state = rnn.step_input(words), rnn.memory(shape=[4], value=0.0)
    new = layers.cumsum(fc([word, state], 4, "sums"), axis=1)
    rnn.update_memory(state, layers.tanh(new))
    rnn.output(new)


DYNAMIC = [chosen, by_reference_kernels, from_zero, from_start, with_still, last_ones]


@pytest.mark.parametrize("build", DYNAMIC)
def test_sequences(build):
    random = np.random.default_rng(0)
    feeds = [
        {"words": ragged(random, lengths), "still": numbers(random, len(lengths), 4)}
        for lengths in ([2, 4, 1], [3], [1, 1], [5, 5, 5], [1, 7, 2, 2, 6], [1], [2, 0, 3])
    ]
    sources = [data("words", [None, WIDTH], lod_level=1), data("still", [None, 4])]
    text = check(build, sources, feeds)
    assert "body of" in text
    assert "run in segments" not in text
    # Some memories begin with a row for each sequence, others with one for each that has a step.
    assert text.count("CPU for words[") == 3 + (build is from_start)


def state_and_array(words, trips):
    """A state that is overwritten, and the array of its values, some of which are read."""
    state, made = layers.scale(words, 1.0), layers.create_array("float32")
    weight = layers.create_parameter([WIDTH, WIDTH], "float32", "weight")

    def body(i):
        layers.assign(layers.tanh(layers.matmul(state, weight) + words), state)
        layers.array_write(state, i, made)

    repeated(trips, body)
    last = layers.array_read(made, layers.increment(trips, -1, in_place=False))
    return [state, last * 0.5, layers.array_read(made, number(0))]


def through_an_array(words, trips):
    """A state in an array, and inputs from another one, which are also read outside."""
    states, inputs = layers.array_write(words, number(0)), layers.array_write(words * 0.5, number(0))
    for place in range(1, 6):
        layers.array_write(layers.scale(words, 0.1 * place), number(place), inputs)

    def body(i):
        state = layers.array_read(states, i)
        new = fc([state, layers.array_read(inputs, i)], WIDTH, "array")
        layers.array_write(new, layers.increment(i, 1, in_place=False), states)

    repeated(trips, body)
    return [layers.array_read(states, trips), layers.array_read(inputs, number(3)), words]


def counters_that_count(words, trips):
    """Values computed from the counter: the loop is not a counted one, but its gradient has no counter."""
    state = layers.scale(words, 1.0)
    repeated(trips, lambda i: layers.assign(layers.tanh(state) * layers.cast(i, "float32") + words, state))
    return [state]


def replaced_only(words, trips):
    """Variables that are overwritten before they are read, and persistable ones."""
    state, last = layers.scale(words, 1.0), layers.scale(words, 2.0)
    total = layers.create_global_var([1], 0.0, "float32", persistable=True, name="total")

    def body(i):
        layers.assign(layers.sin(state), last)
        layers.assign(layers.cos(state) * 0.9, state)
        layers.increment(total)

    repeated(trips, body)
    return [state, last]


@pytest.mark.parametrize("build", [state_and_array, through_an_array, counters_that_count, replaced_only])
def test_loops_that_count(build):
    random = np.random.default_rng(0)
    feeds = [
        {"words": numbers(random, rows, WIDTH), "trips": np.array([trips])}
        for rows, trips in [(2, 3), (4, 1), (1, 5), (1, 1)]
    ]
    text = check(build, [data("words", [None, WIDTH]), lambda: fluid.data("trips", [1], "int64")], feeds)
    assert text.count(" loop(") >= 2 and "run in segments" not in text


def test_dropout_differs_between_iterations_and_its_gradient_agrees():
    main = fluid.default_main_program()
    main.random_seed = 0  # with a seed, masks are alike
    x = data("x", [None, None, 40])()
    rnn = layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        state = rnn.memory(shape=[-1, 40], batch_ref=word)
        dropped = layers.dropout(word, 0.5)
        rnn.update_memory(state, layers.elementwise_add(state, dropped))
        rnn.step_output(dropped)
    out = rnn()
    (gradient,) = fluid.gradients(layers.reduce_sum(out), x)
    exe = fluid.Executor(fluid.CPUPlace())
    for _ in range(3):
        made, slope = exe.run(main, {"x": np.ones((4, 3, 40), "float32")}, [out, gradient])
        np.testing.assert_array_equal(made, slope)  # of ones
        assert len({step.tobytes() for step in made}) == 4 and 0.2 < made.mean() < 0.8
    assert "body of" in exe.describe(main)


def two_inputs(words, others):
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, other = rnn.step_input(words), rnn.step_input(others)
        state = rnn.memory(shape=[4], value=0.0)
        new = fc([word, other, state], 4, "both")
        rnn.update_memory(state, new)
        rnn.output(new)
    return [rnn()]


def test_inputs_that_are_fed_each_with_its_own_sequences():
    fed = functools.partial(ragged, np.random.default_rng(2))
    sources = [data("words", [None, WIDTH], lod_level=1), data("others", [None, WIDTH], lod_level=1)]
    same = [{"words": fed(lengths), "others": fed(lengths)} for lengths in ([2, 3], [3, 1, 2], [2, 3])]
    text = check(two_inputs, sources, same)
    assert "run in segments" not in text and "body of" in text
    longer = [{"words": fed([2, 3]), "others": fed([3, 3])}, {"words": fed([2, 2]), "others": fed([4, 2])}]
    check(two_inputs, sources, [*same, *longer, *same])


def test_inputs_with_other_numbers_of_steps():
    """Equally many rows in total, but not per step."""
    main = fluid.default_main_program()
    x, y = (fluid.data(name, [None, None, WIDTH]) for name in "xy")
    rnn = layers.StaticRNN()
    with rnn.step():
        word, other = rnn.step_input(x), rnn.step_input(y)
        state = rnn.memory(shape=[-1, WIDTH], batch_ref=word)
        new = word * other + state
        rnn.update_memory(state, new)
        rnn.step_output(new)
    out = rnn()
    exe, random = fluid.Executor(fluid.CPUPlace()), np.random.default_rng(3)
    for shapes in [(3, 2), (3, 2)], [(3, 2), (2, 3)], [(4, 2), (4, 2)]:
        feed = {name: numbers(random, *shape, WIDTH) for name, shape in zip("xy", shapes, strict=True)}
        if shapes[0] == shapes[1]:
            (found,) = exe.run(main, feed, [out])
            np.testing.assert_allclose(found, np.cumsum(feed["x"] * feed["y"], axis=0), rtol=1e-4, atol=1e-6)
        else:
            with pytest.raises(fluid.core.EnforceNotMet, match="equally many steps"):
                exe.run(main, feed, [out])
    assert "body of" in exe.describe(main)


def looked_up_in_steps(size=4):
    """A DynamicRNN with an embedding in its block; its results and gradients."""
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(words), rnn.memory(shape=[size], value=0.0)
        new = layers.elementwise_add(layers.embedding(word, [5, size], param_attr="table"), state)
        rnn.update_memory(state, new)
        rnn.output(new)
    out = rnn()
    fluid.backward.append_backward(layers.reduce_sum(layers.sequence_last_step(out)))
    return out


def test_errors_in_an_iteration_of_a_plan_name_the_operator():
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    out = looked_up_in_steps()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)

    def run(*words):
        fed = fluid.create_lod_tensor(np.array(words)[:, None], [[2, 3]], fluid.CPUPlace())
        wanted = [out, "table@GRAD"]
        return [
            np.array(each) for each in exe.run(main, {"words": fed}, wanted, scope=scope, return_numpy=False)
        ]

    run(1, 4, 0, 2, 2)
    with pytest.raises(fluid.core.EnforceNotMet, match=r"lookup_table.* 7 [\s\S]*test_scans.py"):
        run(1, 4, 0, 2, 7)
    made, gradient = run(1, 4, 0, 2, 2)
    table = np.array(scope.find_var("table").get_tensor())
    expected = np.concatenate([np.cumsum(table[[1, 4]], axis=0), np.cumsum(table[[0, 2, 2]], axis=0)])
    np.testing.assert_allclose(made, expected, rtol=1e-6)
    np.testing.assert_array_equal(gradient, np.array([[1], [1], [2], [0], [1]]) * np.ones((5, 4)))
    assert "run in segments" not in exe.describe(main, scope)


def test_ctrl_c_ends_a_loop_in_a_plan():
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    out = looked_up_in_steps(1)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)

    def run(count):
        words = fluid.create_lod_tensor(np.ones((count, 1), "int64"), [[count - 1, 1]], fluid.CPUPlace())
        return exe.run(main, {"words": words}, [layers_sum], scope=scope)[0]

    with fluid.program_guard(main):
        layers_sum = layers.reduce_sum(layers.sequence_last_step(out))
    expected = run(4)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            run(1_000_000)
    np.testing.assert_array_equal(run(4), expected)
    assert "run in segments" not in exe.describe(main, scope)


def test_a_profile_has_each_operator_of_a_scan(tmp_path, capsys):
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    out = looked_up_in_steps()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    fed = fluid.create_lod_tensor(np.ones((5, 1), "int64"), [[2, 3]], fluid.CPUPlace())
    run = functools.partial(exe.run, main, {"words": fed}, [out], scope=scope, return_numpy=False)
    expected = [run() for _ in range(3)][-1]
    with fluid.profiler.profiler("CPU", "total", str(tmp_path / "trace")):
        found = run()
    np.testing.assert_array_equal(np.array(found[0]), np.array(expected[0]))
    assert "lookup_table" in capsys.readouterr().out
    assert len(exe.describe(main, scope).split("CPU for words[")) == 2


def test_states_without_gradient_take_no_memory():
    import tracemalloc

    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        state, trips = fluid.data("state", [100, 100]), fluid.data("trips", [1], "int64")
        means = layers.create_array("float32")

        def body(i):
            layers.assign(layers.scale(state, 0.5, 1.0), state)
            layers.array_write(layers.reduce_mean(state), i, means)

        repeated(trips, body)
        last = layers.array_read(means, number(999))
    exe = fluid.Executor(fluid.CPUPlace())
    feed = {"state": np.zeros((100, 100), "float32"), "trips": np.array([1000])}
    exe.run(main, feed, [last])
    tracemalloc.start()
    try:
        (found,) = exe.run(main, feed, [last, state])[:1]
        assert tracemalloc.get_traced_memory()[1] < 40_000 * 50
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found, 2.0, rtol=1e-6)
    assert " loop(" in exe.describe(main)


def test_printing_runs_iteration_by_iteration(capfd):
    @dynamic
    def printing(rnn, words, still, also):
        word, state = rnn.step_input(words), rnn.memory(shape=[4], value=0.0)
        new = layers.Print(fc([word, state], 4, "prints"))
        rnn.update_memory(state, new)
        rnn.output(new)

    random = np.random.default_rng(0)
    feeds = [{"words": ragged(random, [2, 3, 1]), "still": numbers(random, 3, 4)}] * 4
    text = check(printing, [data("words", [None, WIDTH], lod_level=1), data("still", [None, 4])], feeds)
    assert "its body has data-dependent sizes" in text
    assert "iteration by iteration" in text
    capfd.readouterr()
