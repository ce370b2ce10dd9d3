"""`fluid.contrib.slim.prune`: parameters with fewer rows or columns."""

from . import auto_prune_strategy, prune_strategy, pruner
from .auto_prune_strategy import AutoPruneStrategy
from .prune_strategy import PruneStrategy, SensitivePruneStrategy, UniformPruneStrategy
from .pruner import Pruner, StructurePruner

__all__ = [
    "AutoPruneStrategy",
    "PruneStrategy",
    "Pruner",
    "SensitivePruneStrategy",
    "StructurePruner",
    "UniformPruneStrategy",
    "auto_prune_strategy",
    "prune_strategy",
    "pruner",
]
