# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.small_modules import (
    L1Decay as L1Decay,
    L2Decay as L2Decay,
)
