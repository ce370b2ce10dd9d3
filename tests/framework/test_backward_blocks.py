"""Gradients of loops in whole programs: several passes, sparse tables, recomputation, devices, copies, files."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.framework import Program, program_guard
from fluidlite.framework.gradients.blocks import kept_names

EXE = fluid.Executor(fluid.CPUPlace())


def number(value):
    return layers.fill_constant([1], "int64", value)


def recurrence(x, n, step):
    """The states that `step` computes one from the other, in an array, and the last of them."""
    i = number(0)
    cond = layers.less_than(i, n)
    states = layers.array_write(x, i)
    loop = layers.While(cond)
    with loop.block():
        state = layers.array_read(states, i)
        made = step(state)
        layers.increment(i)
        layers.array_write(made, i, states)
        layers.less_than(i, n, cond=cond)
    return states, layers.array_read(states, i)


def network(optimizer=None, step=None):
    main, startup = Program(), Program()
    startup.random_seed = 7
    with program_guard(main, startup), fluid.unique_name.guard():
        x, n = fluid.data("x", [None, 3]), fluid.data("n", [1], "int64")
        step = step or (lambda state: layers.fc(state, 3, act="tanh", param_attr="w", bias_attr="b"))
        start = layers.fc(x, 3, param_attr="start")
        states, last = recurrence(start, n, step)
        loss = layers.mean(layers.square(last))
        if optimizer is not None:
            optimizer(loss, start)
    return main, startup, loss, last


def feed(iterations=3, rows=2):
    return {"x": np.linspace(-1, 1, rows * 3, dtype="float32").reshape(rows, 3), "n": np.array([iterations])}


def run(main, startup, fetch, steps=1, program=None, **kwargs):
    scope = fluid.Scope()
    EXE.run(startup, scope=scope)
    for _ in range(steps):
        found = EXE.run(program or main, feed=feed(**kwargs), fetch_list=fetch, scope=scope)
    return found


def test_two_passes_over_one_loop_give_the_same():
    main, startup, loss, last = network()
    w, start = main.global_block().var("w"), main.global_block().var("start")
    with program_guard(main, startup):
        first = fluid.gradients(loss, [w, start])
        second = fluid.gradients(loss, [w, start])
        third = fluid.gradients(loss, [w, start])
    found = run(main, startup, [*first, *second, *third])
    assert np.abs(found[0]).max() > 1e-3
    for k in (2, 3, 4, 5):
        # What all turns add up is one product where the engine takes them together, as in the first pass.
        np.testing.assert_allclose(found[k], found[k % 2], rtol=1e-6)


def test_only_values_that_the_gradient_reads_are_stashed():
    main, startup, loss, last = network()
    (loop,) = [op for op in main.global_block().ops if op.type == "while"]
    assert kept_names(loop) is None
    with program_guard(main, startup):
        fluid.gradients(loss, [main.global_block().var("w")])
    own = kept_names(loop) & set(main.block(1).vars)
    # The state that was read, what the bias was added to (for its shape), the result; not what goes into the tanh.
    assert own == {"array_read_0.tmp_0", "fc_1.tmp_0", "fc_1.tmp_2"}


def test_the_counter_is_where_it_was_after_the_backward_pass():
    main, startup, loss, last = network(lambda loss, start: fluid.optimizer.SGD(0.1).minimize(loss))
    (loop,) = [op for op in main.global_block().ops if op.type == "while"]
    counter = main.block(1).ops[-1].input("X")[0]
    assert run(main, startup, [counter])[0].tolist() == [0]
    names = [name for block in main.blocks for name in block.vars if "@KEPT@" in name]
    assert names == []


def test_copies_for_gradients_are_in_no_program_for_inference(programs, tmp_path):
    main, startup = programs
    x, n = fluid.data("x", [None, 3], "float32"), fluid.data("n", [1], "int64")

    def body(i, state):
        return [i + 1, layers.fc(state, 3, act="tanh", param_attr="w")]

    _, state = layers.while_loop(lambda i, _: layers.less_than(i, n), body, [number(0), x * 1.0])
    fluid.optimizer.SGD(0.1).minimize(layers.mean(state))
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        feed = {"x": np.ones((2, 3), "float32"), "n": np.array([3])}
        test = main.clone(for_test=True)
        expected = exe.run(test, feed, [state])[0]
        fluid.io.save_inference_model(str(tmp_path), ["x", "n"], [state], exe, main)
        saved, _, targets = fluid.io.load_inference_model(str(tmp_path), exe)
        np.testing.assert_array_equal(exe.run(saved, feed, targets)[0], expected)
    assert "@KEPT@" in str(main)
    assert "@KEPT@" not in str(test) + str(saved)


def test_a_sparse_table_looked_up_in_every_iteration():
    def build(sparse):
        main, startup = Program(), Program()
        startup.random_seed = 3
        with program_guard(main, startup), fluid.unique_name.guard():
            ids, n = fluid.data("ids", [None, 1], "int64"), fluid.data("n", [1], "int64")
            total = layers.fill_constant([1], "float32", 0.0)
            total.stop_gradient = False

            def body(i, total):
                rows = fluid.embedding(ids + i, [20, 4], is_sparse=sparse, param_attr="table")
                return [i + 1, total + layers.reduce_sum(layers.square(rows))]

            _, total = layers.while_loop(lambda i, t: layers.less_than(i, n), body, [number(0), total])
            fluid.optimizer.SGD(0.1).minimize(layers.mean(total))
        scope = fluid.Scope()
        EXE.run(startup, scope=scope)
        for iterations in (2, 3):
            given = {"ids": np.array([[1], [5]]), "n": np.array([iterations])}
            EXE.run(main, feed=given, fetch_list=[], scope=scope)
        return np.array(scope.find_var("table").get_tensor())

    np.testing.assert_allclose(build(True), build(False), rtol=1e-5)


def test_dropout_in_a_loop_draws_anew_and_its_gradient_uses_the_same_mask():
    main, startup, loss, last = network(
        lambda loss, start: fluid.gradients(loss, [start]), step=lambda state: layers.dropout(state, 0.5)
    )
    got, gradient, start = run(main, startup, [last, "fc_0.tmp_1@GRAD", "fc_0.tmp_1"], iterations=2, rows=40)
    assert 10 < np.count_nonzero(got) < 60
    np.testing.assert_allclose(gradient * start, 2 * got * got / got.size, rtol=1e-5)


def test_recomputation_leaves_loops_alone():
    def minimize(checkpoints):
        def append(loss, start):
            sgd = fluid.optimizer.SGD(0.5)
            if checkpoints:
                sgd = fluid.optimizer.RecomputeOptimizer(sgd)
                sgd._set_checkpoints([start, loss])
            sgd.minimize(loss)

        return append

    plain, recomputed = (
        run(*network(minimize(c))[:2], ["w@GRAD", "start@GRAD"], steps=2) for c in (False, True)
    )
    for one, other in zip(plain, recomputed, strict=True):
        np.testing.assert_array_equal(one, other)


def test_two_places_share_a_batch():
    main, startup, loss, last = network(lambda loss, start: fluid.optimizer.SGD(0.5).minimize(loss))
    (alone,) = run(main, startup, ["w@GRAD"], rows=4)
    compiled = fluid.CompiledProgram(main).with_data_parallel(
        loss_name=loss.name, places=[fluid.CPUPlace(), fluid.CPUPlace()]
    )
    scope = fluid.Scope()
    EXE.run(startup, scope=scope)
    before = np.array(scope.find_var("w").get_tensor())
    given = {**feed(rows=4), "n": np.array([3, 3])}
    EXE.run(compiled, feed=given, fetch_list=[loss], scope=scope)
    np.testing.assert_allclose(before - np.array(scope.find_var("w").get_tensor()), 0.5 * alone, rtol=1e-4)


def test_copies_and_saved_programs_have_the_blocks_they_need(tmp_path):
    main, startup, loss, last = network(lambda loss, start: fluid.optimizer.SGD(0.5).minimize(loss))
    assert main.num_blocks == 3
    (expected,) = run(main, startup, [last])
    for program, blocks in (
        (main.clone(for_test=True), 2),
        (main._prune([last]), 2),
        (main.clone(), 3),
        (Program.parse_from_string(main.desc.serialize_to_string()), 3),
    ):
        assert program.num_blocks == blocks
        assert all(
            sub.program is program for block in program.blocks for op in block.ops for sub in op.sub_blocks()
        )
        np.testing.assert_array_equal(run(program, startup, [last.name])[0], expected)
    assert main.num_blocks == 3
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        EXE.run(startup)
        fluid.io.save_inference_model(str(tmp_path), ["x", "n"], [last], EXE, main)
    with fluid.scope_guard(fluid.Scope()):
        loaded, names, targets = fluid.io.load_inference_model(str(tmp_path), EXE)
        assert [op.type for op in loaded.global_block().ops][-2:] == ["scale", "fetch"]
        np.testing.assert_array_equal(EXE.run(loaded, feed=feed(), fetch_list=targets)[0], expected)


def test_a_parsed_program_trains_as_the_one_that_was_saved():
    main, startup, loss, last = network(lambda loss, start: fluid.optimizer.SGD(0.5).minimize(loss))
    parsed = Program.parse_from_string(main.desc.serialize_to_string())
    one, other = (run(p, startup, [loss.name, "w@GRAD"], steps=3) for p in (main, parsed))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_variables_that_shall_have_no_gradient():
    main, startup, loss, last = network()
    with program_guard(main, startup):
        pairs = fluid.backward.append_backward(loss, no_grad_set={"w"})
    assert sorted(param.name for param, _ in pairs) == ["b", "fc_0.b_0", "start"]
    assert "w@GRAD" not in main.block(2).vars


def test_a_gradient_of_a_gradient_of_a_loop_is_refused():
    main, startup, loss, last = network()
    with program_guard(main, startup):
        (gradient,) = fluid.gradients(loss, [main.global_block().var("start")])
        with pytest.raises(fluid.core.EnforceNotMet, match="second derivatives"):
            fluid.gradients(layers.reduce_sum(layers.square(gradient)), [main.global_block().var("start")])


def test_values_are_printed_in_each_iteration():
    main, startup, loss, last = network(
        step=lambda state: layers.Print(layers.scale(state, 0.5), message="state")
    )
    out = io.StringIO()
    with redirect_stdout(out):
        run(main, startup, [last])
    assert out.getvalue().count("state") in (0, 3)  # the native way of printing goes past sys.stdout


@pytest.mark.parametrize("fixed", [False, True])
def test_steps_have_no_gradient_for_an_outer_array(programs, fixed):
    """append_backward refuses it, as in real Paddle 1.8.5; one that needs none is read as ever."""
    main, startup = programs
    x, start = fluid.data("x", [None, None, 2]), fluid.data("start", [None, 2])
    x.stop_gradient = False
    zero = layers.fill_constant([1], "int64", 0)
    array, rnn = layers.array_write(layers.scale(start, 2.0), zero), layers.StaticRNN()
    array.stop_gradient = fixed
    with rnn.step():
        word, state = rnn.step_input(x), rnn.memory(init=start)
        rnn.update_memory(state, word + state * layers.array_read(array, zero))
        rnn.step_output(state)
    loss = layers.reduce_sum(rnn())
    if not fixed:
        with pytest.raises(fluid.core.EnforceNotMet, match="recurrent .*tensor array 'array_write_0.out'"):
            fluid.backward.append_backward(loss)
        return
    fluid.backward.append_backward(loss)
    feed = {"x": np.ones((3, 1, 2), "float32"), "start": np.full((1, 2), 0.5, "float32")}
    EXE.run(startup)
    for _ in range(3):
        (found,) = EXE.run(main, feed=feed, fetch_list=["x@GRAD"])
        np.testing.assert_array_equal(found, np.array([2, 1, 0])[:, None, None] * np.ones((3, 1, 2)))
