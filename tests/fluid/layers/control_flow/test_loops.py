"""While and while_loop: results, errors, and gradients against central differences."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.framework import Program, program_guard
from tests.engines import run_by
from tests.refusals import refuses

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


def check(build, counts=(0, 1, 3)):
    """Compare the gradients of a loss with central differences, for several numbers of turns."""
    main, loss, found = built(build)
    exe = fluid.Executor(fluid.CPUPlace())

    def run(feed, fetch):
        return exe.run(main, feed=feed, fetch_list=fetch)

    for n in counts:
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


def plain_loop_variables_have_right_gradients(x, w, n):
    def body(i, state):
        return [i + 1, layers.tanh(layers.matmul(state, w))]

    i, state = layers.while_loop(lambda i, s: layers.less_than(i, n), body, [number(0), layers.scale(x, 1.0)])
    return layers.square(state)


def a_fed_variable_may_be_a_loop_variable(x, w, n):
    def body(i, state):
        return [i + 1, layers.sin(state * w)]

    _, state = layers.while_loop(lambda i, s: layers.less_than(i, n), body, [number(0), x])
    return state


def loop_variables_that_depend_on_each_other(x, w, n):
    def body(i, a, b, unused):
        return [i + 1, a * b + w, layers.sin(a), unused + a]

    start = [number(0), layers.scale(x, 1.0), layers.scale(w, 2.0), layers.scale(x, 0.0)]
    _, a, b, _ = layers.while_loop(lambda i, a, b, u: layers.less_than(i, n), body, start)
    return b * 2.0


def a_loop_variable_that_is_replaced_without_being_read(x, w, n):
    def body(i, a):
        return [i + 1, layers.sin(w)]

    _, a = layers.while_loop(lambda i, a: layers.less_than(i, n), body, [number(0), layers.scale(x, 3.0)])
    return a * x


def a_loop_variable_is_read_before_the_loop_in_it_and_after_it(x, w, n):
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


def a_variable_that_is_written_twice_in_an_iteration(x, w, n):
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


def the_index_of_an_array_may_be_a_plain_loop_variable(x, w, n):
    states = layers.array_write(layers.scale(x, 1.0), number(0))

    def body(i, states):
        state = layers.array_read(states, i)
        i = i + 1
        layers.array_write(layers.sin(state * w), i, states)
        return [i, states]

    i, states = layers.while_loop(lambda i, s: layers.less_than(i, n), body, [number(0), states])
    return layers.array_read(states, i)


def all_elements_of_an_array_and_the_last_one_are_used(x, w, n):
    """Gradients of reads in the loop are added to those from after the loop."""
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


def test_an_element_is_overwritten():
    def build(x, w, n):
        zero = number(0)
        array = layers.array_write(layers.sin(x), zero)
        first = layers.array_read(array, zero)
        layers.array_write(layers.square(first) * w, zero, array)
        return layers.array_read(array, zero) + first

    check(build, counts=(0,))


def nested_loops_over_arrays_and_plain_variables(x, w, n):
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


def the_inner_loop_reads_what_the_outer_one_replaces(x, w, n):
    def outer(i, a):
        def inner(j, b):
            return [j + 1, layers.sin(b * a)]

        two = number(2)
        _, b = layers.while_loop(
            lambda j, b: layers.less_than(j, two), inner, [number(0), layers.scale(w, 1.0)]
        )
        return [i + 1, a + b * w]

    _, a = layers.while_loop(lambda i, a: layers.less_than(i, n), outer, [number(0), layers.scale(x, 1.0)])
    return a


def two_loops_one_after_the_other_with_one_counter(x, w, n):
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


def test_a_loop_variable_that_never_reaches_the_loss():
    def build(x, w, n):
        def body(i, a, lost):
            return [i + 1, layers.sin(a * w), lost * a]

        start = [number(0), layers.scale(x, 1.0), layers.scale(x, 1.0)]
        _, a, _ = layers.while_loop(lambda i, a, b: layers.less_than(i, n), body, start)
        return a

    main = check(build)
    assert not any("tmp_2@GRAD" in name for name in main.block(2).vars)


def a_replaced_value_is_read_in_the_same_iteration(x, w, n):
    """Its gradient from after the iteration and that of the iteration's own operators add up."""
    side = layers.sin(x)

    def body(i, a):
        layers.assign(layers.cos(a * w), side)
        return [i + 1, layers.square(side) + side * a]

    _, a = layers.while_loop(lambda i, a: layers.less_than(i, n), body, [number(0), layers.scale(x, 1.0)])
    return a + side


