# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    executor as executor,
)
from fluidlite.contrib.slim.graph import (
    GraphWrapper as GraphWrapper,
    SlimGraphExecutor as SlimGraphExecutor,
)
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
)
from fluidlite.reader.feeder import (
    DataFeeder as DataFeeder,
)
