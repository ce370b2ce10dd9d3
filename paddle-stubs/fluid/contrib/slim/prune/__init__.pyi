# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    auto_prune_strategy as auto_prune_strategy,
    prune_strategy as prune_strategy,
    pruner as pruner,
)
from fluidlite.contrib.slim.prune.auto_prune_strategy import (
    AutoPruneStrategy as AutoPruneStrategy,
)
from fluidlite.contrib.slim.prune.pruner import (
    Pruner as Pruner,
    StructurePruner as StructurePruner,
)
from fluidlite.contrib.slim.prune.prune_strategy import PruneStrategy as PruneStrategy, UniformPruneStrategy as UniformPruneStrategy
from fluidlite.contrib.slim.prune.prune_strategy import SensitivePruneStrategy as SensitivePruneStrategy
