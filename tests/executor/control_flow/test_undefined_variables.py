"""Variables that only a branch defines: plans check undefined flags where they are read."""

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import data, number, run, trained
from .programs import batches, declared

layers = fluid.layers


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
    out = layers.create_tensor("float32")
    with layers.Switch() as switch, switch.case(layers.less_than(trips, number(2))):
        layers.assign(layers.sin(value), out)
    out = layers.reshape(out, [-1, 4])
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
    def build(x, words, start, still, trips):
        few = layers.less_than(trips, number(1))
        return [layers.cond(few, lambda: layers.sin(start), lambda: still * 2.0)]

    _, text = run(trained(build, declared()), batches(), "plan")
    assert "branch(" in text and "UNSET" not in text
