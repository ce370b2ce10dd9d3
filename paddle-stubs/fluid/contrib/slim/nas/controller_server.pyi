# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.nas.controller_server import (
    ControllerServer as ControllerServer,
    get_logger as get_logger,
)
