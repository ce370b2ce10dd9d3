"""Learning-rate schedules of dygraph mode: values and messages as Paddle 1.8.5 gives them."""

import numpy as np
import pytest

from fluidlite import dygraph, layers
from fluidlite.dygraph.learning_rate_scheduler import LearningRateDecay
from fluidlite.eager import Tensor
from tests.refusals import refuses

SCHEDULES = {
    "noam": lambda: dygraph.NoamDecay(16, 4, step=2, learning_rate=2.0),
    "piecewise": lambda: dygraph.PiecewiseDecay([2, 4], [0.1, 0.05, 0.01], 1),
    "natural exp": lambda: dygraph.NaturalExpDecay(0.1, 3, 0.5),
    "exponential": lambda: dygraph.ExponentialDecay(0.1, 3, 0.5),
    "exponential stairs": lambda: dygraph.ExponentialDecay(0.1, 3, 0.5, staircase=True),
    "inverse time": lambda: dygraph.InverseTimeDecay(0.1, 3, 0.5),
    "inverse time stairs": lambda: dygraph.InverseTimeDecay(0.1, 3, 0.5, staircase=True),
    "polynomial": lambda: dygraph.PolynomialDecay(0.1, 3, 0.01, power=2.0),
    "polynomial cycle": lambda: dygraph.PolynomialDecay(0.1, 3, 0.01, power=2.0, cycle=True),
    "cosine": lambda: dygraph.CosineDecay(0.1, 2, 4),
    "warmup": lambda: dygraph.LinearLrWarmup(0.3, 4, 0.05, 0.1, begin=0),
    "warmup of a schedule": lambda: dygraph.LinearLrWarmup(
        dygraph.PiecewiseDecay([4, 5], [0.1, 0.05, 0.01], 0), 3, 0.0, 0.1
    ),
}
# What Paddle 1.8.5 gave, call by call.
RECORDED = {
    "noam": [0.0625, 0.1875, 0.2236068, 0.18898223],
    "piecewise": [0.1, 0.05, 0.05, 0.01, 0.01],
    "natural exp": [0.1, 0.08464818, 0.07165313, 0.060653068, 0.051341712],
    "exponential": [0.1, 0.07937005, 0.06299605, 0.05],
    "exponential stairs": [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025],
    "inverse time": [0.1, 0.08571429, 0.074999996, 0.06666667, 0.06],
    "inverse time stairs": [0.1, 0.1, 0.1, 0.06666667, 0.06666667, 0.06666667, 0.05],
    "polynomial": [0.1, 0.049999997, 0.02, 0.01, 0.01],
    "polynomial cycle": [0.1, 0.049999997, 0.02, 0.01, 0.02, 0.0125, 0.01, 0.014444444, 0.01111111],
    "cosine": [0.1, 0.1, 0.08535534, 0.08535534, 0.049999997, 0.049999997, 0.014644662, 0.014644662, 0.0],
    "warmup": [0.0, 0.0125, 0.025, 0.0375, 0.3, 0.3],
    "warmup of a schedule": [0.033333335, 0.06666667, 0.1, 0.1, 0.05, 0.01, 0.01],
}


@pytest.mark.parametrize("name", RECORDED)
def test_values_as_recorded(name):
    make, expected = SCHEDULES[name], RECORDED[name]
    schedule = make()
    given = [schedule() for _ in expected]
    assert all(isinstance(rate, Tensor) and rate.shape == [1] for rate in given)
    np.testing.assert_allclose([rate.array[0] for rate in given], expected, rtol=2e-7, atol=1e-8)


def test_step_looks_and_calling_moves_on():
    schedule = dygraph.ExponentialDecay(0.5, 1, 0.5, begin=1, step=2, dtype="float64")
    assert [schedule.step(), schedule.step()] == [0.25, 0.25]
    assert schedule().array.dtype == np.float64
    assert schedule.step_num == 3
    assert float(schedule().numpy()) == 0.0625


def test_state_and_warnings():
    schedule = dygraph.NoamDecay(16, 4)
    schedule()
    assert schedule.state_dict() == {"step_num": 2}
    schedule.set_dict({"step_num": np.array([7])})
    assert schedule.step_num == 7
    refuses(lambda: schedule.set_dict({}), RuntimeError, r"Can't find \[ step_num \] in state_dict")
    with pytest.warns(UserWarning, match="unused values in state_dict .zzz."):
        schedule.set_dict({"step_num": 1, "zzz": 2})


