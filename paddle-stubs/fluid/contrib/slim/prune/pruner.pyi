# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    layers as layers,
)
from fluidlite.contrib.slim.prune.pruner import (
    Pruner as Pruner,
    StructurePruner as StructurePruner,
)
