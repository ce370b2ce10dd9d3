"""`fluid.parallel_executor`: the older way to run on several places."""

from .executor.compiler import BuildStrategy, ExecutionStrategy, ParallelExecutor

__all__ = ["BuildStrategy", "ExecutionStrategy", "ParallelExecutor"]
