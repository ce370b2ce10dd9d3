# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.dygraph.jit.models import InputSpec as InputSpec
from fluidlite.paddle.static.input import (
    data as data,
)
