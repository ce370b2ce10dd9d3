"""Writes `fluidlite/base/names/fluid_names.txt`: what names each module of Paddle 1.8 has. Runs under Paddle itself.

usage: PYTHON_WITH_PADDLE_1.8 scripts/list_fluid_names.py > fluidlite/base/names/fluid_names.txt

A line is a module and its names: `fluid.io: Executor@fluid.executor batch@paddle.batch save_vars ...`. A name that was
defined in another module says where, by `@module` or, if it is called otherwise there, by `@module:name`; modules end
with a slash. What modules have of other libraries is left out, and so are tests and generated messages.
"""

import importlib
import inspect
import pkgutil
import sys
import types
import warnings

SKIPPED = ("_pb2", ".tests", ".test_", "core_avx", "core_noavx", "paddle.proto")
MADE_BY_DECORATOR = (
    "decorator"  # the module that functions wrapped by the package of that name say they are from
)


def short(module):
    """`paddle.fluid.io` is `fluid.io` here; the compiled module is `fluid.core`, by which programs know it."""
    return module.replace("paddle.fluid", "fluid", 1).replace("fluid.core_avx", "fluid.core", 1)


def load_all():
    """Import every module of Paddle that can be imported."""
    import paddle.fluid

    for info in pkgutil.walk_packages(paddle.__path__, "paddle.", onerror=lambda name: None):
        if not any(part in info.name for part in SKIPPED):
            try:
                importlib.import_module(info.name)
            except Exception as error:
                print(f"{info.name}: {error!r}", file=sys.stderr)


def modules():
    """The modules by their short names; `fluid.core.ops` and its like are modules that only the compiled one has."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == "paddle" and not any(part in name for part in SKIPPED):
            found[short(name)] = module
    core = sys.modules["paddle.fluid.core"]
    for name, value in vars(core).items():
        if isinstance(value, types.ModuleType) and value.__name__.startswith("paddle"):
            found[f"fluid.core.{name}"] = value
    return found


def homes(found):
    """Where each class and function was defined, by its identity: (module, name)."""
    places = {}
    for name, module in found.items():
        for key, value in vars(module).items():
            if inspect.isclass(value) or inspect.isroutine(value):
                said = short(getattr(value, "__module__", None) or "")
                defined = name == ("fluid.wrapped_decorator" if said == MADE_BY_DECORATOR else said)
                rank = (not defined, getattr(value, "__name__", None) != key, key.startswith("_"), len(name))
                if id(value) not in places or rank < places[id(value)][0]:
                    places[id(value)] = rank, name, key
    return {key: (name, last) for key, (_, name, last) in places.items()}


def entry(module, key, value, where):
    """How a name stands in the list; None for what is not Paddle's."""
    if isinstance(value, types.ModuleType):
        name = short(value.__name__)
        if name.partition(".")[0] not in ("fluid", "paddle") or "_pb2" in name:
            return None
        return f"{key}/" if name == f"{module}.{key}" else f"{key}@{name}/"
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        # Constants, but nothing of `from __future__`; not what a module got from `import *`.
        return None if type(value).__module__ == "__future__" else key
    said = getattr(value, "__module__", None) or ""
    if said.partition(".")[0] != "paddle" and (said != MADE_BY_DECORATOR or key == MADE_BY_DECORATOR):
        return None
    home, name = where[id(value)]
    if (home, name) == (module, key):
        return key
    return f"{key}@{home}" if name == key else f"{key}@{home}:{name}"


def main():
    warnings.simplefilter("ignore")
    load_all()
    found = modules()
    where = homes(found)
    for name, module in sorted(found.items()):
        names = [
            entry(name, key, value, where)
            for key, value in sorted(vars(module).items())
            if not key.startswith("__")
        ]
        below = {other[len(name) + 1 :] for other in found if other.rpartition(".")[0] == name}
        listed = {text.partition("@")[0].rstrip("/") for text in names if text}
        names += [f"{part}/" for part in sorted(below - listed)]
        print(f"{name}: {' '.join(text for text in names if text)}".rstrip())


if __name__ == "__main__":
    main()
