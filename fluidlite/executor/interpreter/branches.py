"""`conditional_block` and its gradient, `select_input`, `select_output`, `keep_value`."""

from __future__ import annotations

import numpy as np

from ...backend import to_host
from ...base.dtypes import to_numpy
from ...base.tensor_array import TensorArray
from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.registry import EMPTY, grad_name
from .. import failures
from ..control_flow.blocks import gradients, incoming_gradients
from .frame import Frame, Run
from .loops import truth


def run_conditional_block(run: Run, op: Operator, frame: Frame) -> None:
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


def _leave_empty(run: Run, op: Operator, frame: Frame) -> None:
    """Set outputs without a value to arrays without rows, with the LoD of the empty inputs."""
    empty = [name for name in op.inputs["Input"] if not frame.get(name, op).size]
    lod = next((lod for lod in map(frame.lod_of, empty) if lod), ())
    for name in op.outputs.get("Out", ()):
        var = op.block._find_var_recursive(name)
        if var is not None and frame.find(name) is None:
            shape = (0, *(max(size, 0) for size in var.shape[1:]))
            frame.put(name, run.xp.zeros(shape, to_numpy(var.dtype)), lod)


def run_conditional_block_grad(run: Run, op: Operator, frame: Frame) -> None:
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
            frame.put(out, state.values[inside], state.lods.get(inside, ()))
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


def run_select_input(run: Run, op: Operator, frame: Frame) -> None:
    names = op.inputs["X"]
    source = names[_place(op, len(names), frame)]
    frame.put(op.outputs["Out"][0], frame.get(source, op), frame.lod_of(source))


def run_select_output(run: Run, op: Operator, frame: Frame) -> None:
    names = op.outputs["Out"]
    source = op.inputs["X"][0]
    target = names[_place(op, len(names), frame)]
    frame.put(target, frame.get(source, op), frame.lod_of(source))


def run_keep_value(run: Run, op: Operator, frame: Frame) -> None:
    (name,) = op.inputs["X"]
    value = frame.find(name)
    if value is not None:
        frame.put(op.outputs["Out"][0], value.copy(), frame.lod_of(name))


FUNCTIONS = {
    "keep_value": run_keep_value,
    "conditional_block": run_conditional_block,
    "conditional_block_infer": run_conditional_block,
    "conditional_block_grad": run_conditional_block_grad,
    "select_input": run_select_input,
    "select_output": run_select_output,
}