def loops_in_branches_and_branches_in_loops(x, w, n):
    """A variable that a branch reads after replacing it also gets the gradient from after the branch."""

    def body(i, a):
        side = layers.sin(a * w)

        def small():
            layers.assign(layers.cos(side), side)
            _, b = layers.while_loop(
                lambda j, b: layers.less_than(j, i), lambda j, b: [j + 1, b * side + w], [number(0), a * 1.0]
            )
            return b + layers.square(side)

        picked = layers.cond(layers.less_than(i, number(2)), small, lambda: a * side)
        return [i + 1, picked + side]

    _, a = layers.while_loop(lambda i, a: layers.less_than(i, n), body, [number(0), layers.scale(x, 1.0)])
    return a


def rows_that_multiply(x, w, n):
    """The result has more rows than it was declared with; so have the gradients on their way back."""

    def body(i, a):
        return [i + 1, layers.concat([a, layers.matmul(layers.sin(a), w)], axis=0)]

    _, a = layers.while_loop(lambda i, a: layers.less_than(i, n), body, [number(0), layers.scale(x, 1.0)])
    return layers.square(a)


LOOPS = [
    plain_loop_variables_have_right_gradients, a_fed_variable_may_be_a_loop_variable,
    loop_variables_that_depend_on_each_other, a_loop_variable_that_is_replaced_without_being_read,
    a_loop_variable_is_read_before_the_loop_in_it_and_after_it,
    a_variable_that_is_written_twice_in_an_iteration,
    the_index_of_an_array_may_be_a_plain_loop_variable,
    all_elements_of_an_array_and_the_last_one_are_used, nested_loops_over_arrays_and_plain_variables,
    the_inner_loop_reads_what_the_outer_one_replaces, two_loops_one_after_the_other_with_one_counter,
    a_replaced_value_is_read_in_the_same_iteration, loops_in_branches_and_branches_in_loops,
    rows_that_multiply,
]  # fmt: skip


@pytest.mark.parametrize("build", LOOPS)
def test_gradients_of_loops(build):
    check(build)


def test_parameters_used_in_several_iterations_are_trained(programs):
    main, startup = programs
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
    for step_number in range(40):
        feed = {
            "x": np.ones((2 + step_number % 3, 3), "float32"),
            "n": np.array([1 + step_number % 4], "int64"),
        }
        losses.append(float(exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0][0]))
    assert losses[-1] < 0.01 < losses[0]


# What is refused.


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: layers.While(3), TypeError, "condition should be a variable, got int"),
        (lambda: layers.While(number(1)), TypeError,
         "condition should be a boolean variable, got 'fill_constant_0"),
        (lambda: layers.While(fluid.data("c", [2], "bool")), TypeError,
         r"one element, got 'c' of shape \[2\]"),
        (lambda: layers.while_loop(3, len, [number(1)]), TypeError,
         "cond in while_loop should be callable"),
        (lambda: layers.while_loop(len, 3, [number(1)]), TypeError,
         "body in while_loop should be callable"),
        (lambda: layers.while_loop(len, len, number(1)), TypeError,
         "loop_vars in while_loop should be a list"),
        (lambda: layers.while_loop(len, len, []), ValueError,
         "loop_vars in while_loop should not be empty"),
        (lambda: layers.while_loop(lambda i: True, len, [number(1)]), TypeError,
         "cond in while_loop should be a var"),
        (lambda: layers.while_loop(lambda i: i, len, [number(1)]), TypeError,
         "should be a boolean variable"),
        (lambda: loop_of(lambda i: [i, i]), ValueError, "the same arity .*: 2 instead of 1"),
        (lambda: loop_of(lambda i: [[i]]), ValueError, "the same arity .* same nested structure"),
        (lambda: loop_of(lambda i: None), TypeError, "got NoneType"),
    ],
)  # fmt: skip
def test_wrong_arguments(call, error, message):
    with program_guard(Program(), Program()), fluid.unique_name.guard(), pytest.raises(error, match=message):
        call()


