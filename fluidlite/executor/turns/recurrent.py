"""`recurrent` and its gradient as turns that are taken together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.registry import grad_name
from ..blocks.environment import Environment, Run
from ..plan.kept_branches import kept_inside, kept_within
from .form import Carried, Turns
from .stacks import Listed, Stack, Turned, same_rows, steps_of


class Steps(NamedTuple):
    """What has come of all steps: results and gradients of inputs stacked, sums over the steps, gradients of states as
    the last turn has left them, what is kept of each turn."""

    stacked: dict[str, Any]
    sums: dict[str, Any]
    states: list[Any]
    kept: Sequence[Environment]


def take_recurrent(run: Run, op: Operator, environment: Environment) -> Steps | None:
    """Run the block for all steps; None, with nothing done, if that has to be done step by step."""
    given: dict[str, Stack] = {}
    for name in op.inputs["inputs"]:
        array = environment.find(name)
        stack = steps_of(array) if isinstance(array, np.ndarray) else None
        if stack is None or not len(stack):
            return None
        given[name] = stack
    counts = {len(stack) for stack in given.values()}
    if len(counts) != 1:
        return None
    count = counts.pop()
    carried: dict[str, Carried] = {}
    for name, before, after in zip(
        op.inputs.get("initial_states", ()), op.attr("ex_states"), op.attr("states"), strict=True
    ):
        first = environment.find(name)
        if not isinstance(first, np.ndarray) or not first.ndim or environment.lod_of(name):
            return None
        carried[before] = Carried(after, np.ascontiguousarray(first), same_rows(count, len(first)))
    block, outputs = op.attrs["sub_block"], list(op.outputs.get("outputs", ()))
    kept = kept_names(op) or frozenset()
    inside = kept_inside(block.ops) if kept else []
    wanted = list(
        dict.fromkeys(
            [*outputs, *kept_within(block, block.ops, kept), *inside, *sorted(kept.intersection(carried))]
        )
    )
    turns = Turns(block, block.ops, count, bool(op.attr("reverse")), given, carried, wanted)
    taken = run.turns(turns, environment)
    if taken is None:
        return None
    saved = {
        name: stack for name, stack in {**given, **taken.stacks}.items() if name in kept or name in inside
    }
    turned = Turned(block, environment.world, saved, count, turns.back)
    return Steps({name: _steps(taken.stacks[name], count) for name in outputs}, {}, [], turned)


def take_recurrent_grad(
    run: Run, op: Operator, environment: Environment, arriving: list[tuple[str, Any]]
) -> Steps | None:
    """Run the gradient's block for all steps; None, with nothing done, if that has to be done step by step.

    `arriving`: the outputs with their gradients.
    """
    turned = environment.find(op.inputs["step_scopes"][0])
    if not isinstance(turned, Turned):
        return None
    block, count = op.attrs["sub_block"], len(turned)
    given: dict[str, Stack] = dict(turned.stacks)
    for name, array in arriving:
        stack = steps_of(array)
        if stack is None:
            return None
        given[grad_name(name)] = stack
    written = {name for inner in block.ops for name in inner.writes()}
    read = {name for inner in block.ops for name in inner.reads()}
    carried: dict[str, Carried] = {}
    for before, after in zip(op.attr("ex_states"), op.attr("states"), strict=True):
        given.pop(grad_name(after), None)
        if grad_name(after) not in read:
            continue
        like = turned.stacks.get(after, turned.stacks.get(before))
        if like is None:
            return None
        zeros = np.zeros_like(like.element(0))
        if grad_name(before) in written:
            carried[grad_name(after)] = Carried(grad_name(before), zeros, like.rows)
        else:
            given[grad_name(after)] = Listed([zeros] * count)
    parts = [name for name in dict.fromkeys(op.inputs["inputs"]) if grad_name(name) in written]
    sums = [n for n in dict.fromkeys(op.inputs.get("parameters", ())) if grad_name(n) in written]
    states = [grad_name(name) for name in op.attr("ex_states")]
    wanted = [*map(grad_name, parts), *(name for name in states if name in written)]
    turns = Turns(block, block.ops, count, not turned.back, given, carried, wanted, [*map(grad_name, sums)])
    taken = run.turns(turns, environment)
    if taken is None:
        return None
    return Steps(
        {name: _steps(taken.stacks[grad_name(name)], count) for name in parts},
        {name: taken.sums[grad_name(name)] for name in sums if grad_name(name) in taken.sums},
        [taken.stacks[name].element(turns.place(count - 1)) if name in written else None for name in states],
        (),
    )


def _steps(stack: Stack, count: int) -> np.ndarray:
    """All values, along a first axis of their own."""
    return stack.packed().reshape(count, stack.rows[0], *stack.tail)


__all__ = ["Steps", "take_recurrent", "take_recurrent_grad"]
