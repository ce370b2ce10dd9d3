# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    executor as executor,
    framework as framework,
)
from fluidlite.executor.parallel.compiler import (
    ParallelExecutor as ParallelExecutor,
)
from fluidlite.executor.parallel.strategies import (
    BuildStrategy as BuildStrategy,
    ExecutionStrategy as ExecutionStrategy,
)
from fluidlite.fluid import (
    compiler as compiler,
    core as core,
)
from fluidlite.fluid.data_feeder import (
    check_type as check_type,
)
