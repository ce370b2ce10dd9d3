"""The line of the user's code that called into this package."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from types import FrameType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_PASSED = (_PACKAGE, "<frozen", contextlib.__file__)
"""Code between the user and operators: this package, and `contextlib`, which enters and leaves its blocks."""

_OURS: dict[str, bool] = {}
"""File name -> whether it belongs to fluidlite."""


def user_line() -> tuple[str, int] | None:
    """File and line of the innermost frame outside of fluidlite, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (_OURS.get(frame.f_code.co_filename) or _is_ours(frame)):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def called_by_user() -> bool:
    """Whether the function that asks was called from outside of fluidlite, and not by fluidlite itself."""
    return not _is_ours(sys._getframe(2))


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside of fluidlite."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    filename = frame.f_code.co_filename
    ours = _OURS.get(filename)
    if ours is None:
        ours = _OURS[filename] = filename.startswith(_PASSED)
    return ours


def describe(line: tuple[str, int] | None, done: str = "built") -> str:
    """` (built at FILE:LINE)`, in a notebook ` (built at In[3], line 1)`, or nothing."""
    if line is None:
        return ""
    running = shell()
    cell = None if running is None else running.compile.format_code_name(line[0])
    place = f"{line[0]}:{line[1]}" if cell is None else f"{cell[1]}, line {line[1]}"
    return f" ({done} at {place})"


def shell() -> Any:
    """The shell of the notebook, or of IPython, that runs in this process; None if there is none."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
