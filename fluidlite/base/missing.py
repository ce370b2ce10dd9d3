"""Missing names: those of Fluid 1.8 are stand-ins that raise when used, unknown names raise with a suggestion.

The modules of `fluid/`, `paddle/` and `dataset/` get a `__getattr__` (PEP 562) when they are loaded (`names/views.py`);
others define `__getattr__ = missing.reporter(__name__)`. The names of Fluid, with all modules that have them, are
listed (`names/fluid_names.txt`), so that names of another module here are found. A package with lazily loaded names
defines `__getattr__, __dir__ = missing.lazy(__name__)` and imports them under `if TYPE_CHECKING:`;
scripts/lazy_names.py makes the table of lazy names from these imports.
"""

from __future__ import annotations

import importlib
import importlib.util
import opcode
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from .errors import NotSupportedError
from .names import fluid_modules, stand_ins, views
from .names.fluid_modules import ADVICE, ALIASES, Origin, fluid_name, real_name
from .names.lazy_names import LAZY
from .names.stand_ins import StandInModule, is_stand_in, stand_in

views.install()

_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def in_fluid(name: str) -> bool:
    """Whether Fluid 1.8 has `name`, such as `fluid.layers.fc`, `fluid.layers` or `paddle.reader`."""
    module, _, last = name.rpartition(".")
    listed = fluid_modules.listed()
    return name in listed or last in listed.get(module, ())


def explain(name: str) -> str:
    """The message for a name that Fluid 1.8, or Paddle after it, has and this package does not."""
    reason = stand_ins.reason(name)
    if reason:
        return f"{name} of Fluid 1.8 will not be in fluidlite: {reason}"
    if in_fluid(name):
        text = f"{name} exists in Fluid 1.8 but not in fluidlite yet (docs/names.md lists what does)"
    else:
        text = f"{name} exists in Paddle but not in fluidlite"
    known = next((part for part in (name, name.rpartition(".")[0]) if part in ADVICE), None)
    return f"{text}: {ADVICE[known]}" if known else text


def module_here(name: str) -> ModuleType | None:
    """The module of this package that has the role of `name` in Fluid (`fluid.io`); None if there is none."""
    real = real_name(name)
    if spec_of(real) is None:
        return None
    return importlib.import_module(real)


@cache
def module_in_place(name: str) -> StandInModule:
    """A stand-in for the module `name` of Fluid, which is missing here."""

    def find(part: str) -> Any:
        if part in fluid_modules.listed()[name]:
            return found_or_stand_in(name, part)
        error = NotSupportedError if name in ADVICE and not part.startswith("__") else AttributeError
        raise error(
            f"module {name!r} has no attribute {part!r}"
            if error is AttributeError
            else explain(f"{name}.{part}")
        )

    return StandInModule(name, find, sorted(fluid_modules.public()[name]))


@cache
def found_or_stand_in(module: str, name: str) -> Any:
    """Find `name` of Fluid's `module` anywhere in this package; if it is missing, return a stand-in."""
    origin = fluid_modules.listed()[module][name]
    if not origin.name:
        return module_here(origin.module) or module_in_place(origin.module)
    for place in fluid_modules.places()[origin]:
        result = _held(place, origin)
        if result is not None and not isinstance(result, ModuleType) and not is_stand_in(result):
            return result
    return _in_place(origin)


@cache
def _in_place(origin: Origin) -> Any:
    """The stand-in for an object that Fluid has under several names; it has the shortest."""
    module, name = min(fluid_modules.places()[origin], key=lambda place: (len(place.module), place))
    full = f"{module}.{name}"
    return stand_in(module, name, lambda: explain(full), stand_ins.reason(full))


def _held(place: Origin, origin: Origin) -> Any:
    """The object here at `place`, one of the names of Fluid's `origin`; None if it is missing."""
    owner = module_here(place.module)
    if owner is None:
        return None
    # A module that plays several of Fluid's may have something else by this name.
    if fluid_modules.listed().get(fluid_name(owner.__name__), {}).get(place.name, origin) != origin:
        return None
    return getattr(owner, place.name) if place.name in _lazy(owner.__name__) else vars(owner).get(place.name)


