# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    auto_prune_strategy as auto_prune_strategy,
    prune_strategy as prune_strategy,
    pruner as pruner,
)
from fluidlite.fluid.contrib.slim.prune import (
    AutoPruneStrategy as AutoPruneStrategy,
    PruneStrategy as PruneStrategy,
    Pruner as Pruner,
    SensitivePruneStrategy as SensitivePruneStrategy,
    StructurePruner as StructurePruner,
    UniformPruneStrategy as UniformPruneStrategy,
)
