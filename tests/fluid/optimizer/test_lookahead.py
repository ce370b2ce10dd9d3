"""LookaheadOptimizer: slow weights every k steps."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name

L, opt = fluid.layers, fluid.optimizer


def weights(optimizer, steps, name="w"):
    """The value of a variable after each step of training w (ones) by the mean of x @ w."""
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        x = fluid.data("x", [None, 2])
        attr = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(1.0))
        loss = L.mean(L.fc(x, 1, bias_attr=False, param_attr=attr))
        ops, pairs = optimizer.minimize(loss)
        assert [(param.name, grad.name) for param, grad in pairs] == [("w", "w@GRAD")] and len(ops) >= 1
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        seen = []
        for _ in range(steps):
            exe.run(feed={"x": np.ones((3, 2), "float32")})
            seen.append(float(np.array(fluid.global_scope().find_var(name).get_tensor()).ravel()[0]))
        return seen


def test_slow_weights_follow_every_k_steps(engine):
    # Each step of SGD takes 0.1 off; after two steps the fast weights go back by three quarters of the way.
    fast = weights(opt.LookaheadOptimizer(opt.SGD(0.1), alpha=0.25, k=2), 5)
    np.testing.assert_allclose(fast, [0.9, 0.95, 0.85, 0.9, 0.8], rtol=1e-5)
    slow = weights(opt.LookaheadOptimizer(opt.SGD(0.1), alpha=0.25, k=2), 5, "w@SLOW")
    np.testing.assert_allclose(slow, [1, 0.95, 0.95, 0.9, 0.9], rtol=1e-5)
    assert weights(opt.LookaheadOptimizer(opt.SGD(0.1), k=2), 3, "lookahead_step") == [1, 2, 3]


def test_any_optimizer_may_be_inside(engine):
    plain = weights(opt.Adam(0.1), 3)
    kept = weights(opt.LookaheadOptimizer(opt.Adam(0.1), alpha=1.0, k=3), 3)
    np.testing.assert_allclose(kept, plain, rtol=1e-6)
    back = weights(opt.LookaheadOptimizer(opt.Adam(0.1), alpha=0.0, k=3), 3)
    np.testing.assert_allclose(back, [*plain[:2], 1.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inner_optimizer": None}, "inner optimizer can not be None"),
        ({"alpha": 1.5}, "alpha should be larger or equal to 0.0"),
        ({"k": 0}, "k should be a positive integer, got 0"),
        ({"k": 2.5}, "k should be a positive integer, got 2.5"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(AssertionError, match=message):
        opt.LookaheadOptimizer(**{"inner_optimizer": opt.SGD(0.1), **arguments})
