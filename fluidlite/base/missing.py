"""Answers for names that are not here: those of Fluid 1.8 say so, others get a suggestion.

A module says `__getattr__ = missing.reporter(__name__)` (PEP 562). Which names Fluid has is listed in
`fluid_names.txt`, one public module a line, submodules with a slash; it is read only when a name is missing.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import opcode
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from .errors import NotSupportedError
from .fluid_modules import ABSENT, ADVICE, ALIASES, fluid_name, real_name

_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


@cache
def fluid_names() -> dict[str, frozenset[str]]:
    """The public names of each public module of Fluid 1.8, by the module's name (`fluid.layers`)."""
    text = Path(__file__).with_name("fluid_names.txt").read_text(encoding="ascii")
    rows = (line.split(":", 1) for line in text.splitlines())
    return {module: frozenset(name.rstrip("/") for name in names.split()) for module, names in rows}


def in_fluid(name: str) -> bool:
    """Whether Fluid 1.8 has `name`, such as `fluid.layers.fc`, `fluid.layers` or `paddle.reader`."""
    module, _, last = name.rpartition(".")
    return last in fluid_names().get(module, ()) or name in fluid_names()


def explain(name: str) -> str:
    """The message for a name that Fluid 1.8, or Paddle after it, has and this package does not."""
    if in_fluid(name) or name in ABSENT:
        text = f"{name} exists in Fluid 1.8 but not in fluidlite yet (docs/compatibility.md lists what does)"
    else:
        text = f"{name} exists in Paddle but not in fluidlite"
    return f"{text}: {ADVICE[name]}" if name in ADVICE else text


def reporter(module: str, lazy: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """A module-level `__getattr__` for `module` (its `__name__`).

    `lazy` says in which submodules further names are, which are loaded when somebody asks for them ('' for a name that
    is a submodule itself). It imports modules of Fluid that live elsewhere here (`fluid.layers.nn`). For other names of
    Fluid 1.8 it raises NotSupportedError, for names that nobody has AttributeError, with a suggestion if one is near.
    In `from module import name` both become ImportError with the same text, which Python would replace by its
    own.
    """
    fluid_module = fluid_name(module)

    def __getattr__(name: str) -> Any:
        full = f"{fluid_module}.{name}"
        if lazy is not None and name in lazy:
            where = lazy[name]
            found = importlib.import_module(f"{module}.{where or name}")
            if where:
                found = getattr(found, name)
                setattr(sys.modules[module], name, found)
            return found
        if full in ALIASES:
            return importlib.import_module(ALIASES[full])
        error: AttributeError
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        # A module of another topic may stand where Fluid has one that does not exist here (`fluid.dataset`).
        meant = [full, *(f"{absent}.{name}" for absent in ABSENT if real_name(absent) == module)]
        there = [text for text in meant if in_fluid(text) or text in ABSENT or text in ADVICE]
        if there:
            error = NotSupportedError(explain(there[0]), name=name)
        else:
            near = difflib.get_close_matches(name, [n for n in vars(sys.modules[module]) if n[0] != "_"], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            error = AttributeError(f"module {fluid_module!r} has no attribute {name!r}{hint}", name=name)
        if _in_import(sys._getframe(1), module, name):
            raise ImportError(str(error), name=module) from None
        raise error

    return __getattr__


def _in_import(caller: FrameType, module: str, name: str) -> bool:
    """Whether `caller` is looking `name` up for the statement `from module import name`."""
    code = caller.f_code
    if code.co_filename == "<frozen importlib._bootstrap>" and code.co_name == "_handle_fromlist":
        # A package is asked first whether it has the name; a submodule of that name may still be there.
        return not _is_submodule(f"{module}.{name}")
    return code.co_code[caller.f_lasti] == _IMPORT_FROM


def _is_submodule(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
