"""Removed names of Python and its packages, which scripts of 2020 use: restored for the user's code only.

`names.py` has the names, `adapters.py` and `calls.py` the changed behaviour, `docs/old_scripts.md` the whole list.
Names are resolved by a `__getattr__` of their module that inspects the caller (`finder.py`); changed behaviour needs
the user's code to be rewritten before it is compiled (`rewriting.py`). Other packages are not affected.
"""

import atexit

from ..base import callsite, flags
from . import finder, notes, rewriting
from .finder import active, for_user
from .notes import OldNameWarning, print_list

__all__ = [
    "OldNameWarning",
    "active",
    "for_user",
    "install",
    "list_at_exit",
    "rewriting",
    "set_strict",
    "strict",
]


_strict: bool | None = None


def strict() -> bool:
    """Whether old names are not restored (`--strict`, FLUIDLITE_STRICT=1)."""
    return _strict if _strict is not None else flags.switch("FLUIDLITE_STRICT")


def set_strict(strict: bool) -> None:
    """Choose whether old names are not restored, before `install`."""
    global _strict
    _strict = strict


def install() -> None:
    """Restore old names in this process, and in the cells of a notebook that runs in it, unless `strict()`.

    Calling it again looks for a notebook that has been started since.
    """
    if strict():
        return
    finder.install()
    shell = callsite.shell()
    if shell is not None:
        from . import calls  # which few scripts need

        if not any(isinstance(one, calls.Transformer) for one in shell.ast_transformers):
            shell.ast_transformers.append(calls.Transformer(shell))


def list_at_exit() -> None:
    """Print the used old names when the process ends, instead of warning of them."""
    notes.listing = True
    atexit.register(print_list)
