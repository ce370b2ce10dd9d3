"""`BlockGuard`: building the operators of a block that another operator runs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

from ...base.errors import StaticModeError
from ...framework import Block, Operator, Program, Variable, mode

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


def outer_block(program: Program) -> Block:
    """The parent of the block that layers append to."""
    return program.block(program.current_block().parent_idx)


def from_outside(outside: Block, var: Variable) -> None:
    """Make `var` readable in `outside`, the parent of the current block.

    Scripts slice variables inside of the block, `rnn.memory(init=states[0])`, where Fluid appends the slice to the
    block of `states`. So operators that make `var` of variables from outside move there. Others stay.
    """
    inside = outside.program.current_block()
    if outside._find_var_recursive(var.name) is not None:
        return
    for op in _producers(var.name, inside, outside):
        for name in op.output_arg_names:
            if name in inside.vars:
                moved = outside.vars[name] = inside.vars.pop(name)
                moved.block = outside
        inside._remove_op(inside.ops.index(op))
        outside.append_op(type=op.type, inputs=op.inputs, outputs=op.outputs, attrs=op.attrs)


def _producers(wanted: str, inside: Block, outside: Block) -> list[Operator]:
    """The operators of `inside` that compute `wanted` from variables of `outside`; none if it has other inputs."""
    making: list[Operator] = []
    needed = {wanted}
    for op in reversed(inside.ops):
        if needed.isdisjoint(op.writes()):
            continue
        if op.sub_blocks() or op.definition.effects.random or not inside.vars.keys() >= {*op.writes()}:
            return []
        making.append(op)
        needed.update(op.reads())
    made = {name for op in making for name in op.writes()}
    written = {name for op in inside.ops if op not in making for name in op.writes()}
    known = all(name not in inside.vars and outside._find_var_recursive(name) for name in needed - made)
    return making[::-1] if known and written.isdisjoint(needed) else []


def programs_only(layer: str) -> None:
    """Raise StaticModeError in dygraph mode, where Python itself runs the code of the blocks."""
    if mode.in_dygraph_mode():
        raise StaticModeError(
            f"{layer} is a layer of programs only; in dygraph mode use Python's if, for and while, or "
            "fluid.layers.cond, case and while_loop"
        )
