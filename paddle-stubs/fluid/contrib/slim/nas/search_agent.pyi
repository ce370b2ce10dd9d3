# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.nas import (
    SearchAgent as SearchAgent,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
