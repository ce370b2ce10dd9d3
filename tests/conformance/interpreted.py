"""Notes which cases are run by the interpreter: `check.py --preload interpreted:start`.

The file that INTERPRETED_REPORT names gets a line for each such run: the case, a tab, what was interpreted. A program's
first run does not count if nothing is fed (startup programs, loading and saving): making a plan does not pay.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any
from weakref import WeakSet


def start() -> None:
    """Watch the interpreter; call it before the first case."""
    from fluidlite.executor.interpret import Interpreter

    report = Path(os.environ["INTERPRETED_REPORT"])
    report.touch()
    make, once = Interpreter.__init__, WeakSet[Any]()

    def made(self: Interpreter, program: Any, scope: Any, feed: Any, *others: Any) -> None:
        if feed or program in once:
            types = " ".join(op.type for op in program.global_block().ops)
            with report.open("a") as file:
                file.write(f"{_case()}\tfed {sorted(feed)}: {types}\n")
        once.add(program)
        make(self, program, scope, feed, *others)

    Interpreter.__init__ = made  # type: ignore[method-assign]


def _case() -> str:
    """The case that is running: `check_case` of check.py has its name."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_name != "check_case":
        frame = frame.f_back
    return "" if frame is None else frame.f_locals["name"]
