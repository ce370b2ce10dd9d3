"""Loops that are inlined into plans, compiled against interpreted, and those that Python runs by iteration."""

import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet

from ...engines import run_by
from .agreement import agree, default, number

layers = fluid.layers
RNG = np.random.default_rng(7)


def loop(n, body, variables):
    """Apply `body(variables)` n times; the final values, and the count."""
    i = number(0)

    def iteration(i, *variables):
        made = body(i, *variables)
        return [layers.increment(i), *made]

    return layers.while_loop(lambda i, *_: layers.less_than(i, n), iteration, [i, *variables])


def repeat(n, body, *variables):
    """`body()` n times, which assigns to variables of its own accord."""
    i = number(0)
    cond = layers.less_than(i, n)
    trips = layers.While(cond)
    with trips.block():
        body()
        layers.increment(i)
        layers.less_than(i, n, cond=cond)
    return [i, cond, *variables]


def simple(x, n):
    return loop(n, lambda i, x: [layers.relu(layers.elementwise_add(x, x * 0.5)) - 0.1], [x])


def swapped(x, n):
    a, b = layers.scale(x, 2.0), layers.scale(x, 3.0)

    def body():
        t = layers.assign(a)
        layers.assign(b, a)
        layers.assign(t, b)

    return repeat(n, body, a, b)


def rotated_with_arithmetic(x, n):
    a, b, c = (layers.scale(x, float(k)) for k in (1, 2, 3))

    def body():
        old = layers.elementwise_add(a, b)
        layers.assign(b, a)
        layers.assign(c, b)
        layers.assign(old, c)

    return repeat(n, body, a, b, c)


def views(x, n):
    """The next value of a variable is a view of its value, or of another variable."""
    flat = layers.reshape(layers.scale(x, 1.0), [-1])
    square = layers.scale(x, 2.0)
    kept = layers.scale(x, 0.0)

    def body():
        layers.assign(layers.reshape(square, [-1]), flat)
        layers.assign(square, kept)  # of the beginning of the iteration
        layers.assign(layers.scale(square, 1.5), square)

    return repeat(n, body, flat, square, kept)


def into(kind, out, x, **attrs):
    """An operator whose output is an outer variable."""
    fluid.default_main_program().current_block().append_op(kind, {"X": x}, {"Out": out}, attrs)


def swapped_by_views(x, n):
    a, b = layers.scale(x, 2.0), layers.scale(x, 3.0)

    def body():
        t = layers.reshape(a, [-1, 3])
        into("reshape", a, b, shape=[-1, 3])
        into("reshape", b, t, shape=[-1, 3])

    return repeat(n, body, a, b)


def views_of_the_beginning(x, n):
    a, b = layers.scale(x, 2.0), layers.scale(x, 0.0)

    def body():
        t = layers.reshape(a, [-1, 3])
        into("scale", a, a, scale=0.5)
        layers.assign(layers.elementwise_add(t, a), b)

    return repeat(n, body, a, b)


def what_is_left_is_a_view(x, n):
    a, b = layers.scale(x, 2.0), layers.scale(x, 0.0)

    def body():
        into("reshape", b, a, shape=[-1, 3])
        into("scale", a, a, scale=0.5)

    return repeat(n, body, a, b)


def squared(x, n):
    """An operator that cannot write over what it reads."""
    a = layers.matmul(x, x, transpose_x=True)

    def body():
        block = fluid.default_main_program().current_block()
        attrs = {"alpha": 0.1, "transpose_X": True, "transpose_Y": False}
        block.append_op("matmul", {"X": a, "Y": a}, {"Out": a}, attrs)

    return repeat(n, body, a)


def reads_after_writing(x, n):
    """The old value is read after the operator that computes the new one."""
    a = layers.scale(x, 1.0)
    b = layers.scale(x, 0.0)

    def body():
        new = layers.scale(a, 0.5)
        layers.assign(layers.elementwise_sub(a, new), b)
        layers.assign(new, a)

    return repeat(n, body, a, b)


