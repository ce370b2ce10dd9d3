# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    distributed_strategy as distributed_strategy,
)
from fluidlite.executor.parallel.compiler import (
    ParallelExecutor as ParallelExecutor,
)
from fluidlite.fluid import (
    io as io,
)
from fluidlite.fluid.incubate.fleet.base.fleet_base import (
    DistributedOptimizer as DistributedOptimizer,
)
from fluidlite.fluid.incubate.fleet.base.role_maker import (
    MPISymetricRoleMaker as MPISymetricRoleMaker,
)
from fluidlite.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    AsyncStrategy as AsyncStrategy,
    Communicator as Communicator,
    CompiledProgram as CompiledProgram,
    DistributeTranspilerConfig as DistributeTranspilerConfig,
    DistributedMode as DistributedMode,
    DistributedStrategy as DistributedStrategy,
    DistributedTranspiler as DistributedTranspiler,
    Executor as Executor,
    Fleet as Fleet,
    GeoStrategy as GeoStrategy,
    HalfAsyncStrategy as HalfAsyncStrategy,
    Mode as Mode,
    Optimizer as Optimizer,
    OriginTranspiler as OriginTranspiler,
    Program as Program,
    StrategyFactory as StrategyFactory,
    SyncStrategy as SyncStrategy,
    TrainerRuntimeConfig as TrainerRuntimeConfig,
    TranspilerOptimizer as TranspilerOptimizer,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    fleet as fleet,
)
from fluidlite.fluid.transpiler.distribute_transpiler import (
    ServerRuntimeConfig as ServerRuntimeConfig,
)