def loop_of(body):
    return layers.while_loop(lambda i: layers.less_than(i, i), body, [number(1)])


def test_a_loop_variable_keeps_its_type(programs):
    start = layers.fill_constant([2], "float32", 1.0)
    message = "assign: variable 'fill_constant_0.tmp_0' .* float32 before the loop and .* float64 after"
    with pytest.raises(fluid.core.EnforceNotMet, match=message + r".*test_loops\.py:\d+"):
        layers.while_loop(
            lambda i, s: layers.less_than(i, i),
            lambda i, s: [i, layers.cast(s, "float64")],
            [number(1), start],
        )


@pytest.mark.parametrize(("before", "after"), [("int64", "int32"), ("int32", "int64")])
@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("engine", ["interpret", "plan"])
def test_places_that_change_their_type(before, after, fed, engine):
    # As decoders do, which assign beam_search's int32 parents to int64 places: Fluid takes the new type with the turn.
    main = Program()
    with program_guard(main, Program()), fluid.unique_name.guard():
        x = layers.data("x", [2, 2], append_batch_size=False)
        count = layers.data("count", [1], dtype="int64", append_batch_size=False)
        if fed:
            places = layers.data("places", [-1], dtype=before, append_batch_size=False)
        else:
            places = layers.assign(np.array([1, 0], before))
        rows, step = layers.scale(x, 1.0), number(0)
        going_on = layers.less_than(step, count)
        with layers.While(going_on).block():
            layers.assign(layers.scale(layers.gather(rows, places), 2.0), rows)
            layers.assign(layers.cast(layers.argmax(rows, axis=1), after), places)
            layers.increment(step)
            layers.less_than(step, count, cond=going_on)
        picked = layers.gather(rows, places)
    data = np.array([[1, 2], [4, -5]], "float32")
    with run_by(engine):
        for counts in (2, 0, 1):
            want, where = data, np.array([1, 0])
            for _ in range(counts):
                want = want[where] * 2
                where = want.argmax(1)
            feed = {"x": data, "count": np.array([counts])} | (
                {"places": np.array([1, 0], before)} if fed else {}
            )
            got = fluid.Executor().run(main, feed, [rows, picked, places])
            assert got[2].dtype == (after if counts else before)
            np.testing.assert_array_equal(got[0], want)
            np.testing.assert_array_equal(got[1], want[where])


def run_alone(build, feed=None):
    main = Program()
    with program_guard(main, Program()), fluid.unique_name.guard():
        fetch = build()
    return fluid.Executor(fluid.CPUPlace()).run(main, feed=feed or {}, fetch_list=fetch)


def test_fetched_arrays_are_lists():
    def build():
        value = layers.fill_constant([2], "float32", 1.0)
        array = layers.array_write(value, number(1))
        return [array, layers.array_length(array), layers.array_length(layers.create_array("int64"))]

    array, length, none = run_alone(build)
    assert (
        array[0] is None and array[1].tolist() == [1, 1] and length.tolist() == [2] and none.tolist() == [0]
    )


def test_an_array_takes_the_type_of_what_is_written(programs):
    array = layers.create_array("int32")
    assert (array.name, array.shape, array.type) == (
        "array_0.out",
        (),
        fluid.core.VarDesc.VarType.LOD_TENSOR_ARRAY,
    )
    layers.array_write(fluid.data("x", [4], "int64", lod_level=1), number(0), array)
    read = layers.array_read(array, number(0))
    for var in (array, read):
        assert (var.shape, var.dtype, var.lod_level) == ((4,), fluid.core.VarDesc.VarType.INT64, 1)
    assert layers.array_length(array).name == "array_length_0.tmp_0" and read.name == "array_read_0.tmp_0"


