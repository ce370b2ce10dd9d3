"""Programs that most likely run once: startup programs, which initialise variables, and single operators.

Compiling a plan would take longer than the run.
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
    """True if a program initialises persistable variables."""
    block = program.global_block()
    for op in block.ops:
        for name in filter(block._is_persistable, op.output_arg_names):
            held = scope.find_var(name)
            if held is None or not held.is_set() or _without_inputs(op):
                return True
    return False


def _without_inputs(op: Operator) -> bool:
    """True if the results of an operator depend on its attributes alone."""
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
    """Run operators of the global block, by default all, one by one; their sub-blocks run in segments."""
    if device is None and flags.engine() == "plan":
        run: Interpreter = SegmentedExecutor(
            ProgramSegments(program, fetches, check_finite=check_finite), scope, feed or {}
        )
    else:
        run = Interpreter(program, scope, feed or {}, device, check_finite)
    run.run_each(program.global_block().ops if ops is None else ops)
    return run
