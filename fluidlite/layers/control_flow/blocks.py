"""`BlockGuard`: building the operators of a block that another operator runs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

from ...base.errors import StaticModeError
from ...framework import Block, Program, mode

__all__ = ["BlockGuard"]


class BlockGuard:
    """A context in which layers append to a new block of `main_program` (`fluid.layers.control_flow.BlockGuard`).

    Raises TypeError for anything but a Program.
    """

    def __init__(self, main_program: Program) -> None:
        if not isinstance(main_program, Program):
            raise TypeError(f"BlockGuard takes a program, got {type(main_program).__name__}")
        self.main_program = main_program

    def __enter__(self) -> None:
        self.main_program._create_block()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.main_program._rollback()
        return None


class GuardOf(BlockGuard):
    """The block that a context of a layer builds, as a guard."""

    def __init__(self, main_program: Program, context: AbstractContextManager[None]) -> None:
        super().__init__(main_program)
        self._context = context

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._context.__exit__(kind, error, trace)


def block_around(program: Program) -> Block:
    """The block around the one that layers append to."""
    return program.block(program.current_block().parent_idx)


def programs_only(layer: str) -> None:
    """Raise StaticModeError in dygraph mode, where Python runs what stands in blocks."""
    if mode.in_dygraph_mode():
        raise StaticModeError(
            f"{layer} is a layer of programs only; in dygraph mode use Python's if, for and while, or "
            "fluid.layers.cond, case and while_loop"
        )
