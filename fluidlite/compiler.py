"""`fluid.compiler`: the public names of `executor.compiler`."""

from .executor.compiler import BuildStrategy, CompiledProgram, ExecutionStrategy

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy"]
