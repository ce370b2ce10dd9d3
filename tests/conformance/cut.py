"""Runs programs in pieces of one operator each: `check.py --preload cut:start`.

What an operator's shapes, sequences and results follow from must be what it reads, wherever a piece begins and ends.
"""

from __future__ import annotations

from typing import Any


def start() -> None:
    """Have no program run as one plan, and no piece hold more than one operator; call it before the first case."""
    from fluidlite.executor import plan_cache
    from fluidlite.executor.failures import Unsupported
    from fluidlite.executor.interpreter.segmented import BlockSegments

    def refused(*others: Any, **options: Any) -> Any:
        raise Unsupported("it is cut into pieces")

    def one(self: BlockSegments, begin: int) -> int:
        return begin + (not self._unplannable[begin])

    plan_cache.compile_plan = refused
    BlockSegments.end_of_segment = one  # type: ignore[method-assign]
