"""Fixtures for tests of the 2.0 names."""

import numpy as np
import pytest

import fluidlite.paddle as paddle
from fluidlite.framework import mode


def _eager(function, arrays):
    return function(*(paddle.to_tensor(array) for array in arrays))


def _static(function, arrays):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with mode.guard(False), paddle.static.program_guard(main, startup):
        given = [
            paddle.static.data(f"in{number}", list(array.shape), array.dtype)
            for number, array in enumerate(arrays)
        ]
        made = function(*given)
        fetches = list(made) if isinstance(made, (list, tuple)) else [made]
        with paddle.static.scope_guard(paddle.fluid.Scope()):
            executor = paddle.static.Executor()
            executor.run(startup)
            feed = {var.name: array for var, array in zip(given, arrays, strict=True)}
            return [np.asarray(item) for item in executor.run(main, feed=feed, fetch_list=fetches)]


@pytest.fixture(params=["eager", "static"])
def compute(request):
    """`compute(function, *arrays)`: what `function` gives for tensors with those elements, as a list of arrays.

    The test runs twice: at once on eager tensors, and as a program.
    """

    def run(function, *arrays):
        arrays = [np.asarray(array) for array in arrays]
        if request.param == "static":
            return _static(function, arrays)
        made = _eager(function, arrays)
        return [item.numpy() for item in (made if isinstance(made, (list, tuple)) else [made])]

    return run


@pytest.fixture
def slope():
    """`slope(function, *arrays)`: compares gradients of the sum of what `function` gives, weighted by cosines, with
    differences; float64."""

    def check(function, *arrays, step=1e-6, rtol=1e-4, atol=1e-6):
        arrays = [np.asarray(array, "float64") for array in arrays]
        tensors = [paddle.to_tensor(array, stop_gradient=False) for array in arrays]
        made = function(*tensors)
        weights = np.cos(np.arange(made.size)).reshape(made.shape)
        (made * paddle.to_tensor(weights)).sum().backward()

        def total():
            with paddle.no_grad():
                return float(
                    (function(*(paddle.to_tensor(array) for array in arrays)).numpy() * weights).sum()
                )

        for array, tensor in zip(arrays, tensors, strict=True):
            numeric = np.zeros_like(array)
            for place in np.ndindex(array.shape):
                kept = array[place]
                array[place] = kept + step
                above = total()
                array[place] = kept - step
                numeric[place] = (above - total()) / (2 * step)
                array[place] = kept
            np.testing.assert_allclose(tensor.gradient(), numeric, rtol=rtol, atol=atol)

    return check
