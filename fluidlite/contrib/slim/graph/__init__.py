"""`fluid.contrib.slim.graph`: programs as graphs, for strategies."""

from ....base import missing
from . import executor, graph_wrapper
from .executor import SlimGraphExecutor
from .graph_wrapper import GraphWrapper, OpWrapper, VarWrapper

__all__ = ["GraphWrapper", "OpWrapper", "SlimGraphExecutor", "VarWrapper", "executor", "graph_wrapper"]

__getattr__ = missing.reporter(__name__)
