# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    executor as executor,
)
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
)
from fluidlite.fluid.contrib.slim.graph import (
    GraphWrapper as GraphWrapper,
    SlimGraphExecutor as SlimGraphExecutor,
)
from fluidlite.reader.feeder import (
    DataFeeder as DataFeeder,
)
