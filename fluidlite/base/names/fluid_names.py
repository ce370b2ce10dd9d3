"""The names in the modules of Fluid 1.8, from `fluid_names.txt`, which is read at the first missing name.

A line of it is a module and its names; `@` precedes the module that defines a name which several modules have.
`scripts/list_fluid_names.py` writes it.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple


class Origin(NamedTuple):
    """The definition of a name: its module, and its name there ('' for a module itself)."""

    module: str
    name: str


@cache
def listed() -> dict[str, dict[str, Origin]]:
    """The names of each module of Fluid 1.8 by the module's name (`fluid.layers`), private ones too."""
    with open(os.path.join(os.path.dirname(__file__), "fluid_names.txt"), encoding="ascii") as file:
        rows = [line.split(":", 1) for line in file]
    return {module: dict(_entry(module, name) for name in names.split()) for module, names in rows}


def _entry(module: str, text: str) -> tuple[str, Origin]:
    name, _, home = text.rstrip("/").partition("@")
    if text.endswith("/"):
        return name, Origin(home or f"{module}.{name}", "")
    home, _, last = (home or module).partition(":")
    return name, Origin(home, last or name)


@cache
def public() -> dict[str, frozenset[str]]:
    """The public names of each module of Fluid 1.8."""
    return {module: frozenset(n for n in names if n[0] != "_") for module, names in listed().items()}


@cache
def places() -> dict[Origin, list[Origin]]:
    """All modules and names of an object, by its definition, which comes first."""
    result: dict[Origin, list[Origin]] = {}
    for module, names in listed().items():
        for name, origin in names.items():
            result.setdefault(origin, [origin]).append(Origin(module, name))
    return result
