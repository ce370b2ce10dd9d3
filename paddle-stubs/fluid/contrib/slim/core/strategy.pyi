# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.slim.core.strategy import (
    Strategy as Strategy,
)
