"""Puts old names back into modules, for the user's code alone, and rewrites that code when it is imported."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from ..base.names.alias import AliasLoader, Loader
from . import rewriting
from .names import EMPTY, MODULES, NAMES
from .notes import installed, note, users
from .processes import fork_by_default

if TYPE_CHECKING:
    from importlib.abc import MetaPathFinder
else:
    MetaPathFinder = object  # `importlib.abc` is slow to import


DEFAULTS = {"multiprocessing.context": fork_by_default}
"""Modules with a default that has changed, and what changes it back, for everybody in the process."""


def attach(module: ModuleType) -> None:
    """Have `module` answer for its old names; other modules than the user's are told what they were told before.

    A module that is gone itself has nothing but old names, which it gives to everybody.
    """
    if module.__name__ in DEFAULTS:
        DEFAULTS[module.__name__](module)
        return
    own = vars(module).get("__getattr__")
    names = NAMES[module.__name__]
    short = "np" if module.__name__ == "numpy" else module.__name__
    everybody = isinstance(module.__loader__, _Empty)

    def __getattr__(name: str) -> Any:
        if name in names:
            frame = users(sys._getframe(1))
            if frame is not None:
                note(f"{short}.{name}", names[name].instead, frame)
            if frame is not None or everybody:
                return pkgutil.resolve_name(names[name].target)
        if own is not None:
            return own(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)

    module.__getattr__ = __getattr__  # type: ignore[method-assign]


class _Attaching(Loader):
    """Loads a module by its own loader and attaches its old names."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        attach(module)


class _Empty(Loader):
    """Makes a module that is gone."""

    def exec_module(self, module: ModuleType) -> None:
        attach(module)


class UserLoader(SourceFileLoader):
    """Loads a module of the user's, rewritten. What is compiled is kept in no `__pycache__`, where Python finds it."""

    def get_code(self, fullname: str) -> CodeType:
        """The module's code."""
        path = self.get_filename(fullname)
        return rewriting.compiled(self.get_data(path), path)


def for_user(loader: Any) -> Any:
    """What loads the user's code in the place of `loader`."""
    return UserLoader(loader.name, loader.path) if type(loader) is SourceFileLoader else loader


class OldNamesFinder(MetaPathFinder):
    """Stands before the finder that searches `sys.path`, and passes on what that finds."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module on `sys.path`, or of one that is gone if the user's code imports it."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None:
            return _gone(fullname) if fullname in MODULES or fullname in EMPTY else None
        if spec.origin is not None and not installed(spec.origin):
            spec.loader = for_user(spec.loader)
        elif (fullname in NAMES or fullname in DEFAULTS) and spec.loader is not None:
            spec.loader = _Attaching(spec.loader)
        return spec


def _gone(fullname: str) -> ModuleSpec | None:
    frame = users(sys._getframe(2))
    if frame is None:
        return None
    if fullname in EMPTY:
        inside = any(name.startswith(fullname + ".") for name in EMPTY)
        return ModuleSpec(fullname, _Empty(), is_package=inside)
    note(fullname, MODULES[fullname], frame)
    return ModuleSpec(fullname, AliasLoader(MODULES[fullname]))


_finder = OldNamesFinder()


def active() -> bool:
    """Whether `install` was called."""
    return _finder in sys.meta_path


def install() -> None:
    """Put the old names back in this process; calling it again does nothing."""
    if active():
        return
    places = [place for place, finder in enumerate(sys.meta_path) if finder is PathFinder]
    sys.meta_path.insert(places[0] if places else len(sys.meta_path), _finder)
    for name in (*NAMES, *DEFAULTS):
        module = sys.modules.get(name)
        if module is not None and not _users_own(module):
            attach(module)


def _users_own(module: ModuleType) -> bool:
    """Whether a loaded module is the user's own, though it has a name of the library's."""
    file = getattr(module, "__file__", None)
    return file is not None and not installed(file)
