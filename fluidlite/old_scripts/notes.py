"""Reports of used old names: one warning for each name, and the list of --list-old."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import FrameType
from typing import Any

from ..base.errors import public

_used: dict[tuple[str, str, int], str] = {}

listing = False
"""Whether the names are printed at exit, and not warned of."""


@public
class OldNameWarning(UserWarning):
    """A script uses a name that today's Python or its packages no longer have, and that was restored."""


def users(frame: FrameType) -> FrameType | None:
    """The frame of the user's own code that called `frame`'s function, or None if other code did.

    User code is the script, typed input, and every module that is not installed (below the standard library
    or `site-packages`) and no part of this package. Code without a file, as of `exec`, belongs to the module in whose
    namespace it runs, or to the code that runs it.
    """
    asking: FrameType | None = frame
    while asking is not None:
        name: Any = asking.f_globals.get("__name__")
        file = asking.f_code.co_filename
        if not file.startswith(_IMPORTING):
            if name in _TYPED:
                return asking
            owner = getattr(sys.modules.get(name), "__file__", None) if file.startswith("<") else file
            if owner is not None:
                return None if installed(owner) else asking
        asking = asking.f_back
    return None


_TYPED = ("__main__", "__mp_main__", "__console__")
_IMPORTING = ("<frozen importlib", importlib.__file__)
_PACKAGE = __file__.removesuffix("old_scripts/notes.py")
_LIBRARY = warnings.__file__.removesuffix("warnings.py")
_INSTALLED: dict[str, bool] = {}


def installed(filename: str) -> bool:
    """Whether a file of code belongs to Python, to an installed package or to this one."""
    found = _INSTALLED.get(filename)
    if found is None:
        path = filename.replace("\\", "/")
        found = (
            path.startswith((_LIBRARY, _PACKAGE)) or "/site-packages/" in path or "/dist-packages/" in path
        )
        _INSTALLED[filename] = found
    return found


def note(name: str, instead: str, frame: FrameType) -> None:
    """Warn that the user's code in `frame` uses `name`, today spelt `instead`: once for each name.

    The list of `--list-old` has each line.
    """
    place = (name, frame.f_code.co_filename, frame.f_lineno)
    seen = any(name == noted for noted, _, _ in _used)
    _used[place] = instead
    if seen or listing:
        return
    text = f"{name}: no longer in today's Python and packages; fluidlite puts it back. Today's spelling: {instead}"
    _, filename, line = place
    warnings.warn_explicit(text, OldNameWarning, filename, line, frame.f_globals.get("__name__", filename))


def print_list() -> None:
    """Print the noted names, in the order of files and lines, to standard error."""
    print(f"old names used: {len(_used)}", file=sys.stderr)
    for (name, filename, line), instead in sorted(_used.items(), key=lambda item: item[0][1:]):
        print(f"{filename}:{line}: {name} -> {instead}", file=sys.stderr)
