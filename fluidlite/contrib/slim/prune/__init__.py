"""`fluid.contrib.slim.prune`: parameters with fewer rows or columns."""

from ....base import missing
from . import pruner
from .pruner import Pruner, StructurePruner

__all__ = ["Pruner", "StructurePruner", "pruner"]

__getattr__ = missing.reporter(__name__)