def counters(x, n):
    floats, small = number(0.25, "float32"), number(3, "int32")

    def body():
        layers.increment(floats, 0.5)
        layers.increment(small, 2)
        layers.increment(small, 1)

    return repeat(n, body, floats, small)


def made_in_the_loop_only(x, n):
    """An outer variable that each iteration writes before it reads it."""
    last = layers.scale(x, -1.0)
    state = layers.scale(x, 1.0)

    def body():
        layers.assign(layers.exp(state), last)
        layers.assign(layers.scale(state, 0.9), state)

    return repeat(n, body, last, state)


def constants(x, n):
    a = layers.scale(x, 1.0)
    flag = number(0.0, "float32")

    def body():
        layers.assign(layers.elementwise_add(a, flag), a)
        layers.assign(number(1.0, "float32"), flag)

    return repeat(n, body, a, flag)


def nested(x, n):
    outer = layers.scale(x, 1.0)

    def body():
        inner = layers.scale(outer, 0.5)
        repeat(number(3), lambda: layers.assign(layers.tanh(inner + 0.1), inner))
        layers.assign(inner, outer)

    return repeat(n, body, outer)


def three_deep(x, n):
    """Three nested loops with a branch; the trip counts of the inner ones vary."""
    sum_, trips = layers.scale(x, 1.0), number(0)

    def inside(i, a):
        def inner(j, a):
            def innermost(k, a):
                layers.increment(trips)
                return [layers.increment(k), layers.tanh(a + layers.cast(j, "float32") * 0.1)]

            _, a = layers.while_loop(lambda k, a: layers.less_than(k, j), innermost, [number(0), a])
            odd = layers.less_than(number(1), i)
            return [layers.increment(j), layers.cond(odd, lambda: a * 0.5, lambda: a + 1.0)]

        return [layers.while_loop(lambda j, a: layers.less_than(j, i), inner, [number(0), a])[1]]

    return [*loop(n, inside, [sum_]), trips]


def inside_a_branch(x, n):
    def several():
        return loop(n, lambda i, x: [x * 0.5 + 1.0], [x])[1]

    return [layers.cond(layers.greater_than(n, number(1)), several, lambda: x * 7.0)]


def branch_inside(x, n):
    def body(i, x):
        return [layers.cond(layers.less_than(i, number(2)), lambda: x * 2.0, lambda: x + 1.0)]

    return loop(n, body, [x])


def array(x, n):
    states = layers.array_write(x, number(0))
    state = layers.scale(x, 1.0)
    i = number(0)

    def body():
        layers.increment(i)
        layers.assign(layers.tanh(state), state)
        layers.array_write(state, i, states)

    repeat(n, body)
    return [layers.array_read(states, i), state, layers.array_length(states)]


def growing(x, n):
    """The shape changes with each iteration."""
    return loop(n, lambda i, x: [layers.concat([x, x], 0)], [layers.scale(x, 1.0)])


def by_python(x, n):
    """An operator without native kernel takes part."""
    return loop(n, lambda i, x: [layers.cumsum(x, axis=1) * 0.5], [x])


LOOPS = [
    simple, swapped, rotated_with_arithmetic, views, swapped_by_views, views_of_the_beginning,
    what_is_left_is_a_view, squared, reads_after_writing, counters, made_in_the_loop_only, constants,
    nested, three_deep, inside_a_branch, branch_inside, array, growing, by_python,
]  # fmt: skip
BY_ITERATION = {growing}


def data():
    return fluid.data("x", [None, 3], "float32"), fluid.data("n", [1], "int64")


def feeds():
    """Several trip counts, zero among them, and batch sizes."""
    for trips, rows in [(3, 2), (0, 2), (1, 2), (4, 5), (2, 1), (0, 5), (5, 2), (3, 0)]:
        yield {"x": RNG.standard_normal((rows, 3), dtype="float32"), "n": np.array([trips])}


def by_operators(fetched, feed):
    with run_by("interpret"):
        return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetched)


