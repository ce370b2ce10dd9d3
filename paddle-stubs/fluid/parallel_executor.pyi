# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    compiler as compiler,
    core as core,
    executor as executor,
    framework as framework,
)
from fluidlite.data_feeder import (
    check_type as check_type,
)
from fluidlite.parallel_executor import (
    BuildStrategy as BuildStrategy,
    ExecutionStrategy as ExecutionStrategy,
    ParallelExecutor as ParallelExecutor,
)
