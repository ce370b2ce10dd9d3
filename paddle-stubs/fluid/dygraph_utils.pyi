# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.dygraph_utils import (
    dygraph_only as dygraph_only,
)
