# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.core.programs import (
    empty as empty,
    temp as temp,
)