@pytest.mark.parametrize(
    "axis, stack, shape", [(1, False, (2, -1)), (0, False, (-1, 3)), (1, True, (2, -1, 3))]
)
def test_shapes_of_joined_arrays(programs, axis, stack, shape):
    array = layers.array_write(fluid.data("x", [2, 3]), number(0))
    out, sizes = layers.tensor_array_to_tensor(array, axis=axis, use_stack=stack)
    assert (out.shape, sizes.shape, sizes.dtype) == (shape, (), fluid.core.VarDesc.VarType.INT32)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda x: layers.array_read(x, number(0)),
            "should be tensor array variable in array_read, got the VarType.LOD",
        ),
        (lambda x: layers.array_length(3), "should be tensor array variable in array_length, got 3"),
        (
            lambda x: layers.tensor_array_to_tensor([x]),
            "should be tensor array variable in tensor_array_to_tensor",
        ),
        (lambda x: layers.array_write(x, x), "The data type of 'i' in array_write must be"),
        (lambda x: layers.array_write(x, 0), "The type of 'i' in array_write must be a Variable"),
        (lambda x: layers.array_write(3, number(0)), "The type of 'x' in array_write must be a Variable"),
        (lambda x: layers.array_write(x, number(0), x), "should be tensor array variable in array_write"),
    ],
)
def test_what_is_no_array_or_index(call, message):
    with program_guard(Program(), Program()), pytest.raises(TypeError, match=message):
        call(fluid.data("x", [2, 3]))


def test_an_error_inside_leaves_the_block():
    main = Program()
    with program_guard(main, Program()):
        with pytest.raises(KeyError), layers.While(layers.less_than(number(0), number(1))).block():
            raise KeyError("mine")
        assert main.current_block().idx == 0
        assert [op.type for op in main.global_block().ops].count("while") == 0


# Dygraph mode.


def test_eager_loops_and_lists():
    with fluid.dygraph.guard():
        w = fluid.dygraph.to_variable(np.array([1.5, 0.5], "float32"))
        w.stop_gradient = False

        def body(i, v, nested):
            return [i + 1, v * w + 1.0, {"a": nested["a"] + 2.0}]

        start = [fluid.dygraph.to_variable(np.zeros(1, "int64")), w * 0.0, {"a": w * 0.0}]
        i, v, nested = layers.while_loop(lambda i, v, n: layers.reduce_sum(v) < 5.0, body, start)
        assert i.numpy().tolist() == [3] and nested["a"].numpy().tolist() == [6, 6]
        layers.reduce_sum(v).backward()
        np.testing.assert_allclose(w.gradient(), 1 + 2 * w.numpy())

        zero, one = (fluid.dygraph.to_variable(np.array([k], "int64")) for k in range(2))
        array = layers.create_array("float32")
        assert array == []
        assert layers.array_write(v, zero, array) is array and layers.array_write(w, one, array) is array
        assert layers.array_length(array) == 2 and layers.array_read(array, one) is w
        layers.array_write(v, one, array)
        assert array[1] is v and layers.array_write(v, zero) == [v]
        joined, sizes = layers.tensor_array_to_tensor([w, v], axis=0)
        assert joined.shape == [4] and sizes.numpy().tolist() == [2, 2]
        refuses(lambda: layers.array_write(v, one, []), AssertionError, "index 1 of a list of 0")
        refuses(lambda: layers.array_read([], one), IndexError)
        refuses(lambda: layers.array_read(w, one), AssertionError, "should be a list in array_read")
        with pytest.raises(ValueError, match="same arity"):
            layers.while_loop(lambda i: i < 3, lambda i: [i, i], [zero])
