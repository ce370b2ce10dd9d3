"""Modules under a second name."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader as Loader
else:

    class Loader:
        """The part of `importlib.abc.Loader` that the import system needs; that module is slow to import."""

        def create_module(self, spec: ModuleSpec) -> None:
            """Have the import system make the module."""


class _Package(ModuleType):
    """A package with functions of the same names as its modules, which stay when the modules are imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and isinstance(getattr(self, name, None), FunctionType)):
            super().__setattr__(name, value)


class AliasLoader(Loader):
    """Loads the module `real` under another name."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself."""
        module = importlib.import_module(self.real)
        # The import system is going to put it into its package. In Fluid `data`, `batch` and `layers.rnn` are
        # functions whatever of the modules of these names is imported.
        package, _, name = spec.name.rpartition(".")
        above = sys.modules.get(package)
        if type(above) is ModuleType and isinstance(getattr(above, name, None), FunctionType):
            above.__class__ = _Package
        # The import system replaces the module's spec by the alias': keep the original.
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it was."""
        module.__spec__ = self.spec
