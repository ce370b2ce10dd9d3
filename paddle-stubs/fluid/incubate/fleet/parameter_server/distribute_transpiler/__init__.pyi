# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    distributed_strategy as distributed_strategy,
)
from fluidlite import (
    io as io,
)
from fluidlite.communicator import (
    Communicator as Communicator,
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
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
)
from fluidlite.incubate.fleet.base.fleet_base import (
    DistributedOptimizer as DistributedOptimizer,
    Fleet as Fleet,
)
from fluidlite.incubate.fleet.base.mode import (
    Mode as Mode,
)
from fluidlite.incubate.fleet.base.role_maker import (
    MPISymetricRoleMaker as MPISymetricRoleMaker,
)
from fluidlite.incubate.fleet.parameter_server.distribute_transpiler import (
    DistributedTranspiler as DistributedTranspiler,
    TranspilerOptimizer as TranspilerOptimizer,
    fleet as fleet,
)
from fluidlite.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    AsyncStrategy as AsyncStrategy,
    DistributedStrategy as DistributedStrategy,
    GeoStrategy as GeoStrategy,
    HalfAsyncStrategy as HalfAsyncStrategy,
    StrategyFactory as StrategyFactory,
    SyncStrategy as SyncStrategy,
    TrainerRuntimeConfig as TrainerRuntimeConfig,
)
from fluidlite.optimizer.base import (
    Optimizer as Optimizer,
)
from fluidlite.transpiler.distribute_transpiler import (
    DistributeTranspilerConfig as DistributeTranspilerConfig,
    DistributedMode as DistributedMode,
    DistributeTranspiler as OriginTranspiler,
    ServerRuntimeConfig as ServerRuntimeConfig,
)
