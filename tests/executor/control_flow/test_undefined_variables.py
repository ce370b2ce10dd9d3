"""Variables that only a branch defines: plans check undefined flags where they are read."""

import numpy as np
import pytest

import fluidlite as fluid

from .test_loops_in_scans import STATIC, looped, plain_batches
from .test_scans import check, data, fc, number, run, trained

layers = fluid.layers


def less(trips, bound):
    return layers.less_than(trips, number(bound))


def chosen(value, trips, always=True):
    """A variable that only the cases of a Switch define."""
    out = layers.create_tensor("float32")
    with layers.Switch() as switch:
        with switch.case(less(trips, 1)):
            layers.assign(fc(value, 4, "one"), out)
        with switch.case(less(trips, 2)):
            layers.assign(layers.sin(value), out)
        if always:
            with switch.default():
                layers.assign(value * 0.5, out)
    return layers.reshape(out, [-1, 4])


def of_a_switch(x, start, still, trips):
    return [chosen(start, trips) * still]


def twice(x, start, still, trips):
    return [chosen(chosen(start, trips), trips + 1) * still]


def in_a_loop(x, start, still, trips):
    return [looped(number(2), start, lambda value: chosen(value, trips) + still)]


def in_a_branch(x, start, still, trips):
    return [layers.cond(less(trips, 2), lambda: chosen(start, trips), lambda: chosen(still, trips))]


def of_two_branches(x, start, still, trips):
    """Two branches on one condition; the second reads a result of the first."""
    few, made, out = less(trips, 2), layers.create_tensor("float32"), layers.scale(still, 1.0)
    layers.cond(few, lambda: layers.assign(layers.tanh(start), made) and None)
    layers.cond(few, lambda: layers.assign(layers.reshape(made, [-1, 4]) * 2.0, out) and None)
    return [out]


def of_branches_in_each_other(x, start, still, trips):
    out = layers.create_tensor("float32")

    def inner(value, bound):
        layers.cond(
            less(trips, bound),
            lambda: layers.assign(layers.tanh(value), out),
            lambda: layers.assign(value * 0.3, out),
        )

    layers.cond(less(trips, 2), lambda: inner(start, 1), lambda: inner(still, 3))
    return [layers.reshape(out, [-1, 4])]


def in_steps(x, start, still, trips):
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(x), rnn.memory(init=start)
        new = chosen(fc([word, state], 4, "step"), trips) + still
        rnn.update_memory(state, new)
        rnn.step_output(new)
    return [rnn()]


BUILDS = [of_a_switch, twice, in_a_loop, in_a_branch, of_two_branches, of_branches_in_each_other, in_steps]


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_as_operator_by_operator(build):
    batches = [*plain_batches(np.random.default_rng(0))]
    text = check(build, STATIC, [*batches, *batches[:2]])
    assert "run in segments" not in text or build is of_branches_in_each_other


@pytest.mark.parametrize("before", ["nothing", "a random number", "an update"])
def test_undefined_reads_are_reported(before):
    """The failed step changes nothing; the steps before and after it are right."""
    start, trips = data("start", [None, 4])(), fluid.data("trips", [1], "int64")
    seen = layers.create_global_var([1], 0.0, "float32", persistable=True, name="seen")
    value = start
    if before == "a random number":
        value = start * (layers.uniform_random([1], min=1.0, max=1.0 + 1e-7) > -1.0).astype("float32")
    elif before == "an update":
        layers.increment(seen)
    out = chosen(value, trips, always=False)
    exe, main = fluid.Executor(), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    feed = {"start": np.ones((2, 4), "float32")}
    steps = 0
    for count in (1, 1, 1, 5, 1, 5, 5, 1):
        feed["trips"] = np.array([count])
        if count == 5:
            with pytest.raises(
                fluid.core.EnforceNotMet, match=r"create_tensor_0[\s\S]*test_undefined_variables.py"
            ):
                exe.run(main, feed, [out])
        else:
            (found,) = exe.run(main, feed, [out])
            np.testing.assert_allclose(found, np.sin(feed["start"]), rtol=1e-6)
            steps += 1
    assert "assert_defined(" in exe.describe(main)
    if before == "an update":
        count = np.array(fluid.global_scope().find_var("seen").get_tensor()).item()
        assert count in (steps, steps + 3)  # operators before the one that fails may have run


def test_flags_without_a_check_are_dropped():
    main, startup, wanted = trained(
        lambda x, start, still, trips: [
            layers.cond(less(trips, 1), lambda: layers.sin(start), lambda: still * 2.0)
        ],
        STATIC,
    )
    _, text = run(main, startup, wanted, [*plain_batches(np.random.default_rng(0))], "plan")
    assert "branch(" in text and "UNSET" not in text
