# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.slim.searcher.controller import (
    EvolutionaryController as EvolutionaryController,
    SAController as SAController,
    get_logger as get_logger,
)
