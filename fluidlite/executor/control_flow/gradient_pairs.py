"""Which operators with blocks belong together: a branch or loop and its gradient."""

from __future__ import annotations

from ...framework import Operator, Program
from ...ops.registry import EMPTY

SCOPES = {"conditional_block": "Scope", "while": "StepScopes"}
"""The slot of the environments that are kept of their blocks for a gradient."""


def forward_of(op: Operator) -> Operator | None:
    """The branch or loop of which `op` is the gradient; None if there are several by that name."""
    kind = op.type.removesuffix("_grad")
    slot = SCOPES[kind]
    found = [
        each for each in _of_program(op) if each.type == kind and each.outputs.get(slot) == op.inputs[slot]
    ]
    return found[0] if len(found) == 1 else None


def backward_of(op: Operator) -> list[Operator]:
    """The gradients of a branch or loop: one for each time that the program has been differentiated."""
    slot = SCOPES[op.type]
    return [each for each in _of_program(op) if each.inputs.get(slot) == op.outputs[slot]]


def gradients(op: Operator) -> list[tuple[str, str]]:
    """Each variable that a block reads with its gradient, as far as there is one outside: those that `minimize` has
    computed inside of a branch stay there."""
    slot = "X" if op.type == "while_grad" else "Input"
    pairs = zip(op.inputs.get(slot, ()), op.outputs.get(slot + "@GRAD", ()), strict=True)
    return [(n, out) for n, out in pairs if out != EMPTY and op.block._find_var_recursive(out) is not None]


def _of_program(op: Operator) -> list[Operator]:
    """The operators with blocks of the program of `op`."""
    program: Program = op.block.program
    return program._derived(_with_blocks)


def _with_blocks(program: Program) -> list[Operator]:
    return [op for block in program.blocks for op in block.ops if op.sub_blocks()]
