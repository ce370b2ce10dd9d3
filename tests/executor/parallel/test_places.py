"""Local and shared variables of several CPU places in training, evaluation, and after loading and setting."""

import json
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid

from .place_programs import PROGRAMS, normal, parallel, rows, run, started

L = fluid.layers
RECORDED = json.loads(Path(__file__).with_name("places.json").read_text())


@pytest.mark.parametrize("places", [2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_equal_those_of_paddle(name, places):
    found = run(fluid, PROGRAMS[name], places)
    recorded = RECORDED[f"{name} {places}"]
    for step, (ours, theirs) in enumerate(zip(found, recorded, strict=True)):
        for number, (value, expected) in enumerate(zip(ours, theirs, strict=True)):
            label = f"result {number} of step {step}"
            np.testing.assert_allclose(value, expected, rtol=2e-4, atol=1e-5, err_msg=label)


def value(name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


class Trained:
    """A program with batch normalisation after a step on two places, and its test program."""

    def __init__(self, shares=True):
        out = normal(fluid)
        self.loss = L.mean(L.square(out))
        self.main = fluid.default_main_program()
        self.test = self.main.clone(for_test=True)
        fluid.optimizer.SGD(0.1).minimize(self.loss)
        self.exe = started(fluid)
        self.compiled = parallel(fluid, 2, self.loss)
        self.evaluating = parallel(fluid, 2, main=self.test, shared=self.compiled if shares else None)
        self.first_rate = self.step(0)[1]

    def step(self, seed, fetched=("mean", "learning_rate_0")):
        return self.exe.run(self.compiled, feed={"x": rows(seed, 2)}, fetch_list=list(fetched))

    def means(self):
        """The statistics of both places, as the test program reads them."""
        return self.exe.run(self.evaluating, feed={"x": rows(0, 2)}, fetch_list=["mean"])[0].reshape(2, 2)


def set_by_hand(trained):
    fluid.global_scope().find_var("mean").get_tensor().set(np.array([3, 4], "float32"), fluid.CPUPlace())
    return [3, 4]


def loaded(trained):
    state = {"mean": np.array([5, 6], "float32")}
    fluid.io.set_program_state(trained.main, state)
    return [5, 6]


def startup_program_rerun(trained):
    trained.exe.run(fluid.default_startup_program())
    return [0, 0]


def trained_on_one_place(trained):
    trained.exe.run(trained.main, feed={"x": rows(3, 2)})
    return value("mean")


@pytest.mark.parametrize("change", [set_by_hand, loaded, startup_program_rerun, trained_on_one_place])
@pytest.mark.parametrize("shares", [True, False])
def test_writes_to_the_scope_reach_all_places(change, shares):
    """In real Paddle only the first place reads it."""
    trained = Trained(shares)
    trained.means()
    trained.step(1)
    expected = change(trained)
    np.testing.assert_allclose(trained.means(), [expected, expected], rtol=1e-6)
    own = [part.mean(axis=0) for part in np.split(rows(2, 2), 2)]
    np.testing.assert_allclose(
        trained.step(2)[0].reshape(2, 2), np.add(expected, own) / 2, rtol=1e-5, atol=1e-6
    )


def test_a_test_program_that_shares_nothing_takes_the_statistics_of_the_scope():
    """In real Paddle places after the first keep all variables as they were at the first evaluation."""
    trained = Trained(shares=False)
    for seed in range(1, 4):
        np.testing.assert_array_equal(trained.means(), [value("mean")] * 2)
        trained.step(seed)
    assert not np.array_equal(*trained.step(4)[0].reshape(2, 2)), "those of training differ all the same"


def test_a_rate_set_by_hand_reaches_all_places():
    """In real Paddle it reaches the first place only."""
    trained = Trained()
    assert trained.first_rate.tolist() == [np.float32(0.1)] * 2
    fluid.global_scope().find_var("learning_rate_0").get_tensor().set(np.array([0.5], "float32"), None)
    before = value("w")
    rate, gradient, weight = trained.step(1, ["learning_rate_0", "w@GRAD", "w"])
    assert rate.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(weight.reshape(2, -1), (before - 0.5 * gradient[:2]).T.repeat(2, 0), rtol=1e-6)


def test_setting_one_variable_leaves_other_local_variables_unchanged():
    trained = Trained()
    before = trained.means()
    fluid.global_scope().find_var("learning_rate_0").get_tensor().set(np.array([0.5], "float32"), None)
    assert not np.array_equal(*before)
    np.testing.assert_array_equal(trained.means(), before)


def test_programs_on_other_numbers_of_places_share_the_variables_of_the_scope():
    """Real Paddle refuses that."""
    trained = Trained()
    for places in (1, 3):
        evaluating = parallel(fluid, places, main=trained.test, shared=trained.compiled)
        found = trained.exe.run(evaluating, feed={"x": rows(0, 3)}, fetch_list=["mean"])[0]
        np.testing.assert_array_equal(found.reshape(places, 2), [value("mean")] * places)


def test_values_of_different_shapes_are_refused_or_kept_by_place():
    x = fluid.data("x", [None, None])
    twice = L.scale(x, 2.0)
    exe, compiled = started(fluid), parallel(fluid, 2)
    feed = [{"x": np.ones((2, 2 + place), "float32")} for place in range(2)]
    with pytest.raises(
        fluid.core.EnforceNotMet, match=rf"'{twice.name}' has .*\[2, 2\] and .*\[2, 3\].*return_merged=False"
    ):
        exe.run(compiled, feed=feed, fetch_list=[twice])
    by_place = exe.run(compiled, feed=feed, fetch_list=[twice], return_merged=False)[0]
    assert [part.shape for part in by_place] == [(2, 2), (2, 3)]


def test_with_reduce_a_shared_variable_takes_one_fed_value():
    x = fluid.data("x", [None, 2])
    total = L.create_global_var([1], 0.0, "float32", persistable=True, name="total")
    L.assign(total + L.reduce_sum(x), total)
    strategy = fluid.BuildStrategy()
    strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    exe, compiled = started(fluid), parallel(fluid, 2, strategy=strategy)
    feed = {"x": rows(0, 2), "total": np.arange(2, dtype="float32")}
    with pytest.raises(fluid.core.EnforceNotMet, match="'total' was fed with different values"):
        exe.run(compiled, feed=feed, fetch_list=[total])


def test_pruned_programs_share_local_variables():
    """In real Paddle places after the first have separate variables for each part."""
    trained = Trained()
    before = trained.means()
    feed = {"x": rows(1, 2)}
    part = trained.exe.run(trained.compiled, feed=feed, fetch_list=["mean"], use_prune=True)[0]
    own = [half.mean(axis=0) for half in np.split(feed["x"], 2)]
    np.testing.assert_allclose(part.reshape(2, 2), (before + own) / 2, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(trained.means(), part.reshape(2, 2))
