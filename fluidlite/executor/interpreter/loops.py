"""`while` and its gradient."""

from __future__ import annotations

from typing import Any

from ...backend import to_host
from ...base.selected_rows import total
from ...base.tensor_array import TensorArray
from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.registry import EMPTY, grad_name
from .. import failures
from .frame import Frame, Run


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


def run_while(run: Run, op: Operator, frame: Frame) -> None:
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


def run_while_grad(run: Run, op: Operator, frame: Frame) -> None:
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
            frame.put(out, state.values[inside], state.lods.get(inside, ()))
        elif inside in sums:
            frame.put(out, sums[inside], frame.lod_of(name))
        else:
            zeros = run.xp.zeros_like(frame.get(name, op))
            frame.put(out, zeros, frame.lod_of(name))


def _backward_iterations(
    run: Run, op: Operator, state: Frame, arrays: dict[str, TensorArray], wanted: list[str]
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


FUNCTIONS = {"while": run_while, "while_grad": run_while_grad}
