# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    AsyncStrategy as AsyncStrategy,
    DistributeTranspilerConfig as DistributeTranspilerConfig,
    DistributedMode as DistributedMode,
    DistributedStrategy as DistributedStrategy,
    GeoStrategy as GeoStrategy,
    HalfAsyncStrategy as HalfAsyncStrategy,
    ServerRuntimeConfig as ServerRuntimeConfig,
    StrategyFactory as StrategyFactory,
    SyncStrategy as SyncStrategy,
    TrainerRuntimeConfig as TrainerRuntimeConfig,
)
