# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.prune import (
    AutoPruneStrategy as AutoPruneStrategy,
    PruneStrategy as PruneStrategy,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
