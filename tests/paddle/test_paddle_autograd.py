"""`paddle.autograd`: several tensors at once, functions with gradients of their own."""

import gc
import weakref

import numpy as np
import pytest

import fluidlite.paddle as paddle
from fluidlite.paddle.autograd import PyLayer, backward


class Tanh(PyLayer):
    @staticmethod
    def forward(ctx, x, factor=1.0):
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        ctx.factor = factor
        return y * factor

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - y * y) * ctx.factor


class SumAndProduct(PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x + y, x * y

    @staticmethod
    def backward(ctx, d_sum, d_product):
        x, y = ctx.saved_tensor()
        return d_sum + d_product * y, None


def test_a_function_with_its_own_gradient_is_part_of_a_chain():
    x = paddle.to_tensor([0.5, -1.0], stop_gradient=False)
    y = Tanh.apply(x * 2, factor=3.0)
    (y * y).sum().backward()
    t = np.tanh(2 * x.numpy())
    np.testing.assert_allclose(y.numpy(), 3 * t, rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), 2 * 3 * t * 3 * (1 - t * t) * 2, rtol=1e-5)


def test_several_results_and_a_gradient_that_is_none():
    x, y = (paddle.to_tensor([value], stop_gradient=False) for value in (2.0, 5.0))
    added, multiplied = SumAndProduct.apply(x, y)
    multiplied.backward(retain_graph=True)
    assert x.grad.item() == 5.0 and y.grad is None
    added.backward()
    assert x.grad.item() == 6.0


def test_nothing_is_recorded_without_need():
    x = paddle.to_tensor([1.0])
    assert Tanh.apply(x).stop_gradient
    x.stop_gradient = False
    with paddle.no_grad():
        assert Tanh.apply(x).stop_gradient
    assert not Tanh.apply(x).stop_gradient


def test_saved_tensors_go_with_the_result():
    class Keep(Tanh):
        @staticmethod
        def forward(ctx, x):
            seen.append(weakref.ref(ctx))
            y = paddle.tanh(x)
            ctx.save_for_backward(y)
            return y

    seen = []
    gc.disable()
    try:
        Keep.apply(paddle.to_tensor([1.0], stop_gradient=False))
        assert seen[0]() is None
    finally:
        gc.enable()


def test_what_is_wrong_is_named():
    class Wrong(PyLayer):
        answer = None

        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            return Wrong.answer

    def go(answer):
        Wrong.answer = answer
        Wrong.apply(paddle.to_tensor([1.0, 2.0], stop_gradient=False)).sum().backward()

    with pytest.raises(ValueError, match="for each of the 1 tensors that forward takes, got 2"):
        go((None, None))
    with pytest.raises(TypeError, match="backward of Wrong must return tensors, got float"):
        go(1.0)
    with pytest.raises(ValueError, match=r"shape \[2\] has shape \[3\]"):
        go(paddle.ones([3]))
    with pytest.raises(NotImplementedError, match=r"defines forward\(ctx"):
        PyLayer.apply(paddle.ones([1]))
    with pytest.raises(RuntimeError, match="keep it out of the traced function"):
        paddle.jit.to_static(lambda x: Tanh.apply(x))(paddle.ones([1]))


def test_backward_of_several_tensors():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    backward([x.sum(), x * x], [None, paddle.to_tensor([1.0, 10.0])])
    assert x.grad.tolist() == [3.0, 41.0]
    with pytest.raises(ValueError, match="each of 1 tensors, got 2"):
        backward(x.sum(), [None, None])
    with pytest.raises(TypeError, match="takes tensors, got ndarray"):
        backward(np.ones(1))
