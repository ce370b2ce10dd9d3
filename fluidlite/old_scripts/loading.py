"""Functions of the module `imp`, by those of `importlib`."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def load_source(name: str, pathname: str, file: Any = None) -> ModuleType:
    """The module that the file `pathname` holds, as `name`, run again if it was loaded before."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None:
        raise ImportError(f"{pathname} is no Python source", name=name, path=pathname)
    return _load(spec)


def find_module(name: str, path: Any = None) -> tuple[None, str | None, ModuleSpec]:
    """What `load_module` wants for the module `name`; ImportError if there is none."""
    spec = PathFinder.find_spec(name, path) if path is not None else importlib.util.find_spec(name)
    if spec is None:
        raise ImportError(f"No module named {name!r}", name=name)
    return None, spec.origin, spec


def load_module(name: str, file: Any, filename: str | None, details: Any) -> ModuleType:
    """The module that `find_module` has found, as `name`, run again if it was loaded before."""
    if not isinstance(details, ModuleSpec):
        raise TypeError(f"load_module takes what find_module returned, got {details!r}")
    spec = importlib.util.spec_from_file_location(name, details.origin) if details.name != name else details
    return _load(spec or details)


def _load(spec: ModuleSpec) -> ModuleType:
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return module
