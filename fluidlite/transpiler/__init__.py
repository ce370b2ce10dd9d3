"""Programs changed for several machines (`fluid.transpiler`)."""

from ..base import missing
from ..no_longer import memory_optimize, release_memory
from . import details

__all__ = ["details", "memory_optimize", "release_memory"]

__getattr__ = missing.reporter(__name__)
