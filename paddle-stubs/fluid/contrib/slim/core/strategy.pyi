# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.core.config import (
    Strategy as Strategy,
)