@cache
def _lazy(package: str) -> dict[str, tuple[str, str]]:
    """The lazily loaded names of a package, and its views: the module, and the name there ('' for the module)."""
    result = {}
    for modules in LAZY.get(package, ()):
        for module, names in modules.items():
            for listed in names.split():
                name, _, there = listed.partition("=")
                result[name] = (module, there or name) if module else (f".{there or name}", "")
    for view in views.VIEWS:
        above, _, name = f"fluidlite.{view}".rpartition(".")
        if above == package:
            result.setdefault(name, (f".{name}", ""))
        elif above == f"{package}.fluid":  # whose modules are those of the package
            result.setdefault(name, (f".fluid.{name}", ""))
    return result


def public(package: str) -> list[str]:
    """The names that a package passes on, as its `__all__`: those of its star imports."""
    return [name for names in LAZY[package][0].values() for name in names.split()]


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package with lazily loaded names; see `reporter`.

    `dir` lists the names of Fluid, not the folders that this package is made of.
    """

    def __dir__() -> list[str]:
        names = vars(sys.modules[package])
        shown = {*names.get("__all__", ()), *fluid_modules.listed().get(fluid_name(package), ())}
        listed = {name for name in {*names, *_lazy(package)} if name in shown or name.startswith("__")}
        return sorted(listed if "." not in package else listed.union(_lazy(package)))

    return reporter(package), __dir__


def reporter(module: str) -> Callable[[str], Any]:
    """A module-level `__getattr__` for `module` (its `__name__`).

    It loads the package's lazy names. Other names of Fluid 1.8 are found elsewhere in this package (`fluid.layers.nn`)
    or are stand-ins, which raise NotSupportedError when used. Names of Paddle after 1.8 raise it at once; unknown names
    raise AttributeError, with a suggestion if one is similar. In `from module import name` these become ImportError
    with the same text, which Python would replace by its own.
    """
    fluid_module = fluid_name(module)

    def __getattr__(name: str) -> Any:
        if name in _lazy(module):
            where, there = _lazy(module)[name]
            result: Any = importlib.import_module(where, module)
            if there:
                result = getattr(result, there)
            setattr(sys.modules[module], name, result)
            return result
        full = f"{fluid_module}.{name}"
        if full in ALIASES:
            return importlib.import_module(ALIASES[full])
        asks = _import_asks(sys._getframe(1))
        unknown = AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        # Python reads __path__ of a module at every import from it, and submodules of a package before and after
        # it imports them: not worth reading the list of names.
        if name.startswith("__") or (asks == "fromlist" and spec_of(f"{module}.{name}") is not None):
            raise unknown
        listed = fluid_modules.listed()
        played = next((each for each in _played_by(module) if name in listed.get(each, ())), None)
        if asks == "fromlist" and played is None:
            raise unknown
        if played is not None:
            return found_or_stand_in(played, name)
        error: AttributeError
        if full in ADVICE:
            error = NotSupportedError(explain(full), name=name)
        else:
            names = [n for n in (*vars(sys.modules[module]), *_lazy(module)) if n[0] != "_"]
            import difflib  # slow to import

            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            error = AttributeError(f"module {fluid_module!r} has no attribute {name!r}{hint}", name=name)
        if asks:
            raise ImportError(str(error), name=module) from None
        raise error

    return __getattr__


@cache
def _played_by(module: str) -> list[str]:
    """The modules of Fluid that a module of this package plays."""
    others = [name for name, real in ALIASES.items() if real == module]
    return [fluid_name(module), *others]


def _import_asks(caller: FrameType) -> str:
    """The part of the statement `from module import name` that looks the name up; '' outside of such a statement."""
    code = caller.f_code
    if code.co_filename == "<frozen importlib._bootstrap>" and code.co_name == "_handle_fromlist":
        return "fromlist"  # Python looks the name up in a package first
    return "name" if code.co_code[caller.f_lasti] == _IMPORT_FROM else ""


def spec_of(module: str) -> ModuleSpec | None:
    """The spec of a module of this package by its real name; None if there is no such module."""
    try:
        return importlib.util.find_spec(module)
    except ModuleNotFoundError:  # its parent package is missing
        return None
