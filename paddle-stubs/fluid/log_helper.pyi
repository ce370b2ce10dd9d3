# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.log_helper import (
    get_logger as get_logger,
)