@pytest.mark.parametrize("build", LOOPS)
def test_compiled_as_interpreted(build):
    text = agree(default(build(*data())), [*feeds()], 1e-5, 1e-6)
    assert re.search(r"(loop|body) of [0-9]+ instruction|loop\(", text) or build in BY_ITERATION


def test_a_plan_serves_all_batches():
    fetched = simple(*data())
    exe = fluid.Executor(fluid.CPUPlace())
    for rows in (2, 9, 4):
        exe.run(feed={"x": np.ones((rows, 3), "float32"), "n": np.array([3])}, fetch_list=fetched)
    text = exe.describe()
    assert text.count(" loop(") == 1 and "x[x.0, 3]" in text
    assert "run in segments" not in text


def test_loop_variables_are_swapped_in_each_iteration():
    fetched = swapped(*data())
    exe = fluid.Executor(fluid.CPUPlace())
    x = np.ones((2, 3), "float32")
    for trips, expected in [(1, 3.0), (2, 2.0), (5, 3.0)]:
        found = exe.run(feed={"x": x, "n": np.array([trips])}, fetch_list=fetched)
        np.testing.assert_array_equal(found[2], x * expected)
        np.testing.assert_array_equal(found[3], x * (5.0 - expected))


def test_parameters_are_updated_where_they_are():
    x, n = data()
    weight = layers.create_parameter([3], "float32", "w", default_initializer=fluid.initializer.Constant(1.0))
    total = layers.create_global_var([1], 0.0, "float32", persistable=True, name="total")

    def body():
        layers.assign(layers.elementwise_mul(weight, layers.reduce_mean(x, [0]) + 1.0), weight)
        layers.increment(total)

    (i, *_) = repeat(n, body)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    held = fluid.global_scope().find_var("w").get_tensor()
    feed = {"x": np.full((2, 3), 1.0, "float32"), "n": np.array([3])}
    memory = held.array.ctypes.data
    for steps in (1, 2, 3):
        exe.run(feed=feed, fetch_list=[i])
        np.testing.assert_array_equal(np.asarray(held), np.full(3, 8.0**steps))
        assert steps == 1 or held.array.ctypes.data == memory
        memory = held.array.ctypes.data
    assert np.asarray(fluid.global_scope().find_var("total").get_tensor()) == 9.0
    assert " loop(" in exe.describe()


def test_what_is_fed_may_be_the_memory_of_a_parameter():
    x, n = data()
    weight = layers.create_parameter(
        [2, 3], "float32", "w", default_initializer=fluid.initializer.Constant(1.0)
    )
    repeat(n, lambda: layers.assign(layers.elementwise_add(weight, x), weight))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    tensor = fluid.global_scope().find_var("w").get_tensor()
    for expected in (4.0, 16.0):
        exe.run(feed={"x": tensor, "n": np.array([3])}, fetch_list=[])
        np.testing.assert_array_equal(np.asarray(tensor), np.full((2, 3), expected))


def test_sequences_stay_with_what_a_loop_carries():
    x = fluid.data("x", [None, 3], "float32", lod_level=1)
    n = fluid.data("n", [1], "int64")
    state = layers.scale(x, 1.0)

    def body():
        weights = layers.sequence_softmax(layers.reduce_sum(state, [1], keep_dim=True))
        layers.assign(weights * state, state)

    repeat(n, body)
    pooled = layers.sequence_pool(state, "sum")
    exe = fluid.Executor(fluid.CPUPlace())
    for lengths in ([2, 3], [1, 4, 2], [5]):
        rows = RNG.standard_normal((sum(lengths), 3), dtype="float32")
        feed = {"x": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace()), "n": np.array([3])}
        (got,) = exe.run(feed=feed, fetch_list=[pooled])
        np.testing.assert_allclose(got, by_operators([pooled], feed)[0], rtol=1e-5)
    assert " loop(" in exe.describe()


