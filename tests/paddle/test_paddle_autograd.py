"""`paddle.autograd`: several tensors at once, functions with gradients of their own."""

import gc
import weakref

import numpy as np
import pytest

import fluidlite.paddle as paddle
from fluidlite.paddle.autograd import PyLayer, backward
from tests.refusals import refuses


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

    refuses(lambda: go((None, None)), ValueError, "for each of the 1 tensors that forward takes, got 2")
    refuses(lambda: go(1.0), TypeError, "backward of Wrong must return tensors, got float")
    refuses(lambda: go(paddle.ones([3])), ValueError, r"shape \[2\] has shape \[3\]")
    refuses(lambda: PyLayer.apply(paddle.ones([1])), NotImplementedError, r"defines forward\(ctx")
    with pytest.raises(RuntimeError, match="keep it out of the traced function"):
        paddle.jit.to_static(lambda x: Tanh.apply(x))(paddle.ones([1]))


def test_backward_of_several_tensors():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    backward([x.sum(), x * x], [None, paddle.to_tensor([1.0, 10.0])])
    assert x.grad.tolist() == [3.0, 41.0]
    refuses(lambda: backward(x.sum(), [None, None]), ValueError, "each of 1 tensors, got 2")
    refuses(lambda: backward(np.ones(1)), TypeError, "takes tensors, got ndarray")
