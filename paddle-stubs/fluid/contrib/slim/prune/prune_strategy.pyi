# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    layers as layers,
)
from fluidlite.contrib.slim.core.strategy import (
    Strategy as Strategy,
)
from fluidlite.contrib.slim.graph.graph_wrapper import (
    GraphWrapper as GraphWrapper,
    OpWrapper as OpWrapper,
    VarWrapper as VarWrapper,
)
from fluidlite.contrib.slim.prune.prune_strategy import PruneStrategy as PruneStrategy, UniformPruneStrategy as UniformPruneStrategy
from fluidlite.contrib.slim.prune.prune_strategy import SensitivePruneStrategy as SensitivePruneStrategy
from fluidlite.framework.program import (
    Program as Program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
from fluidlite.log_helper import (
    get_logger as get_logger,
)
