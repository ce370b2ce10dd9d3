# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.static import (
    InputSpec as InputSpec,
    data as data,
)
