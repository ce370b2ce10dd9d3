# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.dygraph.backward_strategy import (
    BackwardStrategy as BackwardStrategy,
)
