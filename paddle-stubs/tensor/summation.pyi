# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.tensor.summation import (
    einsum as einsum,
)
