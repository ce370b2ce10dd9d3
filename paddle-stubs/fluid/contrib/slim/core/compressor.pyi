# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base.place import (
    CPUPlace as CPUPlace,
)
from fluidlite.fluid import (
    compiler as compiler,
    io as io,
    profiler as profiler,
)
from fluidlite.fluid.contrib.slim.core import (
    Compressor as Compressor,
    ConfigFactory as ConfigFactory,
    Context as Context,
    EOFException as EOFException,
    GraphWrapper as GraphWrapper,
    SlimGraphExecutor as SlimGraphExecutor,
    cached_reader as cached_reader,
    get_logger as get_logger,
    scope_guard as scope_guard,
)
from fluidlite.fluid.contrib.slim.graph import (
    OpWrapper as OpWrapper,
    VarWrapper as VarWrapper,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.reader.feeder import (
    DataFeeder as DataFeeder,
)
from fluidlite.reader.loader.generator import (
    Loader as DataLoaderBase,
)
