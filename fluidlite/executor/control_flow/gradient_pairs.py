"""Pairs of operators with blocks: a branch or loop, and its gradients."""

from __future__ import annotations

from ...framework import Operator, Program
from ...ops.registry import EMPTY

SCOPES = {"conditional_block": "Scope", "while": "StepScopes"}
"""The output slot of the step scopes, by which gradients find their forward operator."""


def forward_of(op: Operator) -> Operator | None:
    """The branch or loop that `op` is the gradient of; None unless exactly one has its step scopes."""
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
    """Each variable that a block reads with its gradient, where that is an outer variable: gradients that `minimize`
    computes inside of a branch are not."""
    slot = "X" if op.type == "while_grad" else "Input"
    pairs = zip(op.inputs.get(slot, ()), op.outputs.get(slot + "@GRAD", ()), strict=True)
    return [(n, out) for n, out in pairs if out != EMPTY and op.block._find_var_recursive(out) is not None]


def _of_program(op: Operator) -> list[Operator]:
    """The operators with blocks of the program of `op`."""
    program: Program = op.block.program
    return program._derived(_with_blocks)


def _with_blocks(program: Program) -> list[Operator]:
    return [op for block in program.blocks for op in block.ops if op.sub_blocks()]
