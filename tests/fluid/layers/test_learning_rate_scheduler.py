"""Learning rates of the first six steps, as Paddle 1.8.5 computed them."""

import numpy as np
import pytest

from fluidlite import layers
from fluidlite.executor.interpreter.interpreter import Interpreter
from fluidlite.executor.scope import Scope
from fluidlite.layers import learning_rate_scheduler as schedules

SCHEDULES = {
    "exponential": lambda: schedules.exponential_decay(0.1, 2, 0.5),
    "exponential stairs": lambda: schedules.exponential_decay(0.1, 2, 0.5, staircase=True),
    "natural exp": lambda: schedules.natural_exp_decay(0.1, 2, 0.5, True),
    "inverse time": lambda: schedules.inverse_time_decay(0.1, 2, 0.5),
    "polynomial": lambda: schedules.polynomial_decay(0.1, 3, 0.01, 2.0),
    "polynomial in cycles": lambda: schedules.polynomial_decay(0.1, 3, 0.01, 2.0, cycle=True),
    "noam": lambda: schedules.noam_decay(8, 3),
    "cosine": lambda: schedules.cosine_decay(0.1, 2, 5),
    "piecewise": lambda: schedules.piecewise_decay([1, 3], [0.1, 0.01, 0.001]),
    "warmup to a number": lambda: schedules.linear_lr_warmup(0.1, 3, 0.0, 0.1),
    "warmup to a schedule": lambda: schedules.linear_lr_warmup(
        schedules.exponential_decay(0.1, 2, 0.5), 3, 0.0, 0.1
    ),
}
RATES = {
    "exponential": [0.1, 0.0707107, 0.05, 0.0353553, 0.025, 0.0176777],
    "exponential stairs": [0.1, 0.1, 0.05, 0.05, 0.025, 0.025],
    "natural exp": [0.1, 0.1, 0.0606531, 0.0606531, 0.0367879, 0.0367879],
    "inverse time": [0.1, 0.08, 0.0666667, 0.0571429, 0.05, 0.0444444],
    "polynomial": [0.1, 0.05, 0.02, 0.01, 0.01, 0.01],
    "polynomial in cycles": [0.1, 0.05, 0.02, 0.01, 0.02, 0.0125],
    "noam": [0.0680414, 0.1360828, 0.2041241, 0.1767767, 0.1581139, 0.1443376],
    "cosine": [0.1, 0.1, 0.0904508, 0.0904508, 0.0654508, 0.0654508],
    "piecewise": [0.1, 0.01, 0.01, 0.001, 0.001, 0.001],
    "warmup to a number": [0, 0.0333333, 0.0666667, 0.1, 0.1, 0.1],
    "warmup to a schedule": [0, 0.0333333, 0.0666667, 0.0353553, 0.025, 0.0176777],
}


def _run(main, startup, var, steps=6):
    scope = Scope()
    Interpreter(startup, scope, {}).run()
    values = []
    for _ in range(steps):
        run = Interpreter(main, scope, {})
        run.run()
        values.append(run.fetch(var.name).array[0])
    return values


@pytest.mark.parametrize("case", sorted(RATES))
def test_rates(programs, case):
    build, expected = SCHEDULES[case], RATES[case]
    rate = build()
    np.testing.assert_allclose(_run(*programs, rate), expected, rtol=2e-6, atol=1e-7)
    assert all(op.attr("op_role") == 16 for op in programs[0].global_block().ops)


def test_schedules_share_one_counter_that_counts_first(programs):
    layers.data("x", [3])
    schedules.noam_decay(8, 3)
    schedules.exponential_decay(0.1, 2, 0.5)
    ops = programs[0].global_block().ops
    assert [op.type for op in ops].count("increment") == 1
    assert ops[0].type == "increment"
    counter = programs[0].global_block().var("@LR_DECAY_COUNTER@")
    assert counter.persistable
    assert counter.stop_gradient


def test_piecewise_and_warmup_keep_their_rate_in_a_variable(programs):
    assert schedules.piecewise_decay([1], [0.1, 0.01]).name == "learning_rate"
    warm = schedules.linear_lr_warmup(0.1, 3, 0.0, 0.1)
    assert (warm.name, warm.persistable) == ("learning_rate_warmup", True)


def test_step_counter(programs):
    counter = layers.autoincreased_step_counter(begin=5, step=2)
    assert layers.autoincreased_step_counter() is counter
    assert _run(*programs, counter, steps=3) == [6, 8, 10]
    assert counter.name == "@STEP_COUNTER@"


def test_bad_arguments(programs):
    with pytest.raises(ValueError, match="should be 1, got 2 values and 2 boundaries"):
        schedules.piecewise_decay([1, 2], [0.1, 0.2])
    with pytest.raises(TypeError, match="start_lr of linear_lr_warmup must be a number, got '0'"):
        schedules.linear_lr_warmup(0.1, 3, "0", 0.1)
