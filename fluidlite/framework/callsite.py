"""Where in the user's code something happened."""

from __future__ import annotations

import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).resolve().parents[1])


def user_line() -> tuple[str, int] | None:
    """File and line of the innermost frame outside of fluidlite, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_PACKAGE) and not filename.startswith("<"):
            return filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def describe(line: tuple[str, int] | None) -> str:
    """` (built at FILE:LINE)`, or nothing."""
    return f" (built at {line[0]}:{line[1]})" if line else ""
