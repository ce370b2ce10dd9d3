# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.small_modules import (
    WeightedAverage as WeightedAverage,
)
