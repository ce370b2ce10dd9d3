"""`ConditionalBlock`: operators that run only if a condition holds; the base of cond, Switch and IfElse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...base.dtypes import VarType
from ...base.errors import ArgumentTypeError
from ...framework import Block, Operator, Variable, grad_var_name
from ...layer_helper import LayerHelper
from .blocks import GuardOf


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
