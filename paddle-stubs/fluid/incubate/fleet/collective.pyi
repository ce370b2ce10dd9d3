# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    compiler as compiler,
    io as io,
)
from fluidlite.distributed.files import (
    BDFS as BDFS,
    LocalFS as LocalFS,
)
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
    ParallelExecutor as ParallelExecutor,
)
from fluidlite.executor.running.executor import (
    Executor as Executor,
)
from fluidlite.framework.program import (
    Program as Program,
)
from fluidlite.incubate.fleet.base.fleet_base import (
    DistributedOptimizer as DistributedOptimizer,
    Fleet as Fleet,
)
from fluidlite.incubate.fleet.base.mode import (
    Mode as Mode,
)
from fluidlite.incubate.fleet.collective import (
    Collective as Collective,
    CollectiveOpBasedOptimizer as CollectiveOpBasedOptimizer,
    CollectiveOptimizer as CollectiveOptimizer,
    DistFCConfig as DistFCConfig,
    DistributedStrategy as DistributedStrategy,
    LambConfig as LambConfig,
    fleet as fleet,
)
from fluidlite.incubate.fleet.collective.checkpoints import (
    TrainStatus as TrainStatus,
)
from fluidlite.transpiler import (
    distribute_transpiler as dist_transpiler,
)
