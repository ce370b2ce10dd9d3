"""inplace_abn, beside batch_norm and an activation of its own."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (3, 2, 2, 2)).astype("float32")
GIVEN = {
    "X": X,
    "Scale": np.array([1.5, -0.7], "float32"),
    "Bias": np.array([0.2, -0.1], "float32"),
    "Mean": np.array([0.3, 0.1], "float32"),
    "Variance": np.array([1.2, 0.8], "float32"),
}
CHANNELS = (1, -1, 1, 1)


def activated(y, activation, alpha):
    below = {"": y, "identity": y, "leaky_relu": alpha * y, "elu": alpha * np.expm1(y)}[activation]
    return np.where(y < 0, below, y)


@pytest.mark.parametrize("activation", ["", "identity", "leaky_relu", "elu"])
@pytest.mark.parametrize("moving", [False, True])
def test_inplace_abn(activation, moving):
    mean, variance = (GIVEN["Mean"], GIVEN["Variance"]) if moving else (X.mean((0, 2, 3)), X.var((0, 2, 3)))
    normal = (X - mean.reshape(CHANNELS)) / np.sqrt(variance + 1e-5).reshape(CHANNELS)
    y = normal * GIVEN["Scale"].reshape(CHANNELS) + GIVEN["Bias"].reshape(CHANNELS)
    attrs = {"activation": activation, "alpha": 0.3, "use_global_stats": moving}
    want = {"Y": activated(y, activation, 0.3).astype("float32")}
    check("inplace_abn", GIVEN, attrs, want, grads=["X", "Scale", "Bias"], rtol=1e-4, atol=1e-5)


def test_other_activations_cannot_be_inverted():
    with pytest.raises(OperatorError, match="activation must be identity, leaky_relu or elu, got 'relu'"):
        infer("inplace_abn", GIVEN, {"activation": "relu"})
    with fluid.program_guard(fluid.Program()), pytest.raises(AssertionError, match="only support act as"):
        layers.inplace_abn(fluid.data("x", [None, 2, 3, 3]), act="tanh")


@pytest.mark.parametrize("mode", ["plan", "interpret"])
def test_the_variable_gets_back_what_it_held(mode, monkeypatch):
    """relu's gradient looks at its result, over which inplace_abn was written."""
    monkeypatch.setenv("FLUIDLITE_ENGINE", mode)
    found = []
    for over in (True, False):
        main, start, exe = fluid.Program(), fluid.Program(), fluid.Executor()
        with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, start), fluid.unique_name.guard():
            x = fluid.data("x", [None, 2, 2, 2])
            x.stop_gradient = False
            h = layers.relu(x)
            if over:
                out = layers.inplace_abn(h, act="leaky_relu", act_alpha=0.2)
                assert out is h
            else:
                out = layers.leaky_relu(layers.batch_norm(h), alpha=0.2)
            loss = layers.reduce_sum(out * out * out)
            fluid.optimizer.SGD(0.1).minimize(loss)
            exe.run(start)
            found.append(exe.run(main, feed={"x": X}, fetch_list=[loss, "x@GRAD", h]))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
