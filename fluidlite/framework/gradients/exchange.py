"""Gradients added up over processes (operators put into a program with its update) or over several batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ..block import Block
from ..common_attrs import OpRole
from ..operator import Operator
from ..program import Program, copy_op

BUCKET = 4 << 20
"""The least bytes of gradients in a message, but for the last one."""

_BEGINS_BACKWARD = OpRole.Backward | OpRole.Loss


def scale_loss_gradients(program: Program, factor: float) -> None:
    """Multiply the gradient of each loss by `factor`, from which all others follow."""
    block = program.global_block()
    for at in _loss_gradients(block):
        gradient = block.vars[block.ops[at].output_arg_names[0]]
        block._insert_op(
            at + 1,
            type="scale",
            inputs={"X": gradient},
            outputs={"Out": gradient},
            attrs={"scale": factor, "op_role": OpRole.Backward},
        )


def take_loss_gradients(program: Program) -> None:
    """Make the gradient of each loss a feed."""
    block = program.global_block()
    for at in _loss_gradients(block):
        block._remove_op(at)


def _loss_gradients(block: Block) -> list[int]:
    """The positions of the operators that begin a backward pass, the last one first."""
    places = [at for at, op in enumerate(block.ops) if int(op.attrs.get("op_role", 0)) == _BEGINS_BACKWARD]
    return places[::-1]


def reduce_gradients(program: Program, nrings: int = 1) -> None:
    """Append an allreduce of each parameter's gradient as soon as it is computed.

    `nrings`: the number of NCCL rings that they are distributed among.
    """
    block = program.global_block()
    found, ring = _gradients(block), -1
    for at, names in reversed(found):
        _insert(block, at + 1, "c_sync_calc_stream", block.vars[names[0]], OpRole.Backward)
        for name in names:  # the last one in front
            ring = (ring + 1) % nrings
            _insert(block, at + 2, "c_allreduce_sum", block.vars[name], OpRole.Backward, ring_id=ring)
    update = _update(block)
    if found and update < len(block.ops):
        wait_for_all(block, update, block.vars[found[0][1][-1]], nrings, OpRole.Backward)


def _gradients(block: Block) -> list[tuple[int, list[str]]]:
    """The gradients of parameters that processes exchange, by the place of the operator that completes them."""
    result = []
    for at, op in enumerate(block.ops):
        if int(op.attrs.get("op_role", 0)) & OpRole.Backward:
            named = op.attrs.get("op_role_var") or []
            names = [
                name
                for parameter, name in zip(named[::2], named[1::2], strict=True)
                if not getattr(block.vars[parameter], "is_distributed", False)
            ]
            if names:
                result.append((at, names))
    return result


def _update(block: Block) -> int:
    """The position of the first operator that updates parameters; the end if there is none."""
    places = (at for at, op in enumerate(block.ops) if int(op.attrs.get("op_role", 0)) & OpRole.Optimize)
    return next(places, len(block.ops))


def exchange_gradients(program: Program, bucket: int = BUCKET) -> None:
    """As `reduce_gradients`, in messages of `bucket` bytes that overlap with the computation of further gradients.

    A sparse gradient is a message of its own. The operators are not Fluid's: the program can be run, but not saved.
    """
    block = program.global_block()
    made = [(at, name) for at, names in _gradients(block) for name in names]
    dense = [(at, name) for at, name in made if _has_size(block.vars[name])]
    update = _update(block)
    rows = [(at, name) for at, name in made if not _has_size(block.vars[name])]
    for at, name in reversed(rows):
        _insert(block, at + 1, "c_allreduce_sum", block.vars[name], OpRole.Backward)
    moved = [(at + sum(other < at for other, _ in rows), name) for at, name in dense]
    _send_together(block, moved, update + len(rows), bucket)


def _has_size(var: Any) -> bool:
    return var.type == VarType.LOD_TENSOR and -1 not in var.shape


def _send_together(block: Block, made: list[tuple[int, str]], end: int, bucket: int) -> None:
    """Send arrays in messages of `bucket` bytes, each begun when its last array is computed, and received before `end`.

    `made`: the position of the operator that makes an array, and its name. The rest is one message at `end`.
    """
    buckets: list[tuple[int, list[str]]] = []
    filling: dict[Any, tuple[int, list[str]]] = {}
    for at, name in made:
        var = block.vars[name]
        size, names = filling.get(var.dtype, (0, []))
        size += int(np.prod(var.shape, dtype=np.int64)) * np.dtype(to_numpy(var.dtype)).itemsize
        filling[var.dtype] = size, [*names, name]
        if size >= bucket:
            buckets.append((at, filling.pop(var.dtype)[1]))
    begun = len(buckets)
    buckets += [(end, names) for _, names in filling.values()]
    role = {"op_role": OpRole.Backward}
    for key, (_, names) in reversed(list(enumerate(buckets))):
        held = [block.vars[name] for name in names]
        block._insert_op(
            end,
            type="gradient_sums",
            inputs={"X": held},
            outputs={"Out": held},
            attrs={"bucket": key, **role},
        )
    for key, (at, names) in reversed(list(enumerate(buckets[:begun]))):
        block._insert_op(
            at + 1,
            type="begin_gradient_sums",
            inputs={"X": [block.vars[name] for name in names]},
            outputs={},
            attrs={"bucket": key, **role},
        )


def in_messages(program: Program, bucket: int = BUCKET) -> Program:
    """`program`, or a copy of it in which arrays that c_allreduce_sum adds up one by one travel together.

    These are arrays that no operator looks at between c_allreduce_sum and the next c_sync_comm_stream: until then a
    program has to wait with that anyway.
    """
    waits = _waits(program.global_block())
    if not any(len(_reductions(program.global_block(), begin, end)) > 1 for begin, end in waits):
        return program
    copy = program.clone()
    block = copy.global_block()
    for begin, end in reversed(waits):
        places = _reductions(block, begin, end)
        made = [
            (at - 1 - number, block.ops[at].output_arg_names[0]) for number, at in enumerate(sorted(places))
        ]
        for at in sorted(places, reverse=True):
            block._remove_op(at)
        _send_together(block, made, end - len(places), bucket)
    return copy


def _waits(block: Block) -> list[tuple[int, int]]:
    """Spans in which messages may be in flight: the positions after a wait and of the next one."""
    waits = [at for at, op in enumerate(block.ops) if op.type == "c_sync_comm_stream"]
    first = [at for at in waits if at - 1 not in waits]
    return list(zip([0, *first], first, strict=False))


def _reductions(block: Block, begin: int, end: int) -> list[int]:
    """The places of the sums in this range that can wait for its end."""
    found: dict[str, int] = {}
    for at in range(begin, end):
        op = block.ops[at]
        if op.type == "c_sync_calc_stream":
            continue
        used = {*op.input_arg_names, *op.output_arg_names}
        for name in used & found.keys():
            del found[name]
        if op.type == "c_allreduce_sum" and len(used) == 1 and not op.attrs.get("use_calc_stream"):
            (name,) = used
            if name in block.vars and _has_size(block.vars[name]):
                found[name] = at
    return sorted(found.values())


def wait_for_all(block: Any, at: int, var: Any, nrings: int, role: int) -> None:
    """Make the operators from position `at` on wait for all rings."""
    for ring in range(nrings):
        _insert(block, at + ring, "c_sync_comm_stream", var, role, ring_id=ring)


def _insert(block: Any, at: int, op_type: str, var: Any, role: int, **attrs: int) -> None:
    block._insert_op(
        at, type=op_type, inputs={"X": var}, outputs={"Out": var}, attrs={**attrs, "op_role": role}
    )


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
