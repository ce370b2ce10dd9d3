"""While and while_loop: what they compute, what they refuse, their gradients by central differences."""

import numpy as np

import fluidlite as fluid
from fluidlite import layers
from fluidlite.framework import Program, program_guard

X = np.array([[0.3, -0.6], [0.5, 0.2]], "float64")
W = np.array([[0.4, -0.3], [0.2, 0.7]], "float64")


def number(value, dtype="int64"):
    return layers.fill_constant([1], dtype, value)


def built(build):
    """A program for which `build(x, w, n)` gives a loss; with the gradients of x and w."""
    main = Program()
    with program_guard(main, Program()), fluid.unique_name.guard():
        x, w = fluid.data("x", [2, 2], "float64"), fluid.data("w", [2, 2], "float64")
        n = fluid.data("n", [1], "int64")
        x.stop_gradient = w.stop_gradient = False
        loss = layers.reduce_sum(build(x, w, n))
        found = fluid.gradients(loss, [x, w])
        found = found or [None, None]
    return main, loss, found


def check(build, turns=(0, 1, 3)):
    """Compare the gradients of a loss with central differences, for several numbers of turns."""
    main, loss, found = built(build)
    exe = fluid.Executor(fluid.CPUPlace())

    def run(feed, fetch):
        return exe.run(main, feed=feed, fetch_list=fetch)

    for n in turns:
        feed = {"x": X, "w": W, "n": np.array([n], "int64")}
        for name, gradient in zip(("x", "w"), found, strict=True):
            numeric = np.zeros_like(feed[name])
            for index in np.ndindex(numeric.shape):
                sides = []
                for step in (1e-6, -1e-6):
                    moved = feed[name].copy()
                    moved[index] += step
                    sides.append(float(np.sum(run({**feed, name: moved}, [loss])[0])))
                numeric[index] = (sides[0] - sides[1]) / 2e-6
            got = 0 * numeric if gradient is None else run(feed, [gradient])[0]
            np.testing.assert_allclose(got, numeric, rtol=1e-6, atol=1e-8, err_msg=f"{name}, {n} turns")
    return main


def counting(n, condition=None):
    """A counter, what it is compared with, and the While that runs n times."""
    i = number(0)
    cond = layers.less_than(i, n)
    return i, cond, layers.While(cond)


def test_an_array_goes_through_a_loop():
    def build(x, w, n):
        i, cond, loop = counting(n)
        states = layers.array_write(layers.scale(x, 1.0), i)
        with loop.block():
            state = layers.array_read(states, i)
            layers.increment(i)
            layers.array_write(layers.tanh(layers.matmul(state, w)), i, states)
            layers.less_than(i, n, cond=cond)
        return layers.square(layers.array_read(states, i))

    main = check(build)
    types = [[op.type for op in block.ops] for block in main.blocks]
    assert types[1] == [
        "read_from_array", "increment", "matmul", "tanh", "write_to_array", "less_than"
    ]  # fmt: skip
    assert types[2] == [
        "read_from_array", "tanh_grad", "matmul_grad", "increment", "write_to_array"
    ]  # fmt: skip
    assert [(b.parent_idx, b.forward_block_idx) for b in main.blocks] == [(-1, -1), (0, -1), (0, 1)]


def test_plain_loop_variables_have_right_gradients():
    def build(x, w, n):
        def body(i, state):
            return [i + 1, layers.tanh(layers.matmul(state, w))]

        i, state = layers.while_loop(
            lambda i, s: layers.less_than(i, n), body, [number(0), layers.scale(x, 1.0)]
        )
        return layers.square(state)

    check(build)


def test_a_fed_variable_may_be_a_loop_variable():
    def build(x, w, n):
        def body(i, state):
            return [i + 1, layers.sin(state * w)]

        _, state = layers.while_loop(lambda i, s: layers.less_than(i, n), body, [number(0), x])
        return state

    check(build)


def test_loop_variables_that_depend_on_each_other():
    def build(x, w, n):
        def body(i, a, b, unused):
            return [i + 1, a * b + w, layers.sin(a), unused + a]

        start = [number(0), layers.scale(x, 1.0), layers.scale(w, 2.0), layers.scale(x, 0.0)]
        _, a, b, _ = layers.while_loop(lambda i, a, b, u: layers.less_than(i, n), body, start)
        return b * 2.0

    check(build)


def test_a_loop_variable_that_is_replaced_without_being_read():
    def build(x, w, n):
        def body(i, a):
            return [i + 1, layers.sin(w)]

        _, a = layers.while_loop(lambda i, a: layers.less_than(i, n), body, [number(0), layers.scale(x, 3.0)])
        return a * x

    check(build)


def test_a_loop_variable_is_read_before_the_loop_in_it_and_after_it():
    def build(x, w, n):
        state = layers.scale(x, 1.0)
        before = layers.square(state)
        i, cond, loop = counting(n)
        with loop.block():
            once = layers.elementwise_mul(state, w)
            twice = layers.elementwise_add(once, layers.square(state))
            layers.assign(layers.sin(twice), state)
            layers.increment(i)
            layers.less_than(i, n, cond=cond)
        return before + layers.exp(state)

    check(build)


def test_a_variable_that_is_written_twice_in_a_turn():
    def build(x, w, n):
        state = layers.scale(x, 1.0)
        i, cond, loop = counting(n)
        with loop.block():
            layers.assign(layers.sin(state), state)
            middle = layers.square(state)
            layers.assign(layers.elementwise_mul(middle, w), state)
            layers.assign(layers.elementwise_add(state, middle), state)
            layers.increment(i)
            layers.less_than(i, n, cond=cond)
        return state

    check(build)


