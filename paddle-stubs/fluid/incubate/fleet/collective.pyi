# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.distributed.files import (
    BDFS as BDFS,
    LocalFS as LocalFS,
)
from fluidlite.executor.parallel.compiler import (
    ParallelExecutor as ParallelExecutor,
)
from fluidlite.fluid import (
    compiler as compiler,
    io as io,
)
from fluidlite.fluid.incubate.fleet.collective import (
    Collective as Collective,
    CollectiveOpBasedOptimizer as CollectiveOpBasedOptimizer,
    CollectiveOptimizer as CollectiveOptimizer,
    CompiledProgram as CompiledProgram,
    DistFCConfig as DistFCConfig,
    DistributedOptimizer as DistributedOptimizer,
    DistributedStrategy as DistributedStrategy,
    Executor as Executor,
    Fleet as Fleet,
    LambConfig as LambConfig,
    Mode as Mode,
    Program as Program,
    TrainStatus as TrainStatus,
    fleet as fleet,
)
from fluidlite.fluid.transpiler import (
    distribute_transpiler as dist_transpiler,
)
