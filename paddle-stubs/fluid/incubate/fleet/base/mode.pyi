# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.incubate.fleet.base.mode import (
    Mode as Mode,
)
