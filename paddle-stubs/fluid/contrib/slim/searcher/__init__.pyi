# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    controller as controller,
)
from fluidlite.fluid.contrib.slim.searcher import (
    EvolutionaryController as EvolutionaryController,
    SAController as SAController,
)
