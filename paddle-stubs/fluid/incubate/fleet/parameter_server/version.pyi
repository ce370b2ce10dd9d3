# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.incubate.fleet.base.fleet_base import (
    BUILD_MODE as BUILD_MODE,
    Mode as Mode,
    is_transpiler as is_transpiler,
)
