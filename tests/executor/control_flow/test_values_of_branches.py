"""Variables that have a value only if a branch is taken: plans look whether they have one when they are read."""

import numpy as np
import pytest

import fluidlite as fluid

from .test_loops_in_turns import STATIC, looped, plain_batches
from .test_turns import check, data, fc, number, run, trained

layers = fluid.layers


def less(turns, bound):
    return layers.less_than(turns, number(bound))


def chosen(value, turns, always=True):
    """A variable that nothing but the cases of a Switch make."""
    out = layers.create_tensor("float32")
    with layers.Switch() as switch:
        with switch.case(less(turns, 1)):
            layers.assign(fc(value, 4, "one"), out)
        with switch.case(less(turns, 2)):
            layers.assign(layers.sin(value), out)
        if always:
            with switch.default():
                layers.assign(value * 0.5, out)
    return layers.reshape(out, [-1, 4])


def of_a_switch(x, start, still, turns):
    return [chosen(start, turns) * still]


def twice(x, start, still, turns):
    return [chosen(chosen(start, turns), turns + 1) * still]


def in_a_loop(x, start, still, turns):
    return [looped(number(2), start, lambda value: chosen(value, turns) + still)]


def in_a_branch(x, start, still, turns):
    return [layers.cond(less(turns, 2), lambda: chosen(start, turns), lambda: chosen(still, turns))]


def of_two_branches(x, start, still, turns):
    """Both by the same condition; the second reads what the first makes."""
    few, made, out = less(turns, 2), layers.create_tensor("float32"), layers.scale(still, 1.0)
    layers.cond(few, lambda: layers.assign(layers.tanh(start), made) and None)
    layers.cond(few, lambda: layers.assign(layers.reshape(made, [-1, 4]) * 2.0, out) and None)
    return [out]


def of_branches_in_each_other(x, start, still, turns):
    out = layers.create_tensor("float32")

    def inner(value, bound):
        layers.cond(
            less(turns, bound),
            lambda: layers.assign(layers.tanh(value), out),
            lambda: layers.assign(value * 0.3, out),
        )

    layers.cond(less(turns, 2), lambda: inner(start, 1), lambda: inner(still, 3))
    return [layers.reshape(out, [-1, 4])]


def in_steps(x, start, still, turns):
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(x), rnn.memory(init=start)
        new = chosen(fc([word, state], 4, "step"), turns) + still
        rnn.update_memory(state, new)
        rnn.step_output(new)
    return [rnn()]


BUILDS = [of_a_switch, twice, in_a_loop, in_a_branch, of_two_branches, of_branches_in_each_other, in_steps]


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_as_operator_by_operator(build):
    batches = [*plain_batches(np.random.default_rng(0))]
    text = check(build, STATIC, [*batches, *batches[:2]])
    assert "run in segments" not in text or build is of_branches_in_each_other


@pytest.mark.parametrize("around", ["nothing", "a random number", "an update"])
def test_what_has_none_is_told(around):
    """And nothing has changed; the steps before and behind are as ever."""
    start, turns = data("start", [None, 4])(), fluid.data("turns", [1], "int64")
    seen = layers.create_global_var([1], 0.0, "float32", persistable=True, name="seen")
    value = start
    if around == "a random number":
        value = start * (layers.uniform_random([1], min=1.0, max=1.0 + 1e-7) > -1.0).astype("float32")
    elif around == "an update":
        layers.increment(seen)
    out = chosen(value, turns, always=False)
    exe, main = fluid.Executor(), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    feed = {"start": np.ones((2, 4), "float32")}
    steps = 0
    for count in (1, 1, 1, 5, 1, 5, 5, 1):
        feed["turns"] = np.array([count])
        if count == 5:
            with pytest.raises(
                fluid.core.EnforceNotMet, match=r"create_tensor_0[\s\S]*test_values_of_branches.py"
            ):
                exe.run(main, feed, [out])
        else:
            (found,) = exe.run(main, feed, [out])
            np.testing.assert_allclose(found, np.sin(feed["start"]), rtol=1e-6)
            steps += 1
    assert "assert_defined(" in exe.describe(main)
    if around == "an update":
        count = np.array(fluid.global_scope().find_var("seen").get_tensor()).item()
        assert count in (steps, steps + 3)  # operators before the one that fails may have run


def test_nobody_looks_where_nobody_asks():
    main, startup, wanted = trained(
        lambda x, start, still, turns: [
            layers.cond(less(turns, 1), lambda: layers.sin(start), lambda: still * 2.0)
        ],
        STATIC,
    )
    _, text = run(main, startup, wanted, [*plain_batches(np.random.default_rng(0))], "plan")
    assert "branch(" in text and "UNSET" not in text
