# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    executor as executor,
)
from fluidlite.contrib.slim.graph.executor import (
    DataFeeder as DataFeeder,
    GraphWrapper as GraphWrapper,
    SlimGraphExecutor as SlimGraphExecutor,
)
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
)
