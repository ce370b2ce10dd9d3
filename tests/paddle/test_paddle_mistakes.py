"""Mistakes that newcomers make: the messages name the thing and say what to do."""

import numpy as np
import pytest

import fluidlite.paddle as paddle
from fluidlite.base.errors import NotSupportedError
from fluidlite.paddle import nn


class Forgetful(nn.Layer):
    def __init__(self):
        self.size = 1

    def forward(self, x):
        return x


class ForgetfulToo(nn.Layer):
    def __init__(self):
        self.weight = self.create_parameter([1])


def _prepared():
    model = paddle.Model(nn.Linear(4, 3))
    model.prepare(paddle.optimizer.SGD(0.1, parameters=model.parameters()), nn.CrossEntropyLoss())
    return model


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: Forgetful()(paddle.ones([1])), AttributeError,
         r"Forgetful .* call super\(\).__init__\(\) first"),
        (ForgetfulToo, AttributeError, r"ForgetfulToo .* call super\(\).__init__\(\) first"),
        (lambda: paddle.optimizer.SGD(0.1, parameters=nn.Linear(1, 1)), TypeError,
         "layer Linear: pass its param"),
        (lambda: paddle.optimizer.Adam(nn.Linear(1, 1).parameters(), 0.1), TypeError,
         "argument 'parameters'"),
        (lambda: paddle.Model(nn.Linear(4, 3)).prepare(None, nn.MSELoss), TypeError,
         r"make one, MSELoss\(...\)"),
        (lambda: _prepared().fit(paddle.io.Dataset, verbose=0), TypeError,
         "reads a paddle.io.Dataset.*got <class"),
        (lambda: paddle.to_tensor([[1, 2], [3]]), ValueError, "lists of one length on each level"),
        (lambda: nn.Linear(4, 2)(paddle.to_tensor(np.ones((3, 4)))), ValueError, "cast one of them"),
        (lambda: paddle.amp.auto_cast(), NotSupportedError,
         "paddle.amp .*leave auto_cast and GradScaler away"),
        (lambda: paddle.distributed.fleet, NotSupportedError, "fluid.incubate.fleet.collective"),
        (lambda: paddle.vision.models, NotSupportedError, "source of the network"),
    ],
)  # fmt: skip
def test_messages(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_modules_of_later_releases_say_what_to_do():
    with pytest.raises(
        ImportError, match="paddle.amp exists in Paddle but not in fluidlite: everything is computed"
    ):
        from fluidlite.paddle import amp  # noqa: F401
