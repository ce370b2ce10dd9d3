"""Checks an operator where it is built, so that a malformed program fails at the user's line and not when it runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .._ext.operands import fits, retyped
from ..base import callsite
from ..base.dtypes import VarType
from ..base.errors import EnforceNotMet
from ..ops.registry import EMPTY, GRAD, OperatorError, Slot

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator


_MISFITS: dict[type, tuple[type, ...]] = {
    bool: (str, list, tuple, dict),
    int: (float, str, list, tuple, dict),
    float: (str, list, tuple, dict),
    str: (bool, int, float, list, tuple, dict),
    list: (bool, int, float, str, dict),
}
"""By the type of an attribute's default: the types of values that Fluid does not convert to it."""


def suggest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing."""
    import difflib  # slow to import

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def operator(op: Operator) -> None:
    """Check slots and variables of `op` and infer the shapes of its outputs.

    Raises OperatorError (an EnforceNotMet and ValueError) naming the operator, its variables and the user's line.
    """
    try:
        slots(op)
        _check_attributes(op)
        if op.definition.infer is not None:
            view = op.view()
            op.definition.infer(view)
            if op.definition.dispatch.rows is not None:
                op.definition.dispatch.rows.mark(view)
    except EnforceNotMet as error:
        raise type(error)(f"{error}{callsite.describe(op.line)}") from None


def _check_attributes(op: Operator) -> None:
    declared = op.definition.attrs
    for name in retyped(op.attrs, declared):
        value = op.attrs[name]
        kind = type(declared[name])
        if issubclass(type(value), _MISFITS.get(kind, ())):
            raise op.view().fail(
                f"attribute {name} must be of type {kind.__name__}, as its default {declared[name]!r} is; got {value!r}"
            )


def slots(op: Operator) -> None:
    """Check that the slots of `op` are declared and filled and that its variables exist; raises OperatorError."""
    definition, variables = op.definition, op.block.vars
    if not fits(op.inputs, definition.inputs_by_name, definition.required, variables):
        _check(op, "input", op.inputs, definition.inputs_by_name)
    if not fits(op.outputs, definition.outputs_by_name, (), variables):
        _check(op, "output", op.outputs, definition.outputs_by_name)
    for slot in definition.required:
        if not op.inputs.get(slot):
            raise OperatorError(f"operator {op.type}: input {slot} is missing")


def loaded(op: Operator) -> None:
    """Check an operator that comes from a file; raises OperatorError.

    Checks slots and variables as `slots` does, and control flow: that such an operator has its block, outputs for its
    results, and a gradient for each input or none; and that no other operator reads or writes the variables with values
    stashed for gradients. Operators that compute are checked when they are planned.
    """
    slots(op)
    for slot, names in (*op.inputs.items(), *op.outputs.items()):
        _check_scopes(op, slot, names)
    if not op.definition.effects.control:
        return
    for declared in op.definition.output_slots:
        if not declared.optional and not op.outputs.get(declared.name):
            raise OperatorError(f"operator {op.type}: output {declared.name} is missing")
    for slot, names in op.outputs.items():
        given = op.inputs.get(slot.removesuffix(GRAD), names)
        if slot.endswith(GRAD) and len(given) != len(names):
            raise OperatorError(f"operator {op.type}: {slot} should have {len(given)} names, got {names}")
    block = op.attrs.get("sub_block")
    if "sub_block" in op.definition.attrs and not any(block is one for one in op.sub_blocks()):
        raise OperatorError(f"operator {op.type}: attribute sub_block should be a block, got {block!r}")


def _check_scopes(op: Operator, slot: str, names: list[str]) -> None:
    control = op.definition.effects.control
    scopes = control.scopes if control is not None else ""
    if slot == scopes + GRAD:
        return  # Fluid names the scopes there once more
    for name in names:
        var = op.block._find_var_recursive(name)
        if var is not None and (var.type == VarType.STEP_SCOPES) != (slot == scopes):
            raise OperatorError(
                f"operator {op.type}: {slot} cannot be variable {name!r}, which is a {var.type}"
            )


def _check(op: Operator, kind: str, given: dict[str, list[str]], declared: dict[str, Slot]) -> None:
    for slot_name, names in given.items():
        slot = declared.get(slot_name)
        if slot is None:
            expected = ", ".join(declared) or "none"
            raise OperatorError(f"operator {op.type} has no {kind} {slot_name!r}: its {kind}s are {expected}")
        if len(names) > 1 and not slot.many:
            raise OperatorError(f"operator {op.type}: {kind} {slot_name} takes one variable, got {names}")
        if slot_name == "blocking_queue":
            continue  # names a loader of this process: no program has a variable for it
        for name in names:
            if name == EMPTY or (op.definition.effects.control and name.endswith(GRAD)):
                continue  # the gradients of a branch that minimizes stay in it, and are named all the same
            if op.block._find_var_recursive(name) is None and not _handed_in(op.block, name):
                known = op.block.vars
                raise OperatorError(
                    f"operator {op.type}: {kind} {slot_name} names variable {name!r}, which is not in the program"
                    f"{suggest(name, known)}"
                )


def _handed_in(block: Block, name: str) -> bool:
    """Whether `name` is the gradient of a variable of the block whose gradients `block` computes.

    `recurrent_grad` itself writes the variables carried from step to step; as in Fluid, no block declares them.
    """
    if block.forward_block_idx < 0 or not name.endswith(GRAD):
        return False
    return name.removesuffix(GRAD) in block.program.blocks[block.forward_block_idx].vars
