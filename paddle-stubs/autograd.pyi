# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.autograd import (
    PyLayer as PyLayer,
    PyLayerContext as PyLayerContext,
    backward as backward,
    grad as grad,
    no_grad as no_grad,
)
