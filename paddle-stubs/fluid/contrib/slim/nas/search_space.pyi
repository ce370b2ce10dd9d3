# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.nas.controller_server import (
    SearchSpace as SearchSpace,
)
