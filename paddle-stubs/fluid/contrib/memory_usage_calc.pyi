# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.contrib.memory_usage_calc import (
    DEBUG as DEBUG,
    Program as Program,
    dtype_to_size as dtype_to_size,
    memory_usage as memory_usage,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
