# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    layers as layers,
)
from fluidlite.fluid.contrib.slim.prune.pruner import (
    Pruner as Pruner,
    StructurePruner as StructurePruner,
)
