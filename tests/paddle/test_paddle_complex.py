"""`paddle.complex` in programs, and its refusals; numbers of dygraph mode are in the recorded case `d_complex`."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph
from fluidlite.base.errors import StaticModeError
from fluidlite.paddle import complex as functions

A = np.array([[1 + 2j, 3 - 1j], [0.5j, 2]], np.complex64)


def test_in_programs(programs):
    x = fluid.ComplexVariable(*(fluid.data(name, [2, 2]) for name in ("real", "imag")))
    y = functions.elementwise_div(functions.matmul(x, x), functions.sum(x, dim=[0], keep_dim=True))
    with pytest.raises(StaticModeError, match=r"numpy\(\)"):
        x.numpy()
    real, imag = fluid.Executor().run(
        feed={"real": A.real.copy(), "imag": A.imag.copy()}, fetch_list=[y.real, y.imag]
    )
    np.testing.assert_allclose(real + 1j * imag, A @ A / A.sum(0, keepdims=True), rtol=1e-5)


def test_tensors_of_complex_numbers():
    with dygraph.guard():
        x = dygraph.to_variable(A)
        assert x.shape == [2, 2] and x.dtype == "complex64" and str(x).startswith("REAL: ")
        assert (x.numpy() == A).all() and not isinstance(x, fluid.Variable)
        with pytest.warns(UserWarning, match="inplace=True is for programs"):
            assert functions.reshape(x, [4], inplace=True).shape == [4] and x.shape == [2, 2]


def test_refusals():
    with dygraph.guard():
        real = dygraph.to_variable(np.ones((2, 2), np.float32))
        with pytest.raises(
            ValueError, match="at least one of the inputs of paddle.complex.kron must be a Complex"
        ):
            functions.kron(real, real)
        with pytest.raises(ValueError, match="the input of paddle.complex.trace must be a ComplexVariable"):
            functions.trace(real)
        with pytest.raises(AttributeError, match="got NoneType"):
            fluid.ComplexVariable(real, None)
        with pytest.raises(AssertionError, match="same shape"):
            fluid.ComplexVariable(real, dygraph.to_variable(np.ones(2, np.float32)))
