"""Gradients of operators that run blocks: the block of the gradient operator, and what it needs of the forward one.

`GRADIENTS` has a function for each type, called by `Tape` in place of the gradient rule that other operators declare.
The blocks, their names and the operators' slots are Fluid's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...ops.registry import EMPTY, OpSpec, grad_name
from ..block import Block
from ..operator import Operator

if TYPE_CHECKING:
    from ..program import Program
    from .tape import Tape


def kept_names(op: Operator) -> frozenset[str] | None:
    """The variables that the gradient of `op` reads of each run of its block; None if no operator computes it."""
    control = op.definition.effects.control
    scopes = op.outputs.get(control.scopes) if control is not None else None
    return op.block.program._derived(_kept).get(scopes[0]) if scopes else None


def _kept(program: Program) -> dict[str, frozenset[str]]:
    """The names read in the blocks of each operator that has blocks, by the name of its step scopes."""
    result: dict[str, frozenset[str]] = {}
    for op in (op for block in program.blocks for op in block.ops):
        control = op.definition.effects.control
        for scopes in op.inputs.get(control.scopes, ()) if control is not None and control.gradient else ():
            read = (name for inner in op.sub_blocks() for name in names_read(inner))
            result[scopes] = result.get(scopes, frozenset()).union(read)
    return result


def names_read(block: Block) -> set[str]:
    """The names of all variables that the operators of a block and its nested blocks read."""
    names: set[str] = set()
    for op in (op for each in block.walk() for op in each.ops):
        control = op.definition.effects.control
        if control is not None and control.gradient and control.reads:
            slot = control.reads
            # It reads those of these and Out that get a gradient; the others only keep the positions.
            wanted = zip(op.inputs.get(slot, ()), op.outputs.get(slot + "@GRAD", ()), strict=False)
            names.update(name for name, gradient in wanted if gradient != EMPTY)
            names.update(*(op.inputs[other] for other in op.inputs if other not in (slot, "Out")))
        else:
            names.update(op.reads())
    return names


def names_from_outside(block: Block) -> tuple[list[str], list[str]]:
    """The variables of outer blocks that the operators of a block read, and those that they write, in order of use.

    Inner blocks need no look: they declare what they write, or it is an output of the operator that has them.
    """
    own = block.vars
    read = dict.fromkeys(name for op in block.ops for name in op.input_arg_names if name not in own)
    written = dict.fromkeys(name for op in block.ops for name in op.output_arg_names if name not in own)
    return list(read), list(written)


def while_gradient(tape: Tape, op: Operator) -> None:
    """Append `while_grad`, with a block that runs once for each iteration, the last one first.

    A loop-carried variable has one gradient variable, declared outside of the block: before the gradient of an
    iteration it holds that of the variable's final value, after it that of the initial value. Gradients of variables
    that the loop only reads are declared in the block, and the operator sums them over the iterations.
    """
    outs = op.outputs["Out"]
    known = [name for name in outs if tape.available(name)]
    inner = tape.into(op.attrs["sub_block"], op)
    needed = inner.carried(known, [name for name in outs if name in op.inputs["X"]])
    gradients = [(name, tape.arriving(op, name)) for name in outs if name in needed]
    inner.begin(name for name, _ in gradients)
    inner.run_block()
    inner.declare_arrays()
    tape.counted(op, inner)
    spec = OpSpec(
        "while_grad",
        {
            "X": list(op.inputs["X"]),
            "Out": list(outs),
            "Out@GRAD": [gradient for _, gradient in gradients],
            "StepScopes": list(op.outputs["StepScopes"]),
        },
        {"X@GRAD": []},
        {
            "sub_block": inner.home,
            "original_output_grad": [grad_name(name) for name, _ in gradients],
            "is_test": False,
        },
    )
    for name in op.inputs["X"]:
        spec.outputs["X@GRAD"].append(grad_name(name) if name in inner.grads else EMPTY)
    tape.take(spec)


def recurrent_gradient(tape: Tape, op: Operator) -> None:
    """Append `recurrent_grad`, with a block that runs once for each step, the last one first.

    All gradients of the block are local: the operator passes in those of outputs and of the step's final memories, and
    takes those of inputs, of its initial memories, and of outer variables. It also names gradients of outputs that are
    not computed; they are zeros.
    """
    outs = op.outputs["outputs"]
    inner = tape.into(op.attrs["sub_block"], op)
    outs = [name for name in outs if inner.wants(name)]
    inner.receive((*outs, *op.attr("states")))
    spec_inputs = {slot: list(names) for slot, names in op.inputs.items()}
    spec_inputs["outputs"] = outs
    spec_inputs["outputs@GRAD"] = [
        tape.arriving(op, name) if tape.available(name) or tape.outer else tape.fresh(grad_name(name))
        for name in outs
    ]
    spec_inputs["step_scopes"] = spec_inputs["step_scopes@GRAD"] = list(op.outputs["step_scopes"])
    inner.run_block()
    for name in op.inputs.get("parameters", ()):
        if tape.is_array(name) and name in inner.grads and tape.wants(name):
            raise op.view().fail(
                f"has no gradient for the tensor array {name!r}, which its steps read: read the element before them"
            )
    inside = {
        "inputs": op.inputs["inputs"],
        "initial_states": op.attr("ex_states"),
        "parameters": op.inputs.get("parameters", []),
    }
    gives = {
        grad_name(slot): [
            grad_name(name) if part in inner.grads and tape.wants(name) else EMPTY
            for name, part in zip(op.inputs.get(slot, []), parts, strict=True)
        ]
        for slot, parts in inside.items()
    }
    attrs = {name: value for name, value in op.attrs.items() if not name.startswith("op_")}
    attrs["sub_block"] = inner.home
    tape.take(OpSpec("recurrent_grad", spec_inputs, gives, attrs), inside)


def conditional_gradient(tape: Tape, op: Operator) -> None:
    """Append `conditional_block_grad`, with a block that runs if that of `op` has run.

    It reads the gradients of the outputs of `op` in place. A variable that had a value before is carried, as in a loop
    of zero or one iterations: its gradient is that of the final value; if the block runs, it becomes that of the
    initial value. All others are local to the block, and the operator passes them out.
    """
    inputs = list(op.inputs.get("Input", ()))
    gradients = {name: tape.arriving(op, name) for name in op.outputs["Out"] if tape.available(name)}
    inner = tape.into(op.attrs["sub_block"], op)
    carried = []
    for name, gradient in gradients.items():
        if not tape.is_array(name) and (
            name in inputs or (name in tape.arrived and not _alone(tape, op, name))
        ):
            carried.append(name)
            continue
        tape.declare(gradient, name)
        inner.give(name, gradient)
        if name in tape.arrived:
            tape.give(name, gradient)
    inner.begin(carried)
    inner.run_block()
    own = {name for name in inner.grads if name not in gradients or name in carried}
    own.update(name for name in inputs if name not in gradients and _ends_here(tape, op, name))
    inputs += [name for name in carried if name not in inputs]
    spec = OpSpec(
        "conditional_block_grad",
        {
            "Cond": [tape.versions.value(op, name) for name in op.inputs["Cond"]],
            "Input": inputs,
            "Out": list(op.outputs["Out"]),
            "Out@GRAD": [gradients.get(name, EMPTY) for name in op.outputs["Out"]],
            "Scope": list(op.outputs["Scope"]),
        },
        {"Input@GRAD": [grad_name(name) if name in own else EMPTY for name in inputs]},
        {"sub_block": inner.home, "is_scalar_condition": op.attr("is_scalar_condition")},
    )
    tape.take(spec, ("Input",))


def _ends_here(tape: Tape, op: Operator, name: str) -> bool:
    """Whether variable `name` may have a gradient that no operator would pass on: Fluid names it, used or not."""
    var = tape.block.vars.get(name)
    if var is None or var.persistable or tape.is_array(name) or not tape.wants(name):
        return False
    writers = [each for each in tape.block.ops[: op.idx] if name in each.writes()]
    return bool(writers) and not any(tape.wants(read) for each in writers for read in each.reads())


def _alone(tape: Tape, op: Operator, name: str) -> bool:
    """Whether nothing that has a gradient can have written variable `name` before `op`, if the block of `op` runs.

    So it is with the cases of a Switch: one gradient serves them all.
    """
    var = tape.block.vars.get(name)
    if var is None or var.is_data:
        return False
    before = tape.block.ops[: op.idx]
    writers = [
        each
        for each in before
        if name in each.writes() and (each.definition.grad or each.definition.effects.control)
    ]
    return all(each.type == op.type and _exclude(tape, each, op) for each in writers)


def _exclude(tape: Tape, one: Operator, other: Operator) -> bool:
    """Whether the conditions of two conditional blocks exclude each other by their definitions."""
    first, second = (_terms(tape, op.inputs["Cond"][0]) for op in (one, other))
    return any((name, not holds) in second for name, holds in first)


def _terms(tape: Tape, name: str) -> set[tuple[str, bool]]:
    """The bool variables, with their values, that condition `name` implies; none if `name` has several values."""
    if not tape.versions.constant(name):
        return set()
    var = tape.block._find_var_recursive(name)
    op = var.op if var is not None else None
    if op is not None and op.type == "logical_and":
        return _terms(tape, op.inputs["X"][0]) | _terms(tape, op.inputs["Y"][0])
    if op is not None and op.type == "logical_not":
        terms = _terms(tape, op.inputs["X"][0])
        if len(terms) == 1:
            return {(other, not holds) for other, holds in terms}
    return {(name, True)}


GRADIENTS: dict[str, Callable[[Tape, Operator], None]] = {
    "conditional_block": conditional_gradient,
    "recurrent": recurrent_gradient,
    "while": while_gradient,
}
"""By type of operator; called if a gradient of one of its outputs has arrived."""

__all__ = ["GRADIENTS", "kept_names", "names_from_outside", "names_read"]
