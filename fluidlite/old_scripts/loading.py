"""Functions of the module `imp`, and methods of loaders, by those of `importlib`."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from .finder import for_user
from .notes import installed


def load_source(name: str, pathname: str, file: Any = None) -> ModuleType:
    """Load the file `pathname` as module `name`; a loaded module is executed anew."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None:
        raise ImportError(f"{pathname} is no Python source", name=name, path=pathname)
    return _load(spec)


def find_module(name: str, path: Any = None) -> tuple[None, str | None, ModuleSpec]:
    """The arguments of `load_module` for the module `name`; ImportError if there is none."""
    spec = PathFinder.find_spec(name, path) if path is not None else importlib.util.find_spec(name)
    if spec is None:
        raise ImportError(f"No module named {name!r}", name=name)
    return None, spec.origin, spec


def load_module(name: str, file: Any, filename: str | None, details: Any) -> ModuleType:
    """Load the result of `find_module` as module `name`; a loaded module is executed anew."""
    if not isinstance(details, ModuleSpec):
        raise TypeError(f"load_module takes what find_module returned, got {details!r}")
    spec = importlib.util.spec_from_file_location(name, details.origin) if details.name != name else details
    return _load(spec or details)


def load_by(loader: Any, fullname: str = "") -> ModuleType:
    """Load the module of a loader, or the one called `fullname`; a loaded module is executed anew."""
    spec = importlib.util.spec_from_loader(fullname or loader.name, loader)
    if spec is None:
        raise ImportError(f"{loader!r} has no module {fullname!r}", name=fullname)
    return _load(spec)


def _load(spec: ModuleSpec) -> ModuleType:
    if spec.origin is not None and not installed(spec.origin):
        spec.loader = for_user(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return module
