"""`recurrent` and its gradient: a block that runs for each time step of inputs, along their first axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...framework import Operator
from ...framework.gradients.blocks import kept_names, names_read
from ...ops.registry import EMPTY, grad_name
from .. import failures
from .frame import Frame, Run
from .loops import add_to


def run_recurrent(run: Run, op: Operator, frame: Frame) -> None:
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


def run_recurrent_grad(run: Run, op: Operator, frame: Frame) -> None:
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


def _stack(run: Run, op: Operator, made: dict[str, Any], name: str, step: int, steps: int, part: Any) -> None:
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


def _arriving(run: Run, op: Operator, frame: Frame) -> list[tuple[str, Any]]:
    """The outputs with their gradients; zeros for one that has not been computed."""
    found = []
    for name, gradient in zip(op.inputs.get("outputs", ()), op.inputs.get("outputs@GRAD", ()), strict=True):
        value = frame.find(gradient)
        found.append((name, run.xp.zeros_like(frame.get(name, op)) if value is None else value))
    return found


def _give(run: Run, op: Operator, frame: Frame, slot: str, values: list[Any]) -> None:
    """Store the wanted gradients of an input slot; zeros for those that are None."""
    names, outs = op.inputs.get(slot, ()), op.outputs.get(grad_name(slot), ())
    for name, out, value in zip(names, outs, values, strict=False):
        if out != EMPTY:
            given = run.xp.zeros_like(frame.get(name, op)) if value is None else value
            frame.put(out, given, frame.lod_of(name))


FUNCTIONS = {"recurrent": run_recurrent, "recurrent_grad": run_recurrent_grad}