def test_a_schedule_of_ones_own():
    class Halving(LearningRateDecay):
        def step(self):
            return 0.5**self.step_num

    halving = Halving()
    assert [float(halving()) for _ in range(3)] == [1, 0.5, 0.25]
    refuses(lambda: LearningRateDecay()(), NotImplementedError, r"implement step\(\)")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: dygraph.StepDecay(0.5, 3), [0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.005]),
        (lambda: dygraph.MultiStepDecay(0.5, [2, 4], 0.5), [0.5, 0.5, 0.25, 0.25, 0.125, 0.125]),
        (lambda: dygraph.LambdaDecay(0.5, lambda e: 0.9**e), [0.5, 0.45, 0.405, 0.3645, 0.32805]),
    ],
)
def test_schedules_that_go_by_epochs(make, expected):
    schedule = make()
    seen = []
    for _ in expected:
        rate = schedule()
        assert schedule() is rate
        seen.append(rate.array[0])
        schedule.epoch()
    np.testing.assert_allclose(seen, expected, rtol=1e-6)
    state = schedule.state_dict()
    assert state["epoch_num"] == len(expected)
    twin = make()
    twin.set_dict(state)
    assert float(twin()) == pytest.approx(float(schedule()))
    schedule.epoch(0)
    assert float(schedule()) == 0.5
    refuses(schedule.step, NotImplementedError, r"has no step\(\): call epoch\(\) once an epoch")


def warming(inner):
    return dygraph.LinearLrWarmup(inner, 2, 0.1, 0.4)


RESUMED = [
    # How many steps a schedule has when its state is saved, and the rates after that; `epoch` goes on before each.
    (lambda: warming(dygraph.PiecewiseDecay([2, 4], [1.0, 0.5, 0.25], 0)), 3, [0.5, 0.25, 0.25]),
    (lambda: warming(warming(dygraph.CosineDecay(0.5, 2, 5))), 1, [0.5, 0.4522542, 0.4522542]),
    (lambda: warming(dygraph.StepDecay(0.5, 1, 0.5)), 2, [0.0625, 0.03125, 0.015625]),
    (lambda: dygraph.PolynomialDecay(0.5, 4, 0.1, 2.0, cycle=True), 3, [0.125, 0.1, 0.15625]),
    (lambda: dygraph.NoamDecay(8, 3), 3, [0.1767767, 0.1581139, 0.1443376]),
]


@pytest.mark.parametrize(("make", "steps", "after"), RESUMED)
def test_schedules_in_the_middle_of_training_are_resumed(make, steps, after):
    def rates(schedule, count):
        found = []
        for _ in range(count):
            inner = getattr(schedule, "learning_rate", None)
            if isinstance(inner, dygraph.StepDecay):
                inner.epoch()
            found.append(float(schedule()))
        return found

    schedule, twin, of_paddle = make(), make(), make()
    rates(schedule, steps)
    rates(twin, 1)
    state = schedule.state_dict()
    twin.set_dict(state)
    assert rates(twin, 3) == pytest.approx(after, rel=1e-6)
    if not isinstance(getattr(schedule, "learning_rate", None), dygraph.StepDecay):
        of_paddle.set_dict({"step_num": state["step_num"]})
        assert rates(of_paddle, 3) == pytest.approx(after, rel=1e-6)


LOSSES = [1.0, 0.9, 0.89, 0.895, 0.9, 0.95, 0.8, 0.85, 0.9, 0.9, 0.9, 0.9, 0.7]


