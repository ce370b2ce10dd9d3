"""Gradient accumulation: programs with one update for several batches (Fluid's multi_batch_merge_pass)."""

from __future__ import annotations

from typing import Any

from .block import Block
from .common_attrs import OpRole
from .operator import Operator
from .program import Program, copy_op

_STATE = {"Mean", "MeanOut", "Variance", "VarianceOut"}
"""The slots of batch_norm whose variables a batch may have of its own: `NAME.repeat.K`."""


def merge_batches(program: Program, count: int) -> None:
    """Transform `program` to run its forward and backward pass `count` times in a step, and its update once.

    What the update reads of the backward pass is the mean of all times; a non-iterable reader gives each time its next
    batch. Where the program has variables `NAME.repeat.0`, ... for the running mean and variance of a batch_norm, each
    time uses its own. Values that are fetched are those of the last time.
    """
    block = program.global_block()
    schedule, repeated, update = _divided(block.ops)
    made = {name for op in repeated if _role(op) & OpRole.Backward for name in op.output_arg_names}
    gradients = [
        name for name in dict.fromkeys(name for op in update for name in op.input_arg_names) if name in made
    ]
    sums = {name: _variable_like(block, name, f"{name}.merged") for name in gradients}
    parameters = {
        gradient: parameter
        for op in repeated
        for parameter, gradient in zip(*[iter(op.attrs.get("op_role_var", []))] * 2, strict=True)
    }
    block.ops = schedule
    for time in range(count):
        for op in repeated:
            block.ops.append(_of_time(op, block, time))
            if op.type == "read":
                _read_into_own(block, time)
        last = time == count - 1
        for name in gradients:
            terms = [sums[name], name] if time else [name]
            _append(block, "sum", terms, name if last else sums[name], OpRole.Backward)
    for name in gradients:
        pair = [parameters[name], name] if name in parameters else []
        _append(block, "scale", [name], name, OpRole.Backward, scale=1.0 / count, op_role_var=pair)
    block.ops = [*block.ops, *update]
    program._changed()


def _role(op: Operator) -> int:
    return int(op.attrs.get("op_role", OpRole.Forward))


def _divided(ops: list[Operator]) -> tuple[list[Operator], list[Operator], list[Operator]]:
    """The operators of the learning rate schedule, of a batch (forward and backward), and of the updates."""
    schedule = [op for op in ops if _role(op) & OpRole.LRSched]
    update = [
        op for op in ops if _role(op) & (OpRole.Optimize | OpRole.RPC | OpRole.Dist) and op not in schedule
    ]
    once = {*schedule, *update}
    return schedule, [op for op in ops if op not in once], update


def _variable_like(block: Block, name: str, new: str) -> str:
    """A new variable of the kind that `name` is."""
    var = block.vars[name]
    return block.create_var(
        name=new, type=var.type, dtype=var.dtype, shape=var.shape, lod_level=var.lod_level, stop_gradient=True
    ).name


def _read_into_own(block: Block, time: int) -> None:
    """Have the last operator, which reads a batch, write variables of repetition `time`: all batches are read first."""
    read = block.ops[-1]
    for slot, names in read.outputs.items():
        read.outputs[slot] = [_variable_like(block, name, f"{name}.repeat.{time}") for name in names]
        for name, own in zip(names, read.outputs[slot], strict=True):
            _append(block, "assign", [own], name, OpRole.Forward)


def _of_time(op: Operator, block: Block, time: int) -> Operator:
    copy = copy_op(op, block, False)
    copy.attrs.pop("op_role_var", None)  # the gradient of a parameter is there when all times are over
    if op.type in ("batch_norm", "batch_norm_grad"):
        for slots in (copy.inputs, copy.outputs):
            for slot in slots.keys() & _STATE:
                own = [f"{name}.repeat.{time}" for name in slots[slot]]
                if all(block.has_var(name) for name in own):
                    slots[slot] = own
    return copy


def _append(block: Block, type: str, terms: list[str], out: str, role: int, **attrs: Any) -> None:
    block.append_op(type=type, inputs={"X": terms}, outputs={"Out": out}, attrs={**attrs, "op_role": role})
