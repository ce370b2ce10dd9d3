"""Writes `paddle-stubs/`, by which type checkers know `import paddle` and `import paddle.fluid as fluid`.

python scripts/paddle_stubs.py          # write the stubs
python scripts/paddle_stubs.py --check  # exit 1 if one is out of date

A stub re-exports the names that a module of Paddle has here from where they are defined and typed. It has none of those
that are missing, so that a checker reports them.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import generated

sys.path.insert(0, str(Path(__file__).parents[1]))
from fluidlite.base import missing
from fluidlite.base.names import fluid_modules
from fluidlite.base.names.fluid_modules import fluid_name, real_name
from fluidlite.base.names.stand_ins import is_stand_in
from fluidlite.base.names.views import VIEWS

ROOT = Path(__file__).parents[1] / "paddle-stubs"
OF_THE_RUNNER = ("children", "hook", "in_child", "of_children", "run_mode", "script")
HEAD = f"# Written by scripts/{Path(__file__).name}.\n# ruff: noqa\n# fmt: off\n"


def modules() -> dict[str, ModuleType]:
    """The modules of Paddle that are here, by their names there."""
    names = {f"paddle.{name}" if name.startswith("fluid") else name for name in fluid_modules.listed()}
    package = importlib.import_module("fluidlite.paddle")
    own = (one.name for one in pkgutil.walk_packages(package.__path__, "fluidlite.paddle."))
    names |= {fluid_name(f"fluidlite.{view}") for view in VIEWS if view.startswith("paddle.")}
    names |= {fluid_name(name) for name in own if name.split(".")[2] not in OF_THE_RUNNER}
    found = {"paddle": package}
    for name in sorted(names):
        real = real_name(name)
        if name.split(".")[-1][0] != "_" and missing.spec_of(real) is not None:
            found[name] = importlib.import_module(real)
    return {name: module for name, module in found.items() if name.rpartition(".")[0] in ("", *found)}


def stub(name: str, module: ModuleType, submodules: list[str]) -> str:
    """The stub of the module that Paddle calls `name`; what is no module there hides a submodule of its name."""
    names = {one: getattr(module, one, None) for one in (*public(name, module), *submodules)}
    shown = [one for one in submodules if isinstance(names[one], ModuleType) or names[one] is None]
    homes: dict[str, list[str]] = {}
    for one, value in sorted(names.items()):
        foreign = isinstance(value, ModuleType) and not value.__name__.startswith("fluidlite.")
        if one not in shown and value is not None and not foreign and not is_stand_in(value):
            home, own = origin(module, one, value)
            homes.setdefault(home, []).append(f"{own} as {one}")
    if shown:
        homes["."] = [f"{one} as {one}" for one in shown]
    lines = [
        f"from {home} import (\n    " + ",\n    ".join(parts) + ",\n)\n"
        for home, parts in sorted(homes.items())
    ]
    return HEAD + "".join(lines)


def public(name: str, module: ModuleType) -> list[str]:
    """The public names of a module: Fluid's, and those in its own `__all__`."""
    short = name.removeprefix("paddle.") if name.startswith("paddle.fluid") else name
    names = {*fluid_modules.public().get(short, ()), *getattr(module, "__all__", ())}
    return sorted(part for part in names if part.isidentifier() and part[0] != "_")


def origin(module: ModuleType, name: str, value: Any) -> tuple[str, str]:
    """The module from which type checkers import a name, and the name there.

    It is the module's counterpart here, so that the stubs stay as they are when something moves behind it.
    """
    if isinstance(value, ModuleType):
        package, _, last = value.__name__.rpartition(".")
        return package, last
    home = module.__name__
    for source, listed in VIEWS.get(home.removeprefix("fluidlite."), {}).items():
        for entry in listed.split():
            if entry.partition("=")[0] == name:
                return f"fluidlite.{source}", entry.partition("=")[2] or name
    if name not in missing._lazy(home) and name not in vars(module):
        there, own = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if (
            there
            and there.startswith("fluidlite")
            and own
            and getattr(sys.modules.get(there), own, None) is value
        ):
            return there, own
    return home, name


def stubs() -> dict[Path, str]:
    """The texts of all stubs by path; modules without public names have none."""
    texts: dict[str, str] = {}
    below: dict[str, list[str]] = {}
    for name, module in sorted(modules().items(), reverse=True):  # a package after its modules
        text = stub(name, module, sorted(below.get(name, ())))
        if text != HEAD:
            texts[name] = text
            package, _, last = name.rpartition(".")
            below.setdefault(package, []).append(last)
    paths = {}
    for name, text in texts.items():
        parts = name.split(".")[1:]
        paths[
            ROOT.joinpath(*parts, "__init__.pyi")
            if name in below
            else ROOT.joinpath(*parts).with_suffix(".pyi")
        ] = text
    return paths


if __name__ == "__main__":
    texts = stubs()
    stale = sorted(set(ROOT.rglob("*.pyi")) - texts.keys())
    for path in stale:
        if "--check" in sys.argv:
            print(f"{path} is of no module: run scripts/{Path(__file__).name}", file=sys.stderr)
        else:
            path.unlink()
    for path in texts:
        path.parent.mkdir(parents=True, exist_ok=True)
    sys.exit(generated.write(texts) or int(bool(stale) and "--check" in sys.argv))
