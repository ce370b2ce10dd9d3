# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.incubate.fleet.base.fleet_base import (
    Mode as Mode,
)