@pytest.mark.parametrize(
    ("options", "rates", "bad"),
    [
        ({"patience": 2}, [1] * 5 + [0.1] * 4 + [0.01] * 4, [0, 0, 0, 1, 2, 0, 0, 1, 2, 0, 1, 2, 0]),
        ({"patience": 2, "threshold_mode": "abs", "threshold": 0.05}, [1] * 4 + [0.1] * 5 + [0.01] * 4,
         [0, 0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2, 0]),
        ({"patience": 1, "cooldown": 2}, [1] * 4 + [0.1] * 5 + [0.01] * 4,
         [0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        ({"patience": 0, "min_lr": 0.2}, [1] * 3 + [0.2] * 10, [0] * 13),
        ({"patience": 2, "mode": "max"}, [1] * 3 + [0.1] * 3 + [0.01] * 3 + [0.001] * 3 + [0.0001],
         [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
        ({"patience": 0, "decay_rate": 0.999, "eps": 0.01}, [1] * 13, [0] * 13),
    ],
)  # fmt: skip
def test_reduce_on_plateau(options, rates, bad):
    schedule = dygraph.ReduceLROnPlateau(1.0, **options)
    seen, counted = [], []
    for loss in LOSSES:
        schedule.step(Tensor(np.array([loss], "float32")))
        seen.append(float(schedule()))
        counted.append(schedule.num_bad_epochs)
    np.testing.assert_allclose(seen, rates, rtol=1e-6)
    assert counted == bad
    state = schedule.state_dict()
    assert sorted(state) == ["best_loss", "cooldown_counter", "epoch_num", "learning_rate", "num_bad_epochs"]
    twin = dygraph.ReduceLROnPlateau(1.0)
    twin.set_dict(state)
    assert float(twin()) == pytest.approx(seen[-1])
    assert (twin.best_loss, twin.epoch_num) == (schedule.best_loss, 13)


def test_reduce_on_plateau_says_what_it_does(capsys):
    schedule = dygraph.ReduceLROnPlateau(1.0, patience=0, decay_rate=0.5, verbose=True)
    for loss in (1.0, 2.0):
        schedule.step(loss)
    assert capsys.readouterr().out == "Epoch 2: reducing learning rate from 1.0 to 0.5.\n"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: dygraph.NoamDecay(16, 4, begin=0)(), ZeroDivisionError, "negative power"),
        (lambda: dygraph.PiecewiseDecay([], [], 0), ValueError, "one value more than boundaries"),
        (lambda: dygraph.LinearLrWarmup("x", 3, 0.0, 0.1), TypeError, "the current type is x"),
        (lambda: dygraph.LinearLrWarmup(0.1, 3, 0.5, 0.1), AssertionError,
         "end_lr 0.1 must be greater than start_lr 0.5"),
        (lambda: dygraph.StepDecay("x", 3), TypeError, "The type of 'learning_rate' must be 'float, int'"),
        (lambda: dygraph.StepDecay(0.1, 3.0), TypeError, "The type of 'step_size' must be 'int'"),
        (lambda: dygraph.StepDecay(0.1, 0), ValueError, "step_size must be at least 1, got 0"),
        (lambda: dygraph.StepDecay(0.1, 3, 1.0), ValueError, "decay_rate should be < 1.0"),
        (lambda: dygraph.MultiStepDecay(0.1, 3), TypeError, "The type of 'milestones'"),
        (lambda: dygraph.MultiStepDecay(0.1, [3, 2]), ValueError,
         "The elements of milestones must be incremented"),
        (lambda: dygraph.LambdaDecay(0.1, 3), TypeError, "The type of 'lr_lambda' in 'LambdaDecay'"),
        (lambda: dygraph.ReduceLROnPlateau(1.0, mode="x"), ValueError, "mode: x is unknown"),
        (lambda: dygraph.ReduceLROnPlateau(1.0, threshold_mode="x"), ValueError,
         "threshold mode: x is unknown"),
        (lambda: dygraph.ReduceLROnPlateau(1.0, decay_rate=1.0), ValueError, "decay_rate should be < 1.0"),
        (lambda: dygraph.ReduceLROnPlateau("x"), TypeError,
         "The type of 'learning_rate' in 'ReduceLROnPlateau'"),
        (lambda: dygraph.ReduceLROnPlateau(1.0).step(), TypeError, "needs the loss"),
        (lambda: dygraph.ReduceLROnPlateau(1.0).step(np.ones(2)), AssertionError,
         r"current loss.shape is \[2\]"),
    ],
)  # fmt: skip
def test_bad_arguments(make, error, message):
    refuses(make, error, message)


def test_functions_of_layers_make_schedules_in_dygraph_mode(programs):
    with dygraph.guard():
        made = {
            dygraph.NoamDecay: layers.noam_decay(16, 4, 2.0),
            dygraph.PiecewiseDecay: layers.piecewise_decay([1], [0.1, 0.2]),
            dygraph.CosineDecay: layers.cosine_decay(0.1, 2, 3),
            dygraph.ExponentialDecay: layers.exponential_decay(0.1, 3, 0.5),
            dygraph.NaturalExpDecay: layers.natural_exp_decay(0.1, 3, 0.5),
            dygraph.InverseTimeDecay: layers.inverse_time_decay(0.1, 3, 0.5),
            dygraph.PolynomialDecay: layers.polynomial_decay(0.1, 3),
            dygraph.LinearLrWarmup: layers.linear_lr_warmup(0.1, 2, 0.0, 0.1),
        }
    assert all(type(schedule) is kind for kind, schedule in made.items())
    assert float(made[dygraph.NoamDecay]()) == 0.0625
    assert float(made[dygraph.PiecewiseDecay]()) == pytest.approx(0.1)
    assert not programs[0].global_block().ops


@pytest.mark.parametrize(
    "schedule, expected",
    [
        (lambda: dygraph.StepDecay(0.5, 3, 0.1), [0.5] * 3 + [0.05000000075] * 3 + [0.005000000354] * 3),
        (
            lambda: dygraph.StepDecay(0.7, 1, 0.9),
            [0.6999999881, 0.6299999952, 0.5669999719, 0.510299921, 0.4592699409, 0.4133429527, 0.3720086217],
        ),
        (
            lambda: dygraph.MultiStepDecay(0.5, [3, 5, 7], 0.1),
            [0.5] * 3 + [0.05000000075] * 2 + [0.005000000354] * 2 + [0.0005000000237] * 2,
        ),
    ],
)
def test_rates_of_epochs_are_computed_in_single_precision(schedule, expected):
    """The digits are those of Paddle 1.8.5."""
    with dygraph.guard():
        made, found = schedule(), []
        for _ in expected:
            found.append(f"{float(made().numpy()[0]):.10g}")
            made.epoch()
    assert found == [f"{rate:.10g}" for rate in expected]
