"""Restores old names of modules, for the user's code alone, and rewrites that code when it is imported."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from ..base.names.fluid_modules import AliasLoader, Loader
from . import rewriting
from .names import EMPTY, MODULES, NAMES
from .notes import installed, note, users


def fork_by_default(context: ModuleType) -> None:
    """Make fork the default start method of the module `multiprocessing.context`.

    With it, lambdas and the script's existing objects are available in the new process.

    Other systems than Linux keep their method, and so does a process that has chosen one.
    """
    default = context._default_context
    forked = context._concrete_contexts.get("fork")
    if (
        default._actual_context is None
        and default._default_context.get_start_method() == "forkserver"
        and forked
    ):
        default._default_context = forked


if TYPE_CHECKING:
    from importlib.abc import MetaPathFinder
else:
    MetaPathFinder = object  # `importlib.abc` is slow to import


DEFAULTS = {"multiprocessing.context": fork_by_default}
"""Modules with a changed default, and the function that restores it for the whole process."""


def attach(module: ModuleType) -> None:
    """Install a `__getattr__` for the old names of `module`, for lookups by the user's code only.

    A removed module has nothing but old names, for all callers.
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
    """Creates a removed module."""

    def exec_module(self, module: ModuleType) -> None:
        attach(module)


class UserLoader(SourceFileLoader):
    """Loads a module of the user's, rewritten. Its bytecode is not cached, as plain Python would load it."""

    def get_code(self, fullname: str) -> CodeType:
        """The module's code."""
        path = self.get_filename(fullname)
        return rewriting.compiled(self.get_data(path), path)


def for_user(loader: Any) -> Any:
    """The loader that rewrites the user's code in place of `loader`."""
    return UserLoader(loader.name, loader.path) if type(loader) is SourceFileLoader else loader


class OldNamesFinder(MetaPathFinder):
    """Wraps the finder that searches `sys.path`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module on `sys.path`, or of a removed one if the user's code imports it."""
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
    """Restore the old names in this process. Idempotent."""
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
