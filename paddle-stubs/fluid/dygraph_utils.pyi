# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.dygraph_utils import (
    dygraph_only as dygraph_only,
)
