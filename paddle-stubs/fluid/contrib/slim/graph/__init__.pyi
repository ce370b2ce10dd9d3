# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    executor as executor,
    graph_wrapper as graph_wrapper,
)
from fluidlite.contrib.slim.graph.executor import (
    SlimGraphExecutor as SlimGraphExecutor,
)
from fluidlite.contrib.slim.graph.graph_wrapper import (
    GraphWrapper as GraphWrapper,
    OpWrapper as OpWrapper,
    VarWrapper as VarWrapper,
)
