# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.eager.tracer import (
    BackwardStrategy as BackwardStrategy,
)
from fluidlite.fluid import (
    core as core,
)
