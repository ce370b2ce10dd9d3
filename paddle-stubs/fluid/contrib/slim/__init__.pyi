# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    core as core,
    distillation as distillation,
    graph as graph,
    nas as nas,
    prune as prune,
    quantization as quantization,
    searcher as searcher,
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
