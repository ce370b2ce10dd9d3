# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.average import (
    WeightedAverage as WeightedAverage,
)
