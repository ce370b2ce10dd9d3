"""Writes `docs/names.md`: the public names of Fluid 1.8, module by module, with their state here.

usage: python scripts/name_table.py [--check]    (--check writes nothing; status 1 if the page is out of date)
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import generated

from fluidlite.base import missing
from fluidlite.base.names import fluid_modules, stand_ins
from fluidlite.base.names.stand_ins import is_stand_in, why_never

PAGE = Path(__file__).parents[1] / "docs" / "names.md"

HEAD = """\
# The names of Fluid 1.8

Every public module of Paddle 1.8.5 with the names that it or one below it defines, and what they are here; a name that
a module has from elsewhere is found where that is. `scripts/name_table.py` writes this page, and a test keeps it true.

* **here**: works as in Fluid, but for what `compatibility.md` says;
* **raises when used**: can be imported, stored, derived from and passed around; calling it, or anything derived
  from it, raises `NotSupportedError`, which names it;
* **never**: the same, and will not come; the error says why, and so does this page at its end;
* **raises in Fluid, too**: Paddle 1.8.5 raises an error of its own whenever it is used.
"""


def state(module: str, name: str) -> str:
    """Which of KINDS a name is."""
    owner = missing.module_here(module) or missing.module_in_place(module)
    try:
        value = getattr(owner, name)
    except AttributeError:
        return "missing"
    why = why_never(value)
    if why:
        return "raises in Fluid, too" if why.startswith(stand_ins.RAISES) else "never"
    return "raises when used" if is_stand_in(value) else "here"


def states(module: str) -> dict[str, list[str]]:
    """The names that a module of Fluid, or one below it, defines, by their state; without modules."""
    found: dict[str, list[str]] = {}
    for name in sorted(fluid_modules.public()[module]):
        origin = fluid_modules.listed()[module][name]
        if origin.name and (origin.module == module or origin.module.startswith(module + ".")):
            found.setdefault(state(module, name), []).append(name)
    return found


def page() -> str:
    """The text of docs/names.md."""
    rows, parts = [], []
    for module in sorted(name for name in fluid_modules.public() if not _private(name)):
        found = states(module)
        if found:
            rows.append((module, found))
    parts.append(HEAD)
    for module, found in rows:
        parts.append(f"## {module}\n")
        for kind in KINDS:
            if kind in found:
                parts.append(_folded(f"{kind}: " + " ".join(found[kind])))
    parts.append("## Why never\n")
    for reason, names in sorted(
        _reasons([module for module, found in rows if _NEVER & found.keys()]).items()
    ):
        parts.append(_folded(f"{' '.join(f'`{name}`' for name in sorted(names))}: {reason}."))
    return "\n".join(parts)


KINDS = ("here", "raises when used", "never", "raises in Fluid, too", "missing")
_NEVER = {"never", "raises in Fluid, too"}


def _reasons(modules: list[str]) -> dict[str, set[str]]:
    """The names of some modules that will not come, by the reason; each where it is defined."""
    found: dict[str, set[str]] = {}
    for module in modules:
        for name in (name for kind in _NEVER for name in states(module).get(kind, ())):
            origin = fluid_modules.listed()[module][name]
            full = f"{origin.module}.{origin.name}"
            found.setdefault(stand_ins.reason(full) or "", set()).add(full)
    return found


def _folded(text: str) -> str:
    return textwrap.fill(text, 118, break_on_hyphens=False) + "\n"


def _private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


if __name__ == "__main__":
    sys.exit(generated.write({PAGE: page()}))
