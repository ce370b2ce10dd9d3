"""Operators with sub-blocks: one function each, which runs their blocks.

A function gets the run, the operator and the operator's frame. It executes blocks only by `run.run_block`, which the
segmented executor overrides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import to_numpy
from ...base.selected_rows import total
from ...base.tensor_array import TensorArray
from ...framework import Operator
from ...framework.gradients.blocks import kept_names, names_read
from ...ops.registry import EMPTY, grad_name
from .. import failures
from ..control_flow.blocks import gradients, incoming_gradients
from .frame import Frame

if TYPE_CHECKING:
    from .interpreter import Interpreter

ControlFunction = Callable[["Interpreter", Operator, Frame], None]


def control_function(op_type: str) -> ControlFunction:
    """The function for an operator type that is declared with `Effects.control`."""
    if op_type not in _FUNCTIONS:
        from .. import parameter_server  # few programs have servers
        from .server import run_listen_and_serv

        _FUNCTIONS.update(parameter_server.FUNCTIONS, listen_and_serv=run_listen_and_serv)
    return _FUNCTIONS[op_type]


# Branches.


def run_conditional_block(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Run the block if its condition holds; keep the residuals for its gradient."""
    block = op.attrs["sub_block"]
    runs: list[Frame] = []
    if _holds(op, frame):
        inside = Frame(block, frame)
        run.run_block(block, inside)
        runs.append(inside)
    elif not op.attr("is_scalar_condition"):
        _leave_empty(run, op, frame)
    kept = kept_names(op)
    if kept is not None:
        for name in op.outputs.get("Scope", ()):
            frame.put(name, [inside.only(kept) for inside in runs])


def _holds(op: Operator, frame: Frame) -> bool:
    if op.attr("is_scalar_condition"):
        return truth(op, op.inputs["Cond"][0], frame)
    return all(frame.get(name, op).size for name in op.inputs.get("Input", ()))