def test_random_numbers_differ_between_iterations():
    x, n = data()
    made = layers.scale(x, 0.0)
    before = layers.scale(x, 0.0)

    def body():
        layers.assign(made, before)
        layers.assign(layers.uniform_random([2, 3], min=0.0, max=1.0), made)

    fetched = repeat(n, body, made, before)
    exe = fluid.Executor(fluid.CPUPlace())
    found = exe.run(feed={"x": np.zeros((2, 3), "float32"), "n": np.array([4])}, fetch_list=fetched)
    assert not np.intersect1d(found[2], found[3]).size


def test_an_id_out_of_range_names_operator_and_line():
    _, n = data()
    rows = layers.fill_constant([1, 4], "float32", 0.0)
    i = number(0)
    cond = layers.less_than(i, n)
    trips = layers.While(cond)
    with trips.block():
        ids = layers.reshape(i, [1, 1])
        layers.assign(layers.embedding(ids, [3, 4], param_attr="words"), rows)  # this line
        layers.increment(i)
        layers.less_than(i, n, cond=cond)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    line = next(
        at for at, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "# this line" in text
    )
    words = np.asarray(fluid.global_scope().find_var("words").get_tensor())
    for trips in (3, 5, 3):
        feed = {"n": np.array([trips])}
        if trips == 3:
            found = exe.run(feed=feed, fetch_list=[rows, i])
            np.testing.assert_array_equal(found[0], words[2:])
        else:
            with pytest.raises(EnforceNotMet, match=rf"lookup_table.* 3 .*{Path(__file__).name}:{line}"):
                exe.run(feed=feed, fetch_list=[rows, i])
    assert " loop(" in exe.describe()


def test_a_condition_with_several_elements():
    x, n = data()
    cond = layers.less_than(number(0), n)
    state = layers.scale(x, 1.0)
    trips = layers.While(cond)
    with trips.block():
        layers.assign(layers.scale(state, 2.0), state)
        layers.assign(layers.less_than(layers.reduce_sum(state, [1]), number(1.0, "float32")), cond)
    exe = fluid.Executor(fluid.CPUPlace())
    found = exe.run(feed={"x": np.ones((1, 3), "float32"), "n": np.array([1])}, fetch_list=[state])
    np.testing.assert_array_equal(found[0], [[2.0] * 3])
    for _ in range(2):
        with pytest.raises(EnforceNotMet, match=r"its condition '.*' must have one element, got shape \[2\]"):
            exe.run(feed={"x": np.ones((2, 3), "float32"), "n": np.array([1])}, fetch_list=[state])


def test_undefined_variables_are_reported():
    x, n = data()
    block = fluid.default_main_program().current_block()
    state = block.create_var(name="nothing", dtype="float32", shape=[2, 3])
    repeat(n, lambda: layers.assign(layers.scale(state, 2.0), state))
    exe = fluid.Executor(fluid.CPUPlace())
    feed = {"x": np.zeros((2, 3), "float32"), "n": np.array([2])}
    for _ in range(2):
        with pytest.raises(EnforceNotMet, match="operator scale needs variable 'nothing'"):
            exe.run(feed=feed, fetch_list=[state])


ENDLESS = """
import sys
import fluidlite as fluid

layers = fluid.layers
x = layers.fill_constant([SIZE, SIZE], "float32", 0.001)
cond = layers.fill_constant([1], "bool", True)
trips = layers.While(cond)
with trips.block():
    layers.assign(layers.matmul(x, x), x)
    layers.assign(layers.logical_or(cond, cond), cond)
exe = fluid.Executor(fluid.CPUPlace())
print("begin", flush=True)
try:
    exe.run(fetch_list=[x])
    exe.run(fetch_list=[x])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("size", [1, 700])
def test_an_endless_loop_can_be_interrupted(size, tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(textwrap.dedent(ENDLESS).replace("SIZE", str(size)))
    child = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(fluid.__file__).parents[1])},
    )
    try:
        assert child.stdout.readline() == "begin\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert out == "interrupted\n" and child.returncode == 0
