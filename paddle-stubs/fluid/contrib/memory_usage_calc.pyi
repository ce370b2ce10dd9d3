# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.contrib.model_stat import (
    DEBUG as DEBUG,
    dtype_to_size as dtype_to_size,
    memory_usage as memory_usage,
)
from fluidlite.framework import (
    Program as Program,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
