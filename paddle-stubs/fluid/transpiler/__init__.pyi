# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    collective as collective,
    details as details,
    distribute_transpiler as distribute_transpiler,
    geo_sgd_transpiler as geo_sgd_transpiler,
    ps_dispatcher as ps_dispatcher,
)
from fluidlite.fluid.transpiler import (
    DistributeTranspiler as DistributeTranspiler,
    DistributeTranspilerConfig as DistributeTranspilerConfig,
    HashName as HashName,
    RoundRobin as RoundRobin,
    memory_optimize as memory_optimize,
    release_memory as release_memory,
)
