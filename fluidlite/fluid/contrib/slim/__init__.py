"""`fluid.contrib.slim`: smaller models."""

from . import core, distillation, graph, nas, prune, quantization, searcher
from .core import Compressor, ConfigFactory, Context, Strategy

__all__ = [
    "Compressor",
    "ConfigFactory",
    "Context",
    "Strategy",
    "core",
    "distillation",
    "graph",
    "nas",
    "prune",
    "quantization",
    "searcher",
]
