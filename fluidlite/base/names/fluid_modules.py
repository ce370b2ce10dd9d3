"""Modules of Fluid 1.8, the modules here that have their role, and the names in them."""

from __future__ import annotations

import importlib
import os
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

_LAYERS = [
    "io",
    "learning_rate_scheduler",
    "metric_op",
    "ops",
    "rnn",
    "sequence_lod",
]

ALIASES = {
    "paddle": "fluidlite.paddle",
    "paddle.dataset": "fluidlite.dataset",
    "fluid": "fluidlite",
    "fluid.dataloader.dataloader_iter": "fluidlite.reader.watchdog",
    "fluid.dataset": "fluidlite.reader.slots.datasets",
    "fluid.data_feed_desc": "fluidlite.reader.slots.feed_description",
    "fluid.dygraph.dygraph_to_static.program_translator": "fluidlite.fluid.dygraph.jit.translator",
    **{f"fluid.layers.{name}": "fluidlite.fluid.layers" for name in _LAYERS},
}
"""Modules of Fluid with another name here."""

TOP = frozenset(
    "_ext as_paddle backend base commands dataset distributed eager executor fluid framework old_scripts onnx ops "
    "paddle reader visual weights".split()
)
"""The modules and folders at the top of the package; every other `fluidlite.X` means `fluidlite.fluid.X`."""


def canonical(name: str) -> str:
    """The module that `fluidlite.X...` means: `fluidlite.fluid.layers` for `fluidlite.layers`."""
    package, _, below = name.partition(".")
    if package != "fluidlite" or not below or below.partition(".")[0] in TOP:
        return name
    return f"fluidlite.fluid.{below}"


ADVICE = {
    "paddle.amp": "everything is computed in the types that it is in; leave auto_cast and GradScaler away",
    "paddle.distributed.fleet": "paddle.distributed has init_parallel_env, spawn and all_reduce; see also "
    "fluid.incubate.fleet.collective",
    "paddle.distribution": "paddle.normal, uniform, bernoulli and multinomial draw numbers",
    "paddle.hub": "put the source of the network into your script",
    "paddle.inference": "paddle.jit.load and paddle.static.load_inference_model run saved models",
    "paddle.linalg": "its functions are those of paddle and Tensor, such as paddle.norm",
    "paddle.onnx": "paddle.jit.save writes models as programs",
    "paddle.text": "read the texts in a paddle.io.Dataset of your own",
    "paddle.vision.models": "put the source of the network into your script",
    "paddle.vision.ops": "put what you need of it into your script",
}
"""Advice for modules of later Paddle that are missing here."""


def real_name(name: str) -> str:
    """The module of this package that would have the role of `name` in Fluid, whether it exists or not.

    `name` is `paddle...`, `paddle.fluid...` or, for short, `fluid...`: `paddle.fluid.io` gives
    `fluidlite.fluid.io`, `paddle.fluid.framework` gives `fluidlite.framework`.
    """
    short = name.removeprefix("paddle.") if name.startswith("paddle.fluid") else name
    tail = ""
    while short not in ALIASES:
        short, _, last = short.rpartition(".")
        tail = f".{last}{tail}"
    return canonical(ALIASES[short] + tail)


def fluid_name(module: str) -> str:
    """Fluid's name of a module: `fluid.io` for `fluidlite.fluid.io`, `paddle` for `fluidlite.paddle`."""
    for prefix, name in (
        ("fluidlite.paddle", "paddle"),
        ("fluidlite.dataset", "paddle.dataset"),
        ("fluidlite.fluid", "fluid"),
        ("fluidlite", "fluid"),
    ):
        if module == prefix or module.startswith(prefix + "."):
            return name + module[len(prefix) :]
    return module


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
        if not (isinstance(value, ModuleType) and isinstance(vars(self).get(name), FunctionType)):
            super().__setattr__(name, value)


def keep_functions(module: str) -> None:
    """Let a function that has the name of a module stay in its package, where the import system puts modules.

    In Fluid `data`, `batch` and `layers.rnn` are functions whatever of the modules of these names is imported.
    """
    package, _, name = module.rpartition(".")
    above = sys.modules.get(package)
    if type(above) is ModuleType and isinstance(getattr(above, name, None), FunctionType):
        above.__class__ = _Package


class AliasLoader(Loader):
    """Loads the module `real` under another name."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself."""
        module = importlib.import_module(self.real)
        keep_functions(spec.name)
        # The import system replaces the module's spec by the alias': keep the original.
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it was."""
        module.__spec__ = self.spec


# The names in the modules of Fluid 1.8, from `fluid_names.txt`, which is read at the first missing name.
#
# A line of it is a module and its names; `@` precedes the module that defines a name which several modules have.
# `scripts/list_fluid_names.py` writes it.


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
