"""Runs a function eagerly and as a program."""

import numpy as np

from fluidlite import dygraph, layers
from fluidlite.dygraph import declarative, to_variable


def flat(value):
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (list, tuple)) else [value]


def seen(function, array):
    """The results of a function of an array, and the gradient of the sum of their squares."""
    with dygraph.guard():
        x = to_variable(array)
        x.stop_gradient = False
        found = flat(function(x))
        floats = [out for out in found if hasattr(out, "numpy") and "float" in str(out.numpy().dtype)]
        total = sum(layers.reduce_sum(out * out) for out in floats)
        if not getattr(total, "stop_gradient", True):
            total.backward()
        gradient = x.gradient()
        return [np.ravel(out.numpy() if hasattr(out, "numpy") else out) for out in found], gradient


def assert_same(function, sign):
    """Assert that a function of a 2x2 tensor has the same results and gradients eagerly and as a program."""
    array = sign * np.array([[1, 0.5], [0.25, 2]], "float32")
    eager, gradient = seen(function, array)
    declared, other = seen(declarative(function), array)
    assert len(eager) == len(declared)
    for one, two in zip(eager, declared, strict=True):
        np.testing.assert_allclose(two.astype("float64"), one, rtol=1e-5, atol=1e-5)
    if gradient is None:
        assert other is None or not other.any()
    else:
        np.testing.assert_allclose(other, gradient, rtol=1e-4, atol=1e-4)
