# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.eager.autograd import (
    grad as grad,
    no_grad as no_grad,
)
from fluidlite.paddle.autograd import (
    PyLayer as PyLayer,
    PyLayerContext as PyLayerContext,
    backward as backward,
)
