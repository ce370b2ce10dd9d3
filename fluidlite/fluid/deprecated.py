"""Functions of Fluid 1.8 that no longer have an effect."""

from __future__ import annotations

from typing import Any

from ..framework import Program


def memory_optimize(
    input_program: Program,
    skip_opt_set: Any = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = True,
) -> None:
    """Warn that nothing is done: plans share memory by themselves (`fluid.memory_optimize`)."""
    _warn("paddle.fluid.memory_optimize() is deprecated and changes nothing: memory is shared anyway")


def release_memory(input_program: Program, skip_opt_set: Any = None) -> None:
    """Warn that nothing is done (`fluid.release_memory`)."""
    _warn("paddle.fluid.release_memory() is deprecated, it would not take any memory release on your program")


def _warn(text: str) -> None:
    import logging  # slow to import

    logging.warning(text)


def monkey_patch_variable() -> None:
    """Nothing is left to do: Variables have their operators."""


def monkey_patch_varbase() -> None:
    """Nothing is left to do: eager tensors have their methods."""
