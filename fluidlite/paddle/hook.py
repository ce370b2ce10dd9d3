"""The import hook that makes `import paddle`, `import paddle.fluid as fluid`, ... mean this package.

`paddle.fluid.io` and `fluidlite.io` are then one module object under two names; nothing is loaded twice. An
installed real Paddle is not changed: it is only shadowed in processes that called `install`.

Python processes that a script starts (`subprocess`, `os.system`) get a folder on PYTHONPATH in which `paddle`
installs the hook, if their Python is the one that runs this process; those of multiprocessing unpickle what installs
it.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .. import old_scripts
from ..base import errors, flags, missing
from ..base.names import fluid_modules
from ..base.names.fluid_modules import ADVICE, AliasLoader, Loader, real_name
from ..base.reports import tracebacks

if TYPE_CHECKING:
    from importlib.abc import MetaPathFinder
else:
    MetaPathFinder = object  # `importlib.abc` is slow to import


class _StandInLoader(Loader):
    """Loader of the stand-in for the module `short` of Fluid."""

    def __init__(self, short: str) -> None:
        self.short = short

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return missing.module_in_place(self.short)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _SpawnLoader(Loader):
    """Loads `multiprocessing.spawn` by `loader`, and patches it to install the hook in its children."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _install_in_children(module)


class PaddleFinder(MetaPathFinder):
    """Finds `paddle` and everything below it in this package, never anywhere else.

    `visualdl` is found here if it is not installed. `multiprocessing.spawn` is found where it is.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of an alias or, for a module of Fluid 1.8 that is missing here, of its stand-in.

        None for names outside of `paddle`. Raises ModuleNotFoundError for others that do not exist here.
        """
        if fullname == "visualdl" and PathFinder.find_spec(fullname) is None:
            return ModuleSpec(fullname, AliasLoader("fluidlite.visual"))
        if fullname == _SPAWN:
            spec = PathFinder.find_spec(fullname, path)
            if spec is not None:
                spec.loader = _SpawnLoader(spec.loader)
            return spec
        if fullname.partition(".")[0] != "paddle":
            return None
        if fullname == "paddle":
            tracebacks.install()  # in a notebook that `fluidlite -m IPython` has started
            old_scripts.install()
        short = fullname.removeprefix("paddle.") if fullname.startswith("paddle.fluid") else fullname
        real = real_name(fullname)
        found = missing.spec_of(real)
        if found is not None:
            return ModuleSpec(
                fullname, AliasLoader(real), is_package=found.submodule_search_locations is not None
            )
        if short in fluid_modules.listed():
            return ModuleSpec(fullname, _StandInLoader(short), is_package=True)
        why = missing.explain(short) if short in ADVICE else "neither Fluid 1.8 nor fluidlite has it"
        raise ModuleNotFoundError(f"No module named {fullname!r}: {why}", name=fullname)


class _InstallInChild:
    """Installs the hook in the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By path and not by module name: a child learns its sys.path only after this.
        given = {"DEVICE": flags.device(), "STRICT": old_scripts.strict()}
        return runpy.run_path, (os.path.join(os.path.dirname(__file__), "in_child.py"), given)


_SPAWN = "multiprocessing.spawn"  # which is slow to import, and most scripts do without
_finder = PaddleFinder()


def install() -> None:
    """Make `paddle` mean this package in this process and in those that `multiprocessing` starts from it.

    Names that are gone from Python and its packages are put back for the user's code (`old_scripts.install`).

    Calling it again does nothing. Raises ImportError if another `paddle` has been imported already.
    """
    if _finder in sys.meta_path:
        return
    present = sys.modules.get("paddle")
    if present is not None:
        where = getattr(present, "__file__", None) or "memory"
        raise ImportError(
            f"another paddle has been imported already, from {where}; install fluidlite's import hook "
            "(import fluidlite.as_paddle, or python -m fluidlite SCRIPT) before the first import of paddle",
            name="paddle",
        )
    sys.meta_path.insert(0, _finder)
    errors.show_as_paddle()
    old_scripts.install()
    if _SPAWN in sys.modules:
        _install_in_children(sys.modules[_SPAWN])


def _install_in_children(spawn: Any) -> None:
    """Let processes started by spawn or forkserver install the hook before they import the user's script.

    Their preparation data is pickled in the parent and unpickled in the child before any other import, so unpickling an
    object in it installs the hook; the child ignores unknown keys.
    """
    prepare = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = {"fluidlite": _InstallInChild(), **prepare(name)}
        if name == "ignore":  # for the server of forkserver, whose children read the script with the hook
            data.pop("init_main_from_path", None)
        return data

    spawn.get_preparation_data = get_preparation_data


_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "of_children")
_PYTHON, _DEVICE, _STRICT = "FLUIDLITE_PYTHON", "FLUIDLITE_DEVICE", "FLUIDLITE_STRICT"


def announce() -> None:
    """Set the environment from which child processes install the hook, with the options of this process."""
    os.environ[_PYTHON] = sys.prefix
    os.environ[_DEVICE] = flags.device()
    if old_scripts.strict():
        os.environ[_STRICT] = "1"
    known = os.environ.get("PYTHONPATH")
    if not known:
        os.environ["PYTHONPATH"] = _FOLDER
    elif _FOLDER not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{_FOLDER}{os.pathsep}{known}"


def adopt() -> None:
    """Install the hook in a child process, from the environment that `announce` has set."""
    flags.set_device(os.environ[_DEVICE])
    install()
