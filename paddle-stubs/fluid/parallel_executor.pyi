# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    executor as executor,
    framework as framework,
)
from fluidlite.fluid import (
    compiler as compiler,
    core as core,
)
from fluidlite.fluid.data_feeder import (
    check_type as check_type,
)
from fluidlite.fluid.parallel_executor import (
    BuildStrategy as BuildStrategy,
    ExecutionStrategy as ExecutionStrategy,
    ParallelExecutor as ParallelExecutor,
)
