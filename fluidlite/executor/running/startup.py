"""First values of variables: programs of operators without inputs, which run once, most likely (startup programs).

Nothing has to be found out about such an operator, and a plan for it would take longer to make than it takes to run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ...backend.timing import record
from ...base.reports import profiling
from ...framework import Operator, Program
from .. import failures
from ..blocks.environment import Environment, World
from ..blocks.pieces import Blocks
from ..blocks.results import kept_as
from ..blocks.single_op import store
from ..tensors.scope import Scope
from .driver import Driver


def gives_first_values(program: Program, scope: Scope) -> bool:
    """Whether a program gives persistable variables their first values."""
    block = program.global_block()
    for op in block.ops:
        for name in filter(block._is_persistable, op.output_arg_names):
            held = scope.find_var(name)
            if held is None or not held.is_set() or _without_inputs(op):
                return True
    return False


def run_once(
    program: Program, scope: Scope, fetches: Sequence[str] = (), watched: bool = False
) -> tuple[Driver | None, str]:
    """Run a program that is fed nothing: operators without inputs as they come, then what remains.

    `watched`: whether results with NaN or infinities are refused; then all operators come in their order.

    Returns the run that knows the fetches, None if there are none, and what has run, for descriptions.
    """
    ops = program.global_block().ops
    first, rest = ([], ops) if watched else _split(ops)
    environment = Environment(program.global_block(), world=World(scope))
    for op in first:
        begin = time.perf_counter_ns()
        _give(op, environment)
        if profiling.active is not None:
            record(profiling.active, op.type, begin, time.perf_counter_ns(), None)
    counts = Counter(op.type for op in (*first, *rest))
    lines = [f"without a plan: {', '.join(f'{count} {kind}' for kind, count in counts.items())}"]
    if not rest and not fetches:
        return None, lines[0]
    blocks = Blocks(program, fetches, watched=watched)
    run = Driver(blocks, scope, {})
    run.environment = environment
    run.run_each(rest)
    if any(op.sub_blocks() for op in rest):
        lines.append(blocks.describe())
    return run, "\n".join(lines)


def _without_inputs(op: Operator) -> bool:
    """Whether an operator makes what it makes from its attributes alone."""
    definition = op.definition
    acts = definition.control or definition.host or definition.updates
    return not (acts or definition.kernel is None or any(op.inputs.values()))


def _split(ops: Sequence[Operator]) -> tuple[list[Operator], list[Operator]]:
    """Operators without inputs that may run before all others, and the others."""
    first: list[Operator] = []
    rest: list[Operator] = []
    touched: set[str] = set()  # what the others read or write
    random = False  # whether one of them draws numbers: those that follow come later
    for op in ops:
        if (
            _without_inputs(op)
            and touched.isdisjoint(op.output_arg_names)
            and not (random and op.definition.random)
        ):
            first.append(op)
        else:
            rest.append(op)
            touched.update(op.reads(), op.writes())
            random = random or op.definition.random or bool(op.sub_blocks())
    return first, rest


def _give(op: Operator, environment: Environment) -> None:
    """Run an operator without inputs."""
    try:
        results = op.definition.call(np, {}, op.attrs, direct=True)
    except Exception as error:
        failures.raise_in_operator(op, error)
    for name, value in op._named(results):
        store(environment, name, False, *kept_as(op, name), value)
