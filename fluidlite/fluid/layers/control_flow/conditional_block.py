"""Blocks as operators: `BlockGuard`, `ConditionalBlock`, which runs if a condition holds, and `Switch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType

from ....base.dtypes import VarType
from ....base.errors import ArgumentError, ArgumentTypeError, StaticModeError
from ....framework import Block, Operator, Program, Variable, grad_var_name, mode
from ...layer_helper import LayerHelper
from ..checks import check_dtype
from ..tensor.arithmetic import logical_and, logical_not

__all__ = ["Switch"]


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


class ConditionalBlock:
    """A block, built in `with block():`, that runs only if a condition holds.

    The inputs and outputs of the operator are the outer variables that the block reads and writes.
    Follows `fluid.layers.control_flow.ConditionalBlock`.

    Args:
        inputs: with `is_scalar_condition` a bool variable of one element, which decides; without it variables of any
            kind, and the block runs if nothing that it reads is empty.
        is_scalar_condition: see there.
        name: no effect.

    Raises:
        TypeError: `inputs` is no list of Variables.
    """

    def __init__(
        self, inputs: Sequence[Variable], is_scalar_condition: bool = False, name: str | None = None
    ) -> None:
        for item in inputs:
            if not isinstance(item, Variable):
                raise ArgumentTypeError(
                    f"The type of 'input' in ConditionalBlock must be Variable, but received {type(item)}."
                )
        self.inputs = inputs
        self.is_scalar_condition = is_scalar_condition
        self.helper = LayerHelper("conditional_block", name=name)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Build the operators that depend on the condition."""
        program = self.helper.main_program
        inside = program._create_block()
        try:
            yield
        except BaseException:
            program.current_block_idx = inside.parent_idx
            raise
        program.current_block_idx = inside.parent_idx
        self._complete(inside)

    def _complete(self, inside: Block) -> None:
        """Append the operator that runs the block, and the one that runs its gradients if there are some already."""
        program = inside.program
        outside = program.block(inside.parent_idx)
        reads, writes = outer_names(inside)
        scopes = outside.create_var(type=VarType.STEP_SCOPES)
        op = outside.append_op(
            type="conditional_block",
            inputs={"Cond": list(self.inputs), "Input": [outside._var_recursive(name) for name in reads]},
            outputs={"Out": writes, "Scope": [scopes]},
            attrs={"sub_block": inside, "is_scalar_condition": self.is_scalar_condition},
        )
        if inside.backward_block_idx >= 0:
            _append_gradients(op, program.block(inside.backward_block_idx))


class ConditionalBlockGuard(GuardOf):
    """`with ConditionalBlockGuard(block):` is `with block.block():`; TypeError for anything but a ConditionalBlock.

    Follows `fluid.layers.control_flow.ConditionalBlockGuard`.
    """

    def __init__(self, block: ConditionalBlock) -> None:
        if not isinstance(block, ConditionalBlock):
            raise ArgumentTypeError(f"ConditionalBlockGuard takes a ConditionalBlock, got {type(block)}.")
        super().__init__(block.helper.main_program, block.block())
        self.block = block


def outer_names(inside: Block) -> tuple[list[str], list[str]]:
    """The outer variables that a block reads before writing them, and those that it writes, in order.

    Gradients internal to a branch in it are named by its operators without being variables.
    """
    reads: dict[str, None] = {}
    written: dict[str, None] = {}
    sure: set[str] = set()
    for op in inside.ops:
        kept = {name for name in op.inputs.get("Out@GRAD", ()) if inside._find_var_recursive(name) is None}
        reads.update((name, None) for name in op.input_arg_names if name not in sure | kept)
        written.update((name, None) for name in op.output_arg_names)
        if not op.definition.effects.control:  # their blocks may not run, and leave the outputs unwritten
            sure.update(op.output_arg_names)
    outside = inside.program.block(inside.parent_idx)
    return (
        [name for name in reads if name not in inside.vars],
        [
            name
            for name in written
            if name not in inside.vars and outside._find_var_recursive(name) is not None
        ],
    )


def _append_gradients(op: Operator, gradients: Block) -> None:
    """Append the operator that runs `gradients`, which minimize has built inside of the block of `op`.

    The gradients of variables around it stay inside; their names are those that the operator would have.
    """
    outside = op.block
    needed = [name for name in outer_names(gradients)[0] if outside._find_var_recursive(name) is not None]
    for name in needed:
        var = outside._var_recursive(name)
        if not gradients.has_var(var.grad_name):
            gradients.create_var(name=var.grad_name, shape=var.shape, dtype=var.dtype)
    with outside.program._backward_role_guard():
        outside.append_op(
            type="conditional_block_grad",
            inputs={
                "Cond": op.input("Cond"),
                "Input": needed,
                "Out": op.output("Out"),
                "Out@GRAD": [grad_var_name(name) for name in op.output("Out")],
                "Scope": op.output("Scope"),
            },
            outputs={"Input@GRAD": [grad_var_name(name) for name in needed]},
            attrs={"sub_block": gradients, "is_scalar_condition": op.attr("is_scalar_condition")},
        )


class Switch:
    """Run the block of the first case that holds, which writes to outer variables (`fluid.layers.Switch`).

        with fluid.layers.Switch() as switch:
            with switch.case(step < warm):
                fluid.layers.assign(small, rate)
            with switch.default():
                fluid.layers.assign(large, rate)

    `name` has no effect.
    """

    def __init__(self, name: str | None = None) -> None:
        programs_only("Switch")
        self.helper = LayerHelper("switch", name=name)
        self.inside_scope = False
        self.pre_not_conditions: list[Variable] = []

    def case(self, condition: Variable) -> AbstractContextManager[None]:
        """Build what runs if `condition`, a bool variable of one element, is the first that holds.

        Raises ValueError outside of `with Switch() as switch:`, TypeError for another variable.
        """
        if not self.inside_scope:
            raise ArgumentError("case should be called inside with")
        check_dtype(condition, "condition", "the member function case of fluid.layers.Switch", [VarType.BOOL])
        if not self.pre_not_conditions:
            self.pre_not_conditions.append(logical_not(condition))
        else:
            before = self.pre_not_conditions[-1]
            self.pre_not_conditions.append(logical_and(before, logical_not(condition)))
            condition = logical_and(before, condition)
        return ConditionalBlock([condition], is_scalar_condition=True).block()

    def default(self) -> AbstractContextManager[None]:
        """Build what runs if no case does. Raises ValueError if there is none before."""
        if not self.pre_not_conditions:
            raise ArgumentError("there should be at least one condition")
        return ConditionalBlock([self.pre_not_conditions[-1]], is_scalar_condition=True).block()

    def __enter__(self) -> Switch:
        self.inside_scope = True
        return self

    def __exit__(self, *exc: object) -> None:
        self.inside_scope = False
