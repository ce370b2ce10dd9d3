"""Distributions: densities, entropies and divergences against SciPy, and what draws look like."""

import numpy as np
import pytest
from scipy import stats

import fluidlite as fluid

layers = fluid.layers
LOW = np.array([[0.0, -1.0, 0.2]], "float32")
WIDTH = np.array([[2.0, 3.5, 0.7]], "float32")
VALUE = np.array([[0.5, 1.0, 0.3]], "float32")


pytestmark = pytest.mark.usefixtures("alone")


def run(*fetches, **feed):
    return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=list(fetches))


def data(name, *shape):
    return fluid.data(name, list(shape), "float32")


def test_uniform():
    fed = layers.Uniform(data("low", 1, 3), data("high", 1, 3))
    value = data("value", 1, 3)
    plain = layers.Uniform(LOW, LOW + WIDTH)
    got = run(
        *(of.entropy() for of in (fed, plain)), *(of.log_prob(value) for of in (fed, plain)),
        low=LOW, high=LOW + WIDTH, value=VALUE,
    )  # fmt: skip
    for found, want in zip(got, [np.log(WIDTH)] * 2 + [-np.log(WIDTH)] * 2, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5)
    outside = layers.Uniform(0.0, 1.0).log_prob(value)
    assert run(outside, low=LOW, high=LOW + WIDTH, value=VALUE + 2)[0].tolist() == [[-np.inf] * 3]


def test_normal():
    value = data("value", 1, 3)
    one, other = layers.Normal(LOW, WIDTH), layers.Normal(0.0, 1.0)
    entropy, density, divergence = run(
        one.entropy(), one.log_prob(value), one.kl_divergence(other), value=VALUE
    )
    np.testing.assert_allclose(entropy, stats.norm.entropy(LOW, WIDTH), rtol=1e-5)
    np.testing.assert_allclose(density, stats.norm.logpdf(VALUE, LOW, WIDTH), rtol=1e-5)
    np.testing.assert_allclose(divergence, (WIDTH**2 + LOW**2 - 1) / 2 - np.log(WIDTH), rtol=1e-4, atol=1e-6)


def test_categorical_and_its_gradient():
    logits, others = data("logits", 2, 3), data("others", 2, 3)
    logits.stop_gradient = False
    one, other = layers.Categorical(logits), layers.Categorical(others)
    divergence = one.kl_divergence(other)
    (slope,) = fluid.gradients(layers.reduce_sum(divergence), [logits])
    a, b = np.random.default_rng(0).normal(size=(2, 2, 3)).astype("float32")
    entropy, found, d_logits = run(one.entropy(), divergence, slope, logits=a, others=b)
    p, q = (np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in (a, b))
    np.testing.assert_allclose(entropy[:, 0], stats.entropy(p, axis=1), rtol=1e-5)
    np.testing.assert_allclose(found[:, 0], stats.entropy(p, q, axis=1), rtol=1e-4)
    np.testing.assert_allclose(d_logits, p * (np.log(p / q) - found), rtol=1e-3, atol=1e-5)


def test_multivariate_normal():
    one = layers.MultivariateNormalDiag(data("m", 2), data("s", 2, 2))
    other = layers.MultivariateNormalDiag(data("n", 2), data("t", 2, 2))
    m, n = np.array([0.3, 0.5], "float32"), np.array([0.2, 0.4], "float32")
    s, t = np.diag([0.4, 0.5]).astype("float32"), np.diag([0.3, 0.4]).astype("float32")
    entropy, divergence = run(one.entropy(), one.kl_divergence(other), m=m, s=s, n=n, t=t)
    np.testing.assert_allclose(entropy, [stats.multivariate_normal(m, s).entropy()], rtol=1e-5)
    np.testing.assert_allclose(divergence, [0.06542051], rtol=1e-4)


def test_draws():
    numbers, same = (
        layers.Normal(1.0, 4.0).sample([2000], seed=3),
        layers.Normal(1.0, 4.0).sample([2000], seed=3),
    )
    arrays = layers.Uniform(LOW[0], LOW[0] + WIDTH[0]).sample([500], seed=1)
    batch = layers.Normal(data("loc", None, 3), data("scale", None, 3)).sample([4, 5])
    got = run(numbers, same, arrays, batch, loc=LOW, scale=WIDTH)
    assert got[0].shape == (2000,) and abs(got[0].mean() - 1) < 0.4 and abs(got[0].std() - 4) < 0.3
    np.testing.assert_array_equal(got[0], got[1])
    assert got[2].shape == (500, 3) and got[3].shape == (4, 5, 1, 3)
    # As in Fluid from a width below the lower end on.
    assert (got[2] >= LOW - WIDTH).all() and (got[2] <= LOW + WIDTH).all()


def test_wrong_arguments():
    with pytest.raises(TypeError, match="The type of 'low' in Uniform must be float or ndarray"):
        layers.Uniform(1, 2)
    with pytest.raises(ValueError, match="if one argument is Variable, all arguments should be Variable"):
        layers.Normal(data("a", 1), 1.0)
    with pytest.raises(TypeError, match="The type of 'other' in kl_divergence must be Normal"):
        layers.Normal(0.0, 1.0).kl_divergence(3)
    with pytest.raises(TypeError, match="The type of 'seed' in sample must be int"):
        layers.Normal(0.0, 1.0).sample([3], seed="x")
    with pytest.warns(UserWarning, match="only support float32"):
        layers.Uniform([1.0, 2.0], 3.0)
