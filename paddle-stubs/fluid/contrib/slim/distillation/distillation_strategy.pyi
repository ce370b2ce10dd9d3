# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.slim.distillation.distillation_strategy import (
    DistillationStrategy as DistillationStrategy,
    Program as Program,
    Strategy as Strategy,
    program_guard as program_guard,
)
from fluidlite.executor.running.executor import (
    Executor as Executor,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.log_helper import (
    get_logger as get_logger,
)
