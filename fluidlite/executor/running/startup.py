"""First values of variables: programs of operators without inputs, which run once, most likely (startup programs).

Nothing has to be found out about such an operator, and a plan for it would take longer to make than it takes to run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...framework import Operator, Program
from ..blocks.pieces import Blocks
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


def _without_inputs(op: Operator) -> bool:
    """Whether an operator makes what it makes from its attributes alone."""
    definition = op.definition
    acts = definition.control or definition.host or definition.updates
    return not (acts or definition.kernel is None or any(op.inputs.values()))


def run_once(
    program: Program, scope: Scope, fetches: Sequence[str] = (), watched: bool = False
) -> tuple[Driver, str]:
    """Run a program that is fed nothing, operators as they come; those that run blocks have these in pieces.

    `watched`: whether results with NaN or infinities are refused. Returns the run, and what has run, for descriptions.
    """
    blocks, ops = Blocks(program, fetches, watched=watched), program.global_block().ops
    run = Driver(blocks, scope, {})
    run.run_each(ops)
    counts = Counter(op.type for op in ops)
    told = f"without a plan: {', '.join(f'{count} {kind}' for kind, count in counts.items())}"
    inside = blocks.describe()
    return run, f"{told}\n{inside}" if inside else told
