"""Schedulers of `paddle.optimizer.lr`: values as a later Paddle gives them."""

import math

import numpy as np
import pytest

from fluidlite.eager import Tensor
from fluidlite.paddle.optimizer import lr

RECORDED = {
    "noam": (lambda: lr.NoamDecay(16, 4, 2.0), [0, 0.0625, 0.125, 0.1875, 0.25, 0.22360679774997896]),
    "piecewise": (lambda: lr.PiecewiseDecay([2, 4], [0.1, 0.05, 0.01]), [0.1, 0.1, 0.05, 0.05, 0.01, 0.01]),
    "natural exp": (lambda: lr.NaturalExpDecay(0.1, 0.5), [0.1, 0.06065306597126335, 0.036787944117144235]),
    "inverse": (lambda: lr.InverseTimeDecay(0.1, 0.5), [0.1, 0.06666666666666667, 0.05, 0.04]),
    "polynomial": (lambda: lr.PolynomialDecay(0.1, 3, 0.01, 2.0), [0.1, 0.05, 0.02, 0.01, 0.01]),
    "polynomial cycle": (
        lambda: lr.PolynomialDecay(0.1, 3, 0.01, 2.0, cycle=True),
        [0.1, 0.05, 0.02, 0.01, 0.02, 0.0125, 0.01, 0.014444444444444444],
    ),
    "warmup": (lambda: lr.LinearWarmup(0.3, 4, 0.05, 0.1), [0.05, 0.0625, 0.075, 0.0875, 0.3, 0.3]),
    "warmup of a scheduler": (
        lambda: lr.LinearWarmup(lr.PiecewiseDecay([2, 3], [0.1, 0.05, 0.01]), 3, 0.05, 0.1),
        [0.05, 0.06666666666666667, 0.08333333333333334, 0.1, 0.1, 0.05, 0.01, 0.01],
    ),
    "exponential": (lambda: lr.ExponentialDecay(0.1, 0.9), [0.1, 0.09, 0.081, 0.0729]),
    "exponential, later": (lambda: lr.ExponentialDecay(0.1, 0.9, last_epoch=3), [0.06561, 0.059049]),
    "multi step": (lambda: lr.MultiStepDecay(0.5, [2, 4], 0.5), [0.5, 0.5, 0.25, 0.25, 0.125, 0.125]),
    "step": (lambda: lr.StepDecay(0.5, 3), [0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.005]),
    "lambda": (lambda: lr.LambdaDecay(0.5, lambda e: 0.9**e), [0.5, 0.45, 0.405, 0.3645]),
    "multiplicative": (lambda: lr.MultiplicativeDecay(0.5, lambda e: 0.9), [0.5, 0.45, 0.405, 0.3645]),
    "cosine": (lambda: lr.CosineAnnealingDecay(0.5, 3, 0.1), [0.5, 0.4, 0.2, 0.1, 0.2, 0.4, 0.5, 0.4, 0.2]),
    "cosine, short": (lambda: lr.CosineAnnealingDecay(0.5, 1), [0.5, 0.0, 0.5, 0.0]),
}


