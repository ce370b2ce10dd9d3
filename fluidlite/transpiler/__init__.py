"""Programs changed for several machines (`fluid.transpiler`)."""

from ..base import missing
from ..deprecated import memory_optimize, release_memory
from . import details, distribute_transpiler, geo_sgd_transpiler, ps_dispatcher
from .distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig
from .ps_dispatcher import HashName, RoundRobin

__getattr__ = missing.reporter(__name__)

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
