# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.average import (
    WeightedAverage as WeightedAverage,
)
