# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    compressor as compressor,
    config as config,
    strategy as strategy,
)
from fluidlite.contrib.slim.core.compressor import (
    Compressor as Compressor,
    Context as Context,
)
from fluidlite.contrib.slim.core.config import (
    ConfigFactory as ConfigFactory,
)
from fluidlite.contrib.slim.core.strategy import (
    Strategy as Strategy,
)
