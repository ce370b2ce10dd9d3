# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    compiler as compiler,
    io as io,
    profiler as profiler,
)
from fluidlite.base.place import (
    CPUPlace as CPUPlace,
)
from fluidlite.contrib.slim.core.compressor import (
    Compressor as Compressor,
    Context as Context,
    cached_reader as cached_reader,
)
from fluidlite.contrib.slim.core.config import (
    ConfigFactory as ConfigFactory,
)
from fluidlite.contrib.slim.graph.executor import (
    SlimGraphExecutor as SlimGraphExecutor,
)
from fluidlite.contrib.slim.graph.graph_wrapper import (
    GraphWrapper as GraphWrapper,
    OpWrapper as OpWrapper,
    VarWrapper as VarWrapper,
)
from fluidlite.core import (
    EOFException as EOFException,
)
from fluidlite.executor.tensors.scope import (
    scope_guard as scope_guard,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.log_helper import (
    get_logger as get_logger,
)
from fluidlite.reader.feeder import (
    DataFeeder as DataFeeder,
)
from fluidlite.reader.loader.generator import (
    Loader as DataLoaderBase,
)