def _leave_empty(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Set outputs without a value to arrays without rows, with the LoD of the empty inputs."""
    empty = [name for name in op.inputs["Input"] if not frame.get(name, op).size]
    lod = next((lod for lod in map(frame.lod_of, empty) if lod), ())
    for name in op.outputs.get("Out", ()):
        var = op.block._find_var_recursive(name)
        if var is not None and frame.find(name) is None:
            shape = (0, *(max(size, 0) for size in var.shape[1:]))
            frame.put(name, run.xp.zeros(shape, to_numpy(var.dtype)), lod)


def run_conditional_block_grad(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Run the gradient's block if the forward block has run.

    Gradients of variables that the forward block writes are in `state`, where the gradient's block replaces them; those
    of variables that it only reads are zero if it has not run.
    """
    block = op.attrs["sub_block"]
    names, sources = gradients(op), incoming_gradients(op)
    state = Frame(None, frame)
    for name, _ in names:
        outside = sources.get(name, EMPTY)
        value = frame.find(outside) if outside != EMPTY else None
        if value is not None and not isinstance(value, TensorArray):
            state.keep(grad_name(name), value, frame.lod_of(outside))
    made = state
    for saved in frame.find(op.inputs["Scope"][0]) or ():
        made = Frame(block, saved.under(state))
        run.run_block(block, made)
    for name, out in names:
        value = frame.find(name)
        inside = grad_name(name)
        if isinstance(value, TensorArray):  # the gradient of an array is one for all blocks
            if frame.find(out) is None:
                frame.put(out, TensorArray())
        elif inside in made.values:
            frame.put(out, made.values[inside], frame.lod_of(name))
        elif inside in state.values:
            frame.put(out, state.values[inside], state.lod_of(inside))
        elif value is not None:
            frame.put(out, run.xp.zeros_like(value), frame.lod_of(name))


def _place(op: Operator, count: int, frame: Frame) -> int:
    """The index of the selected one of `count` variables, the element of Mask."""
    name = op.inputs["Mask"][0]
    value = frame.get(name, op)
    if value.size != 1:
        raise failures.refusal(op, f"Mask {name!r} must have one element, got shape {list(value.shape)}")
    place = int(np.asarray(to_host(value)).ravel()[0])
    if not 0 <= place < count:
        raise failures.refusal(op, f"Mask {name!r} must be from 0 to {count - 1}, got {place}")
    return place


def run_select_input(run: Interpreter, op: Operator, frame: Frame) -> None:
    names = op.inputs["X"]
    source = names[_place(op, len(names), frame)]
    frame.put(op.outputs["Out"][0], frame.get(source, op), frame.lod_of(source))


def run_select_output(run: Interpreter, op: Operator, frame: Frame) -> None:
    names = op.outputs["Out"]
    source = op.inputs["X"][0]
    target = names[_place(op, len(names), frame)]
    frame.put(target, frame.get(source, op), frame.lod_of(source))


def run_keep_value(run: Interpreter, op: Operator, frame: Frame) -> None:
    (name,) = op.inputs["X"]
    value = frame.find(name)
    if value is not None:
        frame.put(op.outputs["Out"][0], value.copy(), frame.lod_of(name))


# Loops.


def truth(op: Operator, name: str, frame: Frame) -> bool:
    """The value of a condition, which must have one element."""
    value = frame.get(name, op)
    if isinstance(value, TensorArray) or value.size != 1:
        got = repr(value) if isinstance(value, TensorArray) else f"shape {list(value.shape)}"
        raise failures.refusal(
            op,
            f"its condition {name!r} must have one element, got {got}; reduce it with fluid.layers.reduce_all or "
            "reduce_any first",
        )
    return bool(to_host(value).item())


def add_to(sums: dict[str, Any], name: str, part: Any, xp: Any) -> None:
    """Add an array, or SelectedRows, to the sum of a name; out of place."""
    sums[name] = total(sums[name], part, xp) if name in sums else part


def run_while(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Run the block while the condition holds; keep the residuals of each iteration for its gradient."""
    block = op.attrs["sub_block"]
    (condition,) = op.inputs["Condition"]
    kept = kept_names(op)
    iterations: list[Frame] = []
    while truth(op, condition, frame):
        iteration = Frame(block, frame)
        run.run_block(block, iteration)
        if kept is not None:
            iterations.append(iteration.only(kept))
    for name in op.outputs.get("StepScopes", ()):
        frame.put(name, iterations)


def run_while_grad(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Run the gradient's block for each iteration in reverse order.

    Gradients of variables that the loop writes are carried in `state`; those of loop-invariant variables are summed
    over the iterations. Gradients of tensor arrays are updated in place.
    """
    state = Frame(None, frame)
    arrays: dict[str, TensorArray] = {}
    for inside, outside in zip(op.attrs["original_output_grad"], op.inputs.get("Out@GRAD", []), strict=True):
        value = frame.get(outside, op)
        if isinstance(value, TensorArray):
            arrays[inside] = value
        else:
            state.keep(inside, value, frame.lod_of(outside))
    wanted = [
        (name, grad_name(name), out)
        for name, out in zip(op.inputs["X"], op.outputs["X@GRAD"], strict=True)
        if out != EMPTY
    ]
    for name, inside, out in wanted:
        if inside not in arrays and isinstance(frame.get(name, op), TensorArray):
            arrays[inside] = frame.get(out, op)
    arrays, sums = _backward_iterations(run, op, state, arrays, [inside for _, inside, _ in wanted])
    for name, inside, out in wanted:
        if inside in arrays:
            frame.put(out, arrays[inside])
        elif inside in state.values:
            frame.put(out, state.values[inside], state.lod_of(inside))
        elif inside in sums:
            frame.put(out, sums[inside], frame.lod_of(name))
        else:
            zeros = run.xp.zeros_like(frame.get(name, op))
            frame.put(out, zeros, frame.lod_of(name))


def _backward_iterations(
    run: Interpreter, op: Operator, state: Frame, arrays: dict[str, TensorArray], wanted: list[str]
) -> tuple[dict[str, TensorArray], dict[str, Any]]:
    """Run all iterations; returns the gradients of tensor arrays, and the sums. Carried ones are in `state`."""
    block = op.attrs["sub_block"]
    sums: dict[str, Any] = {}
    for saved in reversed(state.get(op.inputs["StepScopes"][0], op)):
        iteration = Frame(block, saved.under(state))
        for inside, array in arrays.items():
            iteration.keep(inside, array)
        run.run_block(block, iteration)
        # A block that Fluid has built may assign an array to itself, which makes a new one.
        arrays = {inside: iteration.values[inside] for inside in arrays}
        for inside in state.values:
            if inside in iteration.values:
                state.keep(inside, iteration.values.pop(inside), iteration.lods.get(inside, ()))
        for inside in wanted:
            if inside in iteration.values and inside not in arrays:
                add_to(sums, inside, iteration.values[inside], run.xp)
    return arrays, sums


# A block for each time step of inputs, along their first axis.


def run_recurrent(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Run the block for each time step; keep the residuals of each for its gradient."""
    block = op.attrs["sub_block"]
    inputs = [(name, frame.get(name, op)) for name in op.inputs["inputs"]]
    before, after = op.attr("ex_states"), op.attr("states")
    states = [frame.get(name, op) for name in op.inputs.get("initial_states", ())]
    made: dict[str, Any] = {}
    kept = kept_names(op)
    iterations: list[Frame] = []
    steps = _steps(op, inputs)
    for step in steps:
        iteration = Frame(block, frame)
        for name, array in inputs:
            iteration.keep(name, array[step])
        for name, state in zip(before, states, strict=True):
            iteration.keep(name, state)
        run.run_block(block, iteration)
        states = [iteration.get(name, op) for name in after]
        for name in op.outputs.get("outputs", ()):
            _stack(run, op, made, name, step, len(steps), iteration.get(name, op))
        if kept is not None:
            iterations.append(iteration.only(kept))
    for name, array in made.items():
        frame.put(name, array)
    for name in op.outputs.get("step_scopes", ()):
        frame.put(name, iterations)


def run_recurrent_grad(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Run the gradient's block for each time step in reverse order.

    The gradients of a step's initial states are carried to the step before, as those of its final states. Gradients of
    inputs are stacked, those of parameters summed.
    """
    arriving = _arriving(run, op, frame)
    block = op.attrs["sub_block"]
    iterations: Sequence[Frame] = frame.get(op.inputs["step_scopes"][0], op)
    steps = _steps(op, [(name, frame.get(name, op)) for name in op.inputs["inputs"]])
    before, after = op.attr("ex_states"), op.attr("states")
    states: list[Any] = [None] * len(after)
    read = names_read(block)
    stacked: dict[str, Any] = {}
    sums: dict[str, Any] = {}
    for step, saved in zip(reversed(steps), reversed(iterations), strict=True):
        iteration = Frame(block, saved.under(frame))
        for name, array in arriving:
            iteration.keep(grad_name(name), array[step])
        for name, state in zip(after, states, strict=True):
            if grad_name(name) in read:
                iteration.keep(
                    grad_name(name), run.xp.zeros_like(iteration.get(name, op)) if state is None else state
                )
        run.run_block(block, iteration)
        states = [iteration.values.get(grad_name(name)) for name in before]
        for name in op.inputs["inputs"]:
            part = iteration.values.get(grad_name(name))
            if part is not None:
                _stack(run, op, stacked, name, step, len(steps), part)
        for name in op.inputs.get("parameters", ()):
            part = iteration.values.get(grad_name(name))
            if part is not None:
                add_to(sums, name, part, run.xp)
    _give(run, op, frame, "initial_states", states)
    # A variable that is an input several times is one variable in the block.
    _give(run, op, frame, "inputs", [stacked.pop(name, None) for name in op.inputs["inputs"]])
    parameters = [sums.get(name) for name in op.inputs.get("parameters", ())]
    _give(run, op, frame, "parameters", parameters)


def _steps(op: Operator, inputs: list[tuple[str, Any]]) -> range:
    """The indices of the time steps in execution order."""
    counts = {name: len(array) for name, array in inputs}
    count = max(counts.values())
    if min(counts.values()) != count:
        raise failures.refusal(op, f"its inputs must have equally many steps, got {counts}")
    if not count:
        raise failures.refusal(op, f"its inputs {list(counts)} must have a step, got none")
    return range(count)[::-1] if op.attr("reverse") else range(count)


def _stack(
    run: Interpreter, op: Operator, made: dict[str, Any], name: str, step: int, steps: int, part: Any
) -> None:
    """Copy a variable's value of one step into the array for all steps."""
    if name not in made:
        made[name] = run.xp.zeros((steps, *part.shape), part.dtype)
    elif made[name].shape[1:] != part.shape:
        raise failures.refusal(
            op,
            f"{name!r} must have one shape in all steps, got {list(part.shape)} in step {step} and "
            f"{list(made[name].shape[1:])} before",
        )
    made[name][step] = part


def _arriving(run: Interpreter, op: Operator, frame: Frame) -> list[tuple[str, Any]]:
    """The outputs with their gradients; zeros for one that has not been computed."""
    found = []
    for name, gradient in zip(op.inputs.get("outputs", ()), op.inputs.get("outputs@GRAD", ()), strict=True):
        value = frame.find(gradient)
        found.append((name, run.xp.zeros_like(frame.get(name, op)) if value is None else value))
    return found


def _give(run: Interpreter, op: Operator, frame: Frame, slot: str, values: list[Any]) -> None:
    """Store the wanted gradients of an input slot; zeros for those that are None."""
    names, outs = op.inputs.get(slot, ()), op.outputs.get(grad_name(slot), ())
    for name, out, value in zip(names, outs, values, strict=False):
        if out != EMPTY:
            given = run.xp.zeros_like(frame.get(name, op)) if value is None else value
            frame.put(out, given, frame.lod_of(name))


_FUNCTIONS: dict[str, ControlFunction] = {
    "keep_value": run_keep_value,
    "conditional_block": run_conditional_block,
    "conditional_block_infer": run_conditional_block,
    "conditional_block_grad": run_conditional_block_grad,
    "select_input": run_select_input,
    "select_output": run_select_output,
    "while": run_while,
    "while_grad": run_while_grad,
    "recurrent": run_recurrent,
    "recurrent_grad": run_recurrent_grad,
}
