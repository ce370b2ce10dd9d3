# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    compressor as compressor,
    config as config,
    strategy as strategy,
)
from fluidlite.fluid.contrib.slim.core import (
    Compressor as Compressor,
    ConfigFactory as ConfigFactory,
    Context as Context,
    Strategy as Strategy,
)
