"""`fluid.parallel_executor`: the older way to run on several places."""

from ..base import missing
from ..executor.parallel.compiler import ParallelExecutor
from ..executor.parallel.strategies import BuildStrategy, ExecutionStrategy

__all__ = ["BuildStrategy", "ExecutionStrategy", "ParallelExecutor"]

__getattr__ = missing.reporter(__name__)
