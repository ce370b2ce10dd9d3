# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor.executor import (
    Executor as Executor,
)
from fluidlite.fluid.contrib.slim.core import (
    Strategy as Strategy,
)
from fluidlite.fluid.contrib.slim.distillation import (
    DistillationStrategy as DistillationStrategy,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
from fluidlite.framework import (
    Program as Program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
