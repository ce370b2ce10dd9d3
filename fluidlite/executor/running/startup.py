"""What runs once, most likely: programs that give variables their first values (startup programs), single operators.

A plan would take longer to make than that takes to run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...base import flags
from ...framework import Operator, Program
from ..feeding import Feed
from ..interpreter.interpreter import Interpreter
from ..interpreter.segmented import SegmentedExecutor
from ..interpreter.segments import ProgramSegments
from ..tensors.scope import Scope

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


def initialises(program: Program, scope: Scope) -> bool:
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
    acts = definition.effects.control or definition.effects.host or definition.effects.updates
    return not (acts or definition.kernel is None or any(op.inputs.values()))


def run_once(
    program: Program,
    scope: Scope,
    ops: Iterable[Operator] | None = None,
    feed: Feed | None = None,
    fetches: Sequence[str] = (),
    device: CudaDevice | None = None,
    check_finite: bool = False,
) -> Interpreter:
    """Run operators of the global block, by default all, as they come; those that run blocks have these in pieces."""
    if device is None and flags.engine() == "plan":
        run: Interpreter = SegmentedExecutor(
            ProgramSegments(program, fetches, check_finite=check_finite), scope, feed or {}
        )
    else:
        run = Interpreter(program, scope, feed or {}, device, check_finite)
    run.run_each(program.global_block().ops if ops is None else ops)
    return run
