"""Gradients of variables that branches and loops replace, for both values of a condition, by both engines."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.framework import Program, program_guard
from fluidlite.layers.control_flow.conditional_block import ConditionalBlock
from tests.engines import run_by

EXE = fluid.Executor(fluid.CPUPlace())
X = np.array([0.3, 0.7])


engines = pytest.mark.parametrize("name", ["plan", "interpret"])


def program(build, **options):
    """A program with a loss of x [2], which `build` makes of x and a condition p, and the gradient of x."""
    main, startup = Program(), Program()
    with program_guard(main, startup), fluid.unique_name.guard():
        x, p = fluid.data("x", [2], "float64"), fluid.data("p", [1], "bool")
        x.stop_gradient = False
        loss = layers.reduce_sum(build(x, p))
        found = fluid.gradients(loss, [x], **options)
    return main, startup, loss, found[0]


def values(main, startup, fetch, taken, x=X, scope=None):
    scope = scope or fluid.Scope()
    EXE.run(startup, scope=scope)
    return EXE.run(main, feed={"x": x, "p": np.array([taken])}, fetch_list=fetch, scope=scope)


def sized(var):
    """`var` without gradients so far."""
    var.stop_gradient = False
    return var


def put(value, target):
    layers.assign(value, target)
    target.stop_gradient = False


def two(value=2.0):
    return layers.fill_constant([2], "float64", value)


def when(condition):
    return ConditionalBlock([condition], is_scalar_condition=True).block()


def repeat(condition, body):
    """Run `body` two times or, if the condition does not hold, never."""
    i, last = layers.fill_constant([1], "int64", 0), layers.cast(condition, "int64") * 2
    going = layers.less_than(i, last)
    with layers.While(going).block():
        body()
        layers.increment(i)
        layers.less_than(i, last, cond=going)


def persistable():
    return sized(layers.create_global_var([2], 1.0, "float64", persistable=True, name="persistable"))


def constant_in_line(x, p):
    s = layers.sin(x)
    y = s * 2.0
    put(two(), s)
    return s * y


def constant_in_branch(x, p):
    s = layers.sin(x)
    y = s * 2.0
    with when(p):
        put(two(), s)
    return s * y


def constant_in_loop(x, p):
    s = layers.sin(x)
    repeat(p, lambda: put(two(), s))
    return s * x


def constant_in_one_case(x, p):
    s = layers.sin(x)
    with layers.Switch() as switch:
        with switch.case(p):
            put(x * x, s)
        with switch.default():
            put(two(), s)
    return s * x


def both_branches(x, p):
    s = layers.create_tensor("float64")
    layers.cond(p, lambda: put(x * x, s), lambda: put(x * x * x, s))
    return s * x


def read_between(x, p):
    s = layers.sin(x)
    y = s * 3.0
    with when(p):
        put(y * s, s)
    z = s * 2.0
    with when(layers.logical_not(p)):
        put(layers.sin(z * s), s)
    return s * z + y


def nothing_before(x, p):
    """Whatever the condition, the second block runs; the first one may have written nothing."""
    s, always = layers.create_tensor("float64"), layers.logical_or(p, layers.logical_not(p))
    with when(p):
        put(x * x, s)
    with when(always):
        put(x * x * x, s)
    return s * x


def nothing_before_a_loop(x, p):
    s = layers.create_tensor("float64")

    def body():
        layers.cond(p, lambda: put(x * x, s), lambda: put(x * x * x, s))

    repeat(layers.logical_or(p, layers.logical_not(p)), body)
    return s * x


def excluded_and_read_between(x, p):
    s, r = layers.create_tensor("float64"), sized(two(1.0))
    with when(p):
        put(x * x, s)
    with when(p):
        put(s * s, r)
    with when(layers.logical_not(p)):
        put(x * x * x, s)
    return s * r


def condition_replaced(x, p):
    """The two blocks do not exclude each other, though the second condition is the negation of the first variable."""
    s, c = layers.create_tensor("float64"), layers.create_tensor("bool")
    layers.assign(layers.logical_or(p, layers.logical_not(p)), c)
    with when(c):
        put(x * x, s)
    layers.assign(layers.logical_not(c), c)
    with when(layers.logical_not(c)):
        put(x * s, s)
    return s * x


def condition_replaced_without_reading(x, p):
    s, c, t = layers.create_tensor("float64"), layers.create_tensor("bool"), sized(two())
    layers.assign(layers.logical_or(p, layers.logical_not(p)), c)
    with when(c):
        put(x * x, s)
    y = s * t
    layers.assign(layers.logical_not(c), c)
    with when(layers.logical_not(c)):
        put(x * 3.0, s)
    return s * y


def other_number_of_rows(x, p):
    s = layers.sin(layers.concat([x, x], 0))
    with when(p):
        put(x * 1.0, s)
    return layers.reduce_sum(s) * x


def persistable_in_line(x, p):
    u = persistable()
    put(x * x, u)
    y = layers.sin(u)
    put(x * y, u)
    return u * x + y


def persistable_in_branch(x, p):
    u = persistable()
    put(layers.sin(x) * x, u)
    y = u * u
    with when(p):
        put(u * x, u)
    return u * x + y


def persistable_in_loop(x, p):
    u = persistable()
    put(x * x, u)
    repeat(p, lambda: put(layers.sin(u), u))
    return u * x


def nested(x, p):
    s = layers.sin(x)

    def outer():
        put(layers.square(s), s)
        inner = layers.cond(
            layers.logical_not(p), lambda: x * 2.0, lambda: put(layers.cos(s * x), s) or s * 1.0
        )
        return inner * s

    return layers.cond(p, outer, lambda: x * s) + s


def element(x, replace):
    """An element of an array, made of x, which `replace` may have replaced by means of the function that it gets."""
    index = layers.fill_constant([1], "int64", 0)
    array = layers.array_write(x * 0.5, index)
    replace(lambda value: layers.array_write(value, index, array))
    return layers.array_read(array, index) * x


def element_in_line(x, p):
    return element(x, lambda write: write(two()))


def element_in_branch(x, p):
    return element(x, lambda write: layers.cond(p, lambda: write(two()) and None, None))


def element_in_loop(x, p):
    return element(x, lambda write: repeat(p, lambda: write(sized(two()))))


def element_in_branch_in_loop(x, p):
    always = layers.logical_or(p, layers.logical_not(p))
    return element(
        x, lambda write: repeat(always, lambda: layers.cond(p, lambda: write(sized(two())) and None, None))
    )


REPLACING = [
    element_in_line, element_in_branch, element_in_loop, element_in_branch_in_loop,
    constant_in_line, constant_in_branch, constant_in_loop, constant_in_one_case, both_branches, read_between,
    nothing_before, nothing_before_a_loop, excluded_and_read_between, condition_replaced,
    condition_replaced_without_reading, other_number_of_rows, persistable_in_line, persistable_in_branch,
    persistable_in_loop, nested,
]  # fmt: skip


@engines
@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("build", REPLACING)
def test_each_value_has_its_own_gradient(build, taken, name):
    (main, startup, loss, gradient), scope = program(build), fluid.Scope()

    def at(x):
        return values(main, startup, [loss, gradient], taken, x, scope)

    with run_by(name):
        found = at(X)[1]
        ends = [[at(X + sign * step)[0].item() for sign in (1, -1)] for step in np.eye(2) * 1e-6]
    numeric = [(above - below) / 2e-6 for above, below in ends]
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-8)


def test_copies_are_made_of_what_may_have_no_value():
    """`keep_value` copies what is there, in place of `assign`, which needs something."""
    main, *_ = program(nothing_before_a_loop)
    kinds = {op.type for block in main.blocks for op in block.ops if "@KEPT@" in "".join(op.output_arg_names)}
    assert kinds <= {"keep_value"}
    main, *_ = program(excluded_and_read_between)
    kinds = {op.type for block in main.blocks for op in block.ops if "@KEPT@" in "".join(op.output_arg_names)}
    assert "keep_value" in kinds
    main, *_ = program(constant_in_branch)
    assert not any(op.type == "keep_value" for block in main.blocks for op in block.ops)


@engines
@pytest.mark.parametrize("taken", [True, False])
def test_what_a_branch_holds_fast_has_no_gradient(taken, name):
    def build(x, p):
        s = layers.sin(x)

        def branch():
            fast = s * 2.0
            fast.stop_gradient = True
            put(fast, s)
            return fast * x

        return layers.cond(p, branch, lambda: s * s) + s * x

    main, startup, _, gradient = program(build)
    sin, cos = np.sin(X), np.cos(X)
    expected = 4 * sin if taken else 2 * sin * cos + sin + X * cos
    with run_by(name):
        np.testing.assert_allclose(values(main, startup, [gradient], taken)[0], expected, rtol=1e-12)


@engines
@pytest.mark.parametrize("taken", [True, False])
def test_no_grad_set_reaches_into_branches(taken, name):
    def build(x, p):
        s, held = layers.sin(x), layers.scale(x, 3.0, name="held")
        with when(p):
            put(s * held, s)
        return s * held

    main, startup, _, gradient = program(build, no_grad_set={"held.tmp_0"})
    held = 3 * X
    expected = np.cos(X) * held * (held if taken else 1)
    with run_by(name):
        np.testing.assert_allclose(values(main, startup, [gradient], taken)[0], expected, rtol=1e-12)


@engines
@pytest.mark.parametrize("taken", [True, False])
def test_weighted_targets_that_a_branch_has_replaced(programs, taken, name):
    main, startup = programs
    x, p = fluid.data("x", [2], "float64"), fluid.data("p", [1], "bool")
    x.stop_gradient = False
    s = layers.sin(x)
    t = s * x
    with when(p):
        put(x * x * s, s)
    weight = layers.assign(np.array([2, 5], "int32"))
    weights = [layers.cast(weight, "float64"), two(3.0)]
    first = fluid.gradients([s, t], [x], target_gradients=weights)[0]
    second = fluid.gradients([s], [x])[0]
    sin, cos = np.sin(X), np.cos(X)
    of_s = 2 * X * sin + X * X * cos if taken else cos
    with run_by(name):
        found = values(main, startup, [first, second], taken)
    np.testing.assert_allclose(found[0], np.array([2, 5]) * of_s + 3 * (sin + X * cos), rtol=1e-12)
    np.testing.assert_allclose(found[1], of_s, rtol=1e-12)


@engines
@pytest.mark.parametrize("kind", ["SGD", "Adam", "Momentum"])
def test_sparse_tables_in_branches_learn_as_dense_ones(kind, name):
    def train(sparse):
        main, startup = Program(), Program()
        with program_guard(main, startup), fluid.unique_name.guard():
            ids, p = fluid.data("ids", [None, 1], "int64"), fluid.data("p", [1], "bool")

            def rows():
                start = fluid.initializer.NumpyArrayInitializer(
                    np.arange(8, dtype="float32").reshape(4, 2) / 8
                )
                attr = fluid.ParamAttr("table", initializer=start)
                return layers.embedding(ids, [4, 2], is_sparse=sparse, param_attr=attr)

            made = layers.cond(
                p, lambda: layers.square(rows()), lambda: layers.scale(layers.cast(ids, "float32"), 2.0)
            )
            state = layers.scale(layers.reduce_sum(made), 0.5)
            with when(layers.logical_not(p)):
                put(layers.reduce_sum(rows()) * state, state)
            loss = layers.mean(layers.square(state))
            options = {"momentum": 0.9} if kind == "Momentum" else {}
            getattr(fluid.optimizer, kind)(learning_rate=0.01, **options).minimize(loss)
        scope, found = fluid.Scope(), []
        EXE.run(startup, scope=scope)
        for taken in (True, False, True, False):
            EXE.run(main, feed={"ids": np.array([[1], [3], [1]]), "p": np.array([taken])}, scope=scope)
            found.append(np.array(scope.find_var("table").get_tensor()))
        return found

    with run_by(name):
        sparse, dense = train(True), train(False)
    np.testing.assert_allclose(sparse, dense, rtol=1e-5)
    assert all((before != after).any() for before, after in zip(dense, dense[1:], strict=False))


@engines
@pytest.mark.parametrize("taken", [True, False])
def test_a_second_loss_sees_updates_in_a_branch_as_fluid_does(programs, taken, name):
    """An update is no new value of a parameter: the second loss has a gradient whether it was made or not."""
    main, startup = programs
    x, p = fluid.data("x", [2], "float64"), fluid.data("p", [1], "bool")
    w = layers.create_parameter([2], "float64", "w", default_initializer=fluid.initializer.Constant(2.0))
    first = layers.reduce_sum(w * x)

    def update():
        fluid.optimizer.SGD(0.5).minimize(first)
        return first

    layers.cond(p, update, lambda: first)
    s = w * x
    with when(p):
        put(s * w, s)
    fluid.optimizer.SGD(0.1).minimize(layers.reduce_sum(s))
    scope = fluid.Scope()
    with run_by(name):
        EXE.run(startup, scope=scope)
        EXE.run(main, feed={"x": X, "p": np.array([taken])}, scope=scope)
    before = 2.0 - 0.5 * X if taken else 2.0
    expected = before - 0.1 * (2 * before * X if taken else X)
    np.testing.assert_allclose(np.array(scope.find_var("w").get_tensor()), expected, rtol=1e-6)


@engines
@pytest.mark.parametrize("taken", [True, False])
def test_two_losses_of_one_branch(programs, taken, name):
    main, startup = programs
    x, p = fluid.data("x", [2], "float64"), fluid.data("p", [1], "bool")
    w = layers.create_parameter([2], "float64", "w", default_initializer=fluid.initializer.Constant(2.0))
    s = w * x
    with when(p):
        put(s * 3.0, s)
    losses = [layers.reduce_sum(s), layers.reduce_sum(s * 2.0)]
    for loss in losses:
        fluid.optimizer.SGD(0.1).minimize(loss)
    scope = fluid.Scope()
    with run_by(name):
        EXE.run(startup, scope=scope)
        EXE.run(main, feed={"x": X, "p": np.array([taken])}, scope=scope)
    expected = 2.0 - 0.1 * 3 * X * (3 if taken else 1)
    np.testing.assert_allclose(np.array(scope.find_var("w").get_tensor()), expected, rtol=1e-6)


def test_gradients_that_end_in_a_branch_have_names(programs):
    """As in Fluid 1.8.5, where a branch compares what is computed of data alone; what needs training has none of it."""
    main, startup = programs
    x = fluid.data("x", [None, 2], "float32")
    total = layers.reduce_sum(x)
    hidden = layers.fc(x, 2)
    trained = layers.reduce_mean(hidden)
    zero = layers.fill_constant([1], "float32", 0.0)

    def branch():
        above = layers.cast(layers.greater_than(total, trained), "float32")
        return layers.elementwise_mul(hidden, above)

    out = layers.cond(layers.greater_than(total, zero), branch, lambda: hidden * 3.0)
    loss = layers.mean(out)
    fluid.optimizer.SGD(0.1).minimize(loss)
    (_, taken) = [op for op in main.global_block().ops if op.type == "conditional_block_grad"]
    given = dict(zip(taken.input("Input"), taken.output("Input@GRAD"), strict=True))
    assert given[total.name] == total.name + "@GRAD"
    assert given[hidden.name].startswith(hidden.name + "@GRAD")
    assert "reduce_sum_grad" not in [op.type for op in main.global_block().ops]
    scope = fluid.Scope()
    EXE.run(startup, scope=scope)
    rows = np.array([[1.0, 2.0], [3.0, 0.5]], "float32")
    fetched = [total.name + "@GRAD", hidden.name + "@GRAD"]
    for feed, factor in ((rows, 1.0), (-rows, 3.0)):
        weight = np.array(scope.find_var("fc_0.w_0").get_tensor())
        nothing, arrived = EXE.run(main, {"x": feed}, fetched, scope=scope)
        assert not nothing.any()
        kept = factor if factor == 3.0 or feed.sum() > (feed @ weight).mean() else 0.0
        np.testing.assert_allclose(arrived, np.full((2, 2), kept / 4), rtol=1e-6)
