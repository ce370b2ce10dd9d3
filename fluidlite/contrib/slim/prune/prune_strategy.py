"""Strategies that prune, where Fluid has them (`fluid.contrib.slim.prune.prune_strategy`)."""

from ....base import missing
from .pruning import PruneStrategy, UniformPruneStrategy
from .sensitive_prune_strategy import SensitivePruneStrategy

__all__ = ["PruneStrategy", "SensitivePruneStrategy", "UniformPruneStrategy"]

__getattr__ = missing.reporter(__name__)
