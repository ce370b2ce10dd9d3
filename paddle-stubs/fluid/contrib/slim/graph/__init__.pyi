# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    executor as executor,
    graph_wrapper as graph_wrapper,
)
from fluidlite.fluid.contrib.slim.graph import (
    GraphWrapper as GraphWrapper,
    OpWrapper as OpWrapper,
    SlimGraphExecutor as SlimGraphExecutor,
    VarWrapper as VarWrapper,
)
