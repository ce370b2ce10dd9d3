"""Programs changed for several machines (`fluid.transpiler`)."""

from ..base import missing
from ..no_longer import memory_optimize, release_memory
from . import details

__getattr__ = missing.reporter(__name__)

for _name in ("DistributeTranspiler", "DistributeTranspilerConfig", "HashName", "RoundRobin"):
    globals()[_name] = __getattr__(_name)

__all__ = [
    "DistributeTranspiler",
    "DistributeTranspilerConfig",
    "HashName",
    "RoundRobin",
    "details",
    "memory_optimize",
    "release_memory",
]