@pytest.mark.parametrize("name", RECORDED)
def test_values_as_recorded(name):
    make, expected = RECORDED[name]
    scheduler = make()
    seen = []
    for _ in expected:
        assert scheduler() == scheduler()
        seen.append(scheduler())
        scheduler.step()
    np.testing.assert_allclose(seen, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", RECORDED)
def test_state_brings_a_scheduler_back(name):
    make, _ = RECORDED[name]
    scheduler, twin = make(), make()
    for _ in range(4):
        scheduler.step()
    twin.set_state_dict(scheduler.state_dict())
    for _ in range(3):
        assert twin() == scheduler()
        twin.step()
        scheduler.step()


def test_steps_to_an_epoch_and_states_that_do_not_fit():
    scheduler = lr.ExponentialDecay(0.1, 0.5)
    scheduler.step(5)
    assert (scheduler(), scheduler.last_epoch) == (0.1 / 32, 5)
    assert scheduler.state_dict() == {"last_epoch": 5, "last_lr": 0.1 / 32}
    with pytest.raises(RuntimeError, match=r"Can't find \[ last_epoch \]"):
        scheduler.set_state_dict({})
    with pytest.warns(UserWarning, match="unused values in state_dict .z."):
        scheduler.set_dict({"last_epoch": 2, "last_lr": 0.3, "z": 1})
    assert scheduler() == 0.3
    inner = lr.LinearWarmup(lr.ExponentialDecay(0.1, 0.9), 3, 0.0, 0.1).state_dict()
    assert inner == {"last_epoch": 0, "last_lr": 0.0, "LinearWarmup_LR": {"last_epoch": 0, "last_lr": 0.1}}


def test_says_what_it_does(capsys):
    lr.ExponentialDecay(0.5, 0.5, verbose=True).step()
    assert capsys.readouterr().out == (
        "Epoch 0: ExponentialDecay set learning rate to 0.5.\nEpoch 1: ExponentialDecay set learning rate to 0.25.\n"
    )
    plateau = lr.ReduceOnPlateau(0.5, patience=0, factor=0.5, verbose=True)
    for loss in (1.0, 2.0):
        plateau.step(loss)
    assert capsys.readouterr().out == "Epoch 2: ReduceOnPlateau set learning rate to 0.25.\n"


def test_reduce_on_plateau():
    scheduler = lr.ReduceOnPlateau(1.0, patience=1, cooldown=2)
    seen = []
    for k, loss in enumerate([1.0, 0.9, 0.89, 0.895, 0.9, 0.95, 0.8, 0.85, 0.9, 0.9, 0.9, 0.9, 0.7]):
        scheduler.step(Tensor(np.array([loss], "float32")) if k % 2 else loss)
        seen.append(scheduler())
    np.testing.assert_allclose(seen, [1] * 4 + [0.1] * 5 + [0.01] * 4)
    twin = lr.ReduceOnPlateau(1.0)
    twin.set_state_dict(scheduler.state_dict())
    assert (twin(), twin.best, twin.last_epoch) == (scheduler(), 0.7, 13)


def test_a_scheduler_of_ones_own():
    class Waves(lr.LRScheduler):
        def get_lr(self):
            return self.base_lr * math.cos(self.last_epoch)

    waves = Waves(0.5)
    waves.step()
    assert waves() == 0.5 * math.cos(1)
    with pytest.raises(NotImplementedError, match=r"define get_lr\(\)"):
        lr.LRScheduler(0.1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: lr.StepDecay("x", 3), TypeError, "The type of learning rate must be float"),
        (lambda: lr.ExponentialDecay(-0.1, 0.5), ValueError, "Invalid learning rate: -0.1"),
        (lambda: lr.StepDecay(0.1, 3.0), TypeError, "The type of 'step_size' must be 'int'"),
        (lambda: lr.StepDecay(0.1, 0), ValueError, "step_size must be at least 1"),
        (lambda: lr.StepDecay(0.1, 3, 2.0), ValueError, "gamma should be < 1.0"),
        (lambda: lr.MultiStepDecay(0.1, [3, 2]), ValueError, "must be incremented"),
        (lambda: lr.MultiStepDecay(0.1, 3), TypeError, "The type of 'milestones'"),
        (lambda: lr.MultiStepDecay(0.1, [3], 1.0), ValueError, "gamma should be < 1.0"),
        (lambda: lr.LambdaDecay(0.1, 3), TypeError, "The type of 'lr_lambda' in 'LambdaDecay'"),
        (lambda: lr.LinearWarmup(0.1, 3, 0.5, 0.1), AssertionError, "must be greater than start_lr"),
        (lambda: lr.LinearWarmup("x", 3, 0.0, 0.1), TypeError, "int, float or LRScheduler"),
        (lambda: lr.PolynomialDecay(0.1, 0), AssertionError, "'decay_steps' must be a positive integer"),
        (lambda: lr.CosineAnnealingDecay(0.1, 0), AssertionError, "'T_max' must be a positive integer"),
        (lambda: lr.PiecewiseDecay([1, 2], [0.1, 0.2]), ValueError, r"len\(values\) \[2\]"),
        (lambda: lr.PiecewiseDecay([], [0.1]), ValueError, "cannot be empty"),
        (lambda: lr.NoamDecay(0, 4), ValueError, "d_model should be greater than 0"),
        (lambda: lr.ReduceOnPlateau(1.0, "x"), ValueError, "mode: x is unknown"),
        (lambda: lr.ReduceOnPlateau(1.0, factor=1.0), ValueError, "gamma should be < 1.0"),
        (lambda: lr.ReduceOnPlateau(1.0, threshold_mode="x"), ValueError, "threshold mode: x is unknown"),
        (lambda: lr.ReduceOnPlateau(1.0).step("x"), TypeError, "metrics must be"),
        (lambda: lr.ReduceOnPlateau(1.0).step(np.ones(2)), AssertionError, r"metrics.shape is \[2\]"),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()
