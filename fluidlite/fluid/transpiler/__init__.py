"""Programs changed for several machines (`fluid.transpiler`)."""

from ..small_modules import memory_optimize, release_memory
from . import details, distribute_transpiler, geo_sgd_transpiler
from .details import HashName, RoundRobin
from .distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig

__all__ = [
    "DistributeTranspiler",
    "DistributeTranspilerConfig",
    "HashName",
    "RoundRobin",
    "details",
    "distribute_transpiler",
    "geo_sgd_transpiler",
    "memory_optimize",
    "ps_dispatcher",
    "release_memory",
]
