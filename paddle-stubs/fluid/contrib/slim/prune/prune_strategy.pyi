# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    layers as layers,
)
from fluidlite.fluid.contrib.slim.graph import (
    OpWrapper as OpWrapper,
)
from fluidlite.fluid.contrib.slim.prune.prune_strategy import (
    GraphWrapper as GraphWrapper,
    PruneStrategy as PruneStrategy,
    SensitivePruneStrategy as SensitivePruneStrategy,
    Strategy as Strategy,
    UniformPruneStrategy as UniformPruneStrategy,
    VarWrapper as VarWrapper,
    get_logger as get_logger,
)
from fluidlite.framework.program import (
    Program as Program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
