"""`fluid.contrib.slim.prune`: parameters with fewer rows or columns."""

from ....base import missing
from . import prune_strategy, pruner
from .prune_strategy import PruneStrategy, UniformPruneStrategy
from .pruner import Pruner, StructurePruner

__all__ = [
    "PruneStrategy",
    "Pruner",
    "StructurePruner",
    "UniformPruneStrategy",
    "prune_strategy",
    "pruner",
]

__getattr__ = missing.reporter(__name__)
