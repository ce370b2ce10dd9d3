"""`fluid.compiler`: the public names of `executor.compiler`."""

from ..base import missing
from ..executor.parallel.compiler import CompiledProgram
from ..executor.parallel.strategies import BuildStrategy, ExecutionStrategy

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy"]

__getattr__ = missing.reporter(__name__)