def test_the_index_of_an_array_may_be_a_plain_loop_variable():
    def build(x, w, n):
        states = layers.array_write(layers.scale(x, 1.0), number(0))

        def body(i, states):
            state = layers.array_read(states, i)
            i = i + 1
            layers.array_write(layers.sin(state * w), i, states)
            return [i, states]

        i, states = layers.while_loop(lambda i, s: layers.less_than(i, n), body, [number(0), states])
        return layers.array_read(states, i)

    check(build)


def test_all_elements_of_an_array_and_the_last_one_are_used():
    """What the loop reads of an element is added to what comes from behind the loop."""

    def build(x, w, n):
        i, cond, loop = counting(n)
        states = layers.array_write(layers.scale(x, 1.0), i)
        with loop.block():
            state = layers.array_read(states, i)
            first = layers.array_read(states, number(0))
            layers.increment(i)
            layers.array_write(layers.sin(state * w + first), i, states)
            layers.less_than(i, n, cond=cond)
        joined, _ = layers.tensor_array_to_tensor(states, axis=0)
        return layers.reduce_sum(layers.square(joined)) + layers.reduce_sum(layers.array_read(states, i))

    check(build)


def test_an_element_is_written_again():
    def build(x, w, n):
        zero = number(0)
        array = layers.array_write(layers.sin(x), zero)
        first = layers.array_read(array, zero)
        layers.array_write(layers.square(first) * w, zero, array)
        return layers.array_read(array, zero) + first

    check(build, turns=(0,))


def test_nested_loops_over_arrays_and_plain_variables():
    def build(x, w, n):
        i, cond, outer = counting(n)
        j = number(0)
        states = layers.array_write(layers.scale(x, 1.0), j)
        total = layers.scale(w, 1.0)
        stop = number(2)
        inner_cond = layers.less_than(j, stop)
        inner = layers.While(inner_cond)
        with outer.block():
            with inner.block():
                state = layers.array_read(states, j)
                layers.increment(j)
                layers.array_write(layers.sin(state * w + total), j, states)
                layers.assign(layers.cos(total * state), total)
                layers.less_than(j, stop, cond=inner_cond)
            last = layers.array_read(states, j)
            layers.assign(layers.sin(total + last), total)
            layers.increment(i)
            layers.assign(stop + 2, stop)
            layers.less_than(i, n, cond=cond)
            layers.less_than(j, stop, cond=inner_cond)
        return layers.array_read(states, j) * total

    check(build)


def test_the_inner_loop_reads_what_the_outer_one_replaces():
    def build(x, w, n):
        def outer(i, a):
            def inner(j, b):
                return [j + 1, layers.sin(b * a)]

            two = number(2)
            _, b = layers.while_loop(
                lambda j, b: layers.less_than(j, two), inner, [number(0), layers.scale(w, 1.0)]
            )
            return [i + 1, a + b * w]

        _, a = layers.while_loop(
            lambda i, a: layers.less_than(i, n), outer, [number(0), layers.scale(x, 1.0)]
        )
        return a

    check(build)


def test_two_loops_one_after_the_other_with_one_counter():
    def build(x, w, n):
        i = number(0)
        cond = layers.less_than(i, n)
        states = layers.array_write(layers.scale(x, 1.0), i)
        for _ in range(2):
            loop = layers.While(cond)
            with loop.block():
                state = layers.array_read(states, i)
                layers.increment(i)
                layers.array_write(layers.sin(state * w), i, states)
                layers.less_than(i, n, cond=cond)
            n = n + n
            layers.less_than(i, n, cond=cond)
        return layers.array_read(states, i)

    check(build)


def test_a_loop_variable_that_never_reaches_the_loss():
    def build(x, w, n):
        def body(i, a, lost):
            return [i + 1, layers.sin(a * w), lost * a]

        start = [number(0), layers.scale(x, 1.0), layers.scale(x, 1.0)]
        _, a, _ = layers.while_loop(lambda i, a, b: layers.less_than(i, n), body, start)
        return a

    main = check(build)
    assert not any("tmp_2@GRAD" in name for name in main.block(2).vars)


def test_rows_that_multiply():
    """The result has more rows than it was declared with; so have the gradients on their way back."""

    def build(x, w, n):
        def body(i, a):
            return [i + 1, layers.concat([a, layers.matmul(layers.sin(a), w)], axis=0)]

        _, a = layers.while_loop(lambda i, a: layers.less_than(i, n), body, [number(0), layers.scale(x, 1.0)])
        return layers.square(a)

    check(build)


def test_parameters_used_in_several_turns_are_trained():
    main, startup = Program(), Program()
    with program_guard(main, startup), fluid.unique_name.guard():
        x, n = fluid.data("x", [None, 3]), fluid.data("n", [1], "int64")

        def body(i, state):
            return [i + 1, layers.fc(state, 3, act="tanh", param_attr="w", bias_attr="b")]

        start = layers.fc(x, 3, param_attr="start")
        _, state = layers.while_loop(lambda i, s: layers.less_than(i, n), body, [number(0), start])
        loss = layers.mean(layers.square(state - 0.3))
        fluid.optimizer.Adam(0.05).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    losses = []
    for turn in range(40):
        feed = {"x": np.ones((2 + turn % 3, 3), "float32"), "n": np.array([1 + turn % 4], "int64")}
        losses.append(float(exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0][0]))
    assert losses[-1] < 0.01 < losses[0]
