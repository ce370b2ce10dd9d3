# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.nas import (
    ControllerServer as ControllerServer,
    get_logger as get_logger,
)
