# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.searcher import (
    EvolutionaryController as EvolutionaryController,
    SAController as SAController,
)
from fluidlite.fluid.log_helper import (
    get_logger as get_logger,
)
