"""Loops that go through arrays and end when the data say so, compiled against interpreted."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import agree, default, number

layers = fluid.layers
LIMIT = 6.0


pytestmark = pytest.mark.filterwarnings("ignore")


def growing(x, body):
    """Repeat `body(i, x)`, which returns the next x and increments i, while x is less than LIMIT."""
    i = number(0)
    x = layers.scale(x, 1.0)
    limit = number(LIMIT, "float32")
    going = layers.less_than(layers.reduce_max(x), limit)
    loop = layers.While(going)
    with loop.block():
        layers.assign(body(i, x), x)
        layers.less_than(layers.reduce_max(x), limit, cond=going)
    return i, x


def grown(x, by=1.0):
    return layers.scale(layers.abs(x), 1.5, bias=by)


def all_of(array):
    return layers.tensor_array_to_tensor(array, axis=0, use_stack=True)[0]


def kept(x):
    """The value of each iteration is written to an array."""
    first, out = layers.array_write(x, number(0)), layers.create_array("int64")

    def body(i, x):
        new = grown(x)
        layers.array_write(layers.cast(new, "int64"), i, out)
        layers.increment(i)
        layers.array_write(new, i, first)
        return new

    i, x = growing(x, body)
    return [x, i, all_of(first), layers.array_length(out), layers.array_length(first)]


def states(x):
    """Iterations read the element of the previous one, and an array that was filled before the loop."""
    state, fixed = layers.array_write(x, number(0)), layers.create_array("float32")
    for k in range(20):
        layers.array_write(layers.scale(x, 0.1 * k), number(k), fixed)

    def body(i, x):
        new = grown(layers.array_read(state, i)) + layers.abs(layers.array_read(fixed, i))
        layers.increment(i)
        layers.array_write(new, i, state)
        return layers.elementwise_max(new, x)

    i, x = growing(x, body)
    return [x, all_of(state), layers.array_read(state, i)]


def numbered(x):
    """Iterations number the rows; their count is computed outside."""
    count = layers.cast(layers.slice(layers.shape(x), [0], [0], [1]), "int64")
    out = layers.create_array("int64")

    def body(i, x):
        rows = layers.range(number(0), count, number(1), "int64")
        layers.array_write(layers.elementwise_add(rows, i), i, out)
        layers.increment(i)
        return grown(layers.elementwise_add(x, layers.cast(rows, "float32"), axis=0), 0.7)

    return [growing(x, body)[1], all_of(out)]


def read_for_nothing(x):
    """Elements are read, but no result depends on them."""
    array = layers.array_write(x, number(0))

    def body(i, x):
        layers.array_read(array, i)
        layers.increment(i)
        return grown(x)

    return growing(x, body)


def overwritten(x):
    """Elements are written several times."""
    array, zero = layers.array_write(x, number(0)), number(0)

    def body(i, x):
        new = grown(layers.array_read(array, zero))
        layers.array_write(new, zero, array)
        layers.increment(i)
        return new

    i, x = growing(x, body)
    return [x, i, layers.array_read(array, zero), layers.array_length(array)]


def out_of_order(x):
    """Indices are left out."""
    out = layers.create_array("float32")

    def body(i, x):
        new = grown(x)
        layers.array_write(new, i, out)
        layers.increment(i, 2)
        return new

    i, x = growing(x, body)
    return [x, layers.array_read(out, number(0)), layers.array_length(out)]


def beyond_the_end(x):
    """An index past the end of an array reads no value, which is no error if it is unused."""
    array = layers.array_write(x, number(0))
    out = layers.create_array("float32")

    def body(i, x):
        layers.array_write(layers.array_read(array, i), i, out)
        layers.increment(i)
        return grown(x)

    i, x = growing(x, body)
    return [x, layers.array_length(out)]


def several_shapes(x):
    array = layers.array_write(x, number(0))
    layers.array_write(layers.concat([x, x], 0), number(1), array)

    def body(i, x):
        layers.increment(i)
        return layers.elementwise_add(grown(x), layers.array_read(array, number(0)))

    return [growing(x, body)[1]]


def in_branches(x):
    """Branches write elements of several sizes, and an array that was filled before is read."""
    out, sizes = layers.create_array("float32"), layers.create_array("float32")
    for k in range(20):
        layers.array_write(layers.concat([x] * (1 + k % 3), 0), number(k), sizes)

    def body(i, x):
        new, read = grown(x), layers.array_read(sizes, i)
        small = layers.less_than(layers.reduce_max(new), number(3, "float32"))
        for taken, times in ((small, 2), (layers.logical_not(small), 1)):
            with layers.control_flow.ConditionalBlock([taken], is_scalar_condition=True).block():
                layers.array_write(layers.concat([new] * times + [read], 0), i, out)
        layers.increment(i)
        return new

    i, x = growing(x, body)
    return [x, layers.tensor_array_to_tensor(out, axis=0)[0]]


def local(x):
    """An array that is local to an iteration."""

    def body(i, x):
        mine = layers.array_write(grown(x), number(0))
        layers.increment(i)
        return layers.array_read(mine, number(0))

    return [growing(x, body)[1]]


def counted_in_the_scope(x):
    """A persistable variable counts the iterations, so that none may be replayed."""
    total = layers.create_global_var([1], 0.0, "float32", persistable=True, name="total")
    out = layers.create_array("float32")

    def body(i, x):
        layers.increment(total)
        layers.array_write(layers.scale(total, 1.0), i, out)
        layers.increment(i, 2)
        return grown(x)

    return [growing(x, body)[1], layers.array_read(out, number(0)), total]


IN_ONE_PLAN = [kept, states, numbered, read_for_nothing, overwritten, out_of_order, counted_in_the_scope]
SEGMENTED = [in_branches, beyond_the_end, several_shapes, local]


def feeds(some=None):
    """Batches; the loop has no iteration for the last but one."""
    random = np.random.default_rng(0)
    for rows, size in [(3, 1.0), (1, 0.5), (5, 1.0), (2, 0.01), (4, 100.0), (3, 1.0)][:some]:
        yield {"x": random.uniform(-size, size, (rows, 2)).astype("float32")}


@pytest.fixture
def x():
    return fluid.data("x", [None, 2], "float32")


@pytest.mark.parametrize("build", [*IN_ONE_PLAN, *SEGMENTED])
def test_compiled_as_interpreted(x, build):
    # Some arrays stay empty if the loop does not run.
    few = build in (numbered, counted_in_the_scope, *SEGMENTED)
    text = agree(default(build(x)), [*feeds(4 if few else None)], 1e-5, 1e-6)
    if build in IN_ONE_PLAN:
        assert " loop(" in text


def test_threads_have_elements_of_their_own(x):
    fetched = states(x)
    exe, scope, main = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), fluid.default_main_program()
    given = list(feeds()) * 3
    with fluid.scope_guard(scope):
        expected = [exe.run(feed=feed, fetch_list=fetched) for feed in given]
    wrong = []

    def work(iteration):
        for k in range(len(given)):
            at = (k + iteration) % len(given)
            found = exe.run(main, feed=given[at], fetch_list=fetched, scope=scope)
            if not all(np.array_equal(a, b) for a, b in zip(expected[at], found, strict=True)):
                wrong.append(at)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert wrong == []
