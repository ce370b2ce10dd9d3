# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.eager.tracer import (
    BackwardStrategy as BackwardStrategy,
)
