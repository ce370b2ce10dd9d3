# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    AsyncStrategy as AsyncStrategy,
    DistributedStrategy as DistributedStrategy,
    GeoStrategy as GeoStrategy,
    HalfAsyncStrategy as HalfAsyncStrategy,
    StrategyFactory as StrategyFactory,
    SyncStrategy as SyncStrategy,
    TrainerRuntimeConfig as TrainerRuntimeConfig,
)
from fluidlite.transpiler.distribute_transpiler import (
    DistributeTranspilerConfig as DistributeTranspilerConfig,
    DistributedMode as DistributedMode,
    ServerRuntimeConfig as ServerRuntimeConfig,
)
