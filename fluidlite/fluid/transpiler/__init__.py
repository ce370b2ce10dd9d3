"""Programs changed for several machines (`fluid.transpiler`)."""

from ...base import missing
from ..small_modules import memory_optimize, release_memory
from . import details, distribute_transpiler, geo_sgd_transpiler
from .details import HashName, RoundRobin
from .distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig

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
