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
from fluidlite.fluid.contrib.slim import (
    Compressor as Compressor,
    ConfigFactory as ConfigFactory,
    Context as Context,
    Strategy as Strategy,
)
