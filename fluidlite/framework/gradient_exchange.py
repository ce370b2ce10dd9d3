"""Gradients that processes add up: operators that do it, in a program that has its backward pass and its update."""

from __future__ import annotations

from typing import Any

from .operator import OpRole
from .program import Program


def scale_loss_gradients(program: Program, factor: float) -> None:
    """Multiply the gradient of each loss by `factor`, from which all others follow."""
    block = program.global_block()
    for at, op in reversed(list(enumerate(block.ops))):
        if int(op.attrs.get("op_role", 0)) == OpRole.Backward | OpRole.Loss:
            gradient = block.vars[op.output_arg_names[0]]
            block._insert_op(
                at + 1,
                type="scale",
                inputs={"X": gradient},
                outputs={"Out": gradient},
                attrs={"scale": factor, "op_role": OpRole.Backward},
            )


def reduce_gradients(program: Program, nrings: int = 1) -> None:
    """Have all processes add up each gradient of a parameter as soon as it is there.

    `nrings`: how many of NCCL's connections they are shared out among.
    """
    block = program.global_block()
    ring, gradient = -1, None
    for at, op in reversed(list(enumerate(block.ops))):
        if not int(op.attrs.get("op_role", 0)) & OpRole.Backward:
            continue
        named = op.attrs.get("op_role_var") or []
        place = at + 1
        for parameter, name in zip(named[::2], named[1::2], strict=True):
            if getattr(block.vars[parameter], "is_distributed", False):
                continue
            gradient = block.vars[name]
            if place == at + 1:
                _insert(block, place, "c_sync_calc_stream", gradient, OpRole.Backward)
                place += 1
            ring = (ring + 1) % nrings
            _insert(block, place, "c_allreduce_sum", gradient, OpRole.Backward, ring_id=ring)
    if gradient is None:
        return
    update = next(
        (at for at, op in enumerate(block.ops) if int(op.attrs.get("op_role", 0)) & OpRole.Optimize), None
    )
    if update is not None:
        wait_for_all(block, update, gradient, nrings, OpRole.Backward)


def wait_for_all(block: Any, at: int, var: Any, nrings: int, role: int) -> None:
    """Have the operators from place `at` on wait until all rings are done."""
    for ring in range(nrings):
        _insert(block, at + ring, "c_sync_comm_stream", var, role, ring_id=ring)


def _insert(block: Any, at: int, op_type: str, var: Any, role: int, **attrs: int) -> None:
    block._insert_op(
        at, type=op_type, inputs={"X": var}, outputs={"Out": var}, attrs={**attrs, "op_role": role}
    )
