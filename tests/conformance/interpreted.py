"""Notes what of the cases no plan runs: `check.py --preload interpreted:start`.

The file that INTERPRETED_REPORT names gets a line for each run by the interpreter, for each fallback operator without a
good reason, and for each block that Python runs iteration by iteration: the case, a tab, what it is. Operators that run
blocks, call the user's functions or have data-dependent sizes are no part of plans; one that makes a persistable
variable for the first time is a fallback operator that once, without a reason to stay so.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

REASONS = ("non-tensor variables", "whose shape depends on data", "which cannot be rolled back")
"""Why an operator may be run on its own."""

TURN = "iteration by iteration"


def start() -> None:
    """Watch what runs; call it before the first case."""
    from fluidlite.executor.interpreter import control
    from fluidlite.executor.interpreter.interpreter import Interpreter
    from fluidlite.executor.interpreter.segmented import SegmentedExecutor
    from fluidlite.executor.interpreter.segments import FallbackOp

    # What runs a block once for each turn, where the engine does not take all of them.
    by_turns = (
        control.run_while,
        control._backward_iterations,
        control.run_recurrent,
        control.run_recurrent_grad,
    )
    codes = {function.__code__ for function in by_turns}
    report = Path(os.environ["INTERPRETED_REPORT"])
    report.touch()
    make = Interpreter.__init__

    def made(self: Interpreter, program: Any, scope: Any, feed: Any, *others: Any, **how: Any) -> None:
        if type(self) is Interpreter:
            note(f"fed {sorted(feed)}: {' '.join(op.type for op in program.global_block().ops)}")
        make(self, program, scope, feed, *others, **how)

    def note(what: str) -> None:
        with report.open("a") as file:
            file.write(f"{_case()}\t{what}\n")

    def cut(self: SegmentedExecutor, *others: Any) -> Any:
        piece = choose(self, *others)
        if isinstance(piece, FallbackOp) and piece.reason and not piece.reason.endswith(REASONS):
            note(f"{piece.op.type} on its own: {piece.reason}")
        return piece

    def block(self: SegmentedExecutor, *others: Any) -> None:
        if sys._getframe(1).f_code in codes:
            note(f"{TURN}: block {others[0].idx}")
        run_block(self, *others)

    run_block, SegmentedExecutor.run_block = SegmentedExecutor.run_block, block  # type: ignore[method-assign]
    choose, SegmentedExecutor._make = SegmentedExecutor._make, cut  # type: ignore[method-assign]
    Interpreter.__init__ = made  # type: ignore[method-assign]


def _case() -> str:
    """The case that is running: `check_case` of check.py has its name."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_name != "check_case":
        frame = frame.f_back
    return "" if frame is None else frame.f_locals["name"]
