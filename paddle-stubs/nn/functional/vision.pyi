# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.functional.common import (
    affine_grid as affine_grid,
    grid_sample as grid_sample,
)
