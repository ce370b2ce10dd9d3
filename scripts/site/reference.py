"""Pages of the API: one for each public module, and one for each thing in it, from signatures and docstrings."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import samples
from docstrings import markdown, summary

import fluidlite as fluid
from fluidlite.base import missing
from fluidlite.base.names import fluid_modules
from fluidlite.base.names.stand_ins import is_stand_in
from fluidlite.framework import mode

# Modules of Paddle 2.0 and of fluidlite itself; those of Fluid are listed by `fluid_names`.
PADDLE = """paddle paddle.autograd paddle.callbacks paddle.device paddle.distributed paddle.hapi paddle.io paddle.jit
paddle.metric paddle.nn paddle.nn.functional paddle.nn.initializer paddle.nn.utils paddle.optimizer paddle.optimizer.lr
paddle.regularizer paddle.static paddle.static.nn paddle.tensor paddle.utils paddle.utils.dlpack paddle.vision
paddle.vision.datasets paddle.vision.transforms""".split()
OWN = ["fluidlite.onnx", "fluidlite.visual", "fluidlite.weights"]

# Whatever has its home here stands on the page of the module, which search leaves out.
ON_ONE_PAGE = frozenset({"fluid.core", "fluid.core.ops"})

# Search shows names of these modules before those of others.
BOOST = {
    **dict.fromkeys(("fluid", "fluid.layers"), 8),
    **dict.fromkeys(
        ("fluid.io", "fluid.dygraph", "fluid.optimizer", "fluid.initializer", "fluid.regularizer", "fluid.clip",
         "fluid.metrics", "fluid.nets", "fluid.backward", "fluid.profiler"), 6,
    ),
    **dict.fromkeys(("paddle", "paddle.io", "paddle.nn", "paddle.nn.functional", "paddle.optimizer"), 3),
}  # fmt: skip


@dataclass
class Thing:
    """A function, class or constant, and the names under which it can be had: (module, name)."""

    value: Any
    places: list[tuple[str, str]] = field(default_factory=list)
    sample: samples.Sample | None = None

    @property
    def home(self) -> tuple[str, str]:
        """The name that its docstring gives, or the shortest."""
        said = set(re.findall(r"`((?:fluid|paddle|fluidlite)\.[\w.]+)`", inspect.getdoc(self.value) or ""))
        return min(self.places, key=lambda place: (".".join(place) not in said, place[0].count("."), place))

    @property
    def page(self) -> str:
        """Where it is described, below `api/`; constants and names of `ON_ONE_PAGE` with their module."""
        module, name = self.home
        alone = module not in ON_ONE_PAGE and _kind(self.value) != "value"
        return f"{module}/{name if alone else 'index'}.md"


def modules() -> dict[str, dict[str, Any]]:
    """Every public module with its public names that are here."""
    found: dict[str, dict[str, Any]] = {}
    for module, names in fluid_modules.public().items():
        if any(part.startswith("_") for part in module.split(".")):
            continue
        owner = missing.module_here(module) or missing.module_in_place(module)
        found[module] = {
            name: getattr(owner, name, None) for name in names if fluid_modules.listed()[module][name].name
        }
    for module in (*PADDLE, *OWN):
        real = importlib.import_module(module if module in OWN else "fluidlite." + module)
        names = getattr(real, "__all__", None) or [
            name for name in dir(real) if _of_ours(name, getattr(real, name, None))
        ]
        found.setdefault(module, {}).update((name, getattr(real, name)) for name in names)
    kept = {
        module: {name: value for name, value in sorted(names.items()) if not _hidden(value)}
        for module, names in sorted(found.items())
    }
    return {module: names for module, names in kept.items() if names}


def _of_ours(name: str, value: Any) -> bool:
    return name[0] != "_" and callable(value) and getattr(value, "__module__", "").startswith("fluidlite")


def _hidden(value: Any) -> bool:
    return value is None or isinstance(value, ModuleType) or is_stand_in(value)


def things(tables: dict[str, dict[str, Any]]) -> dict[tuple[str, str], Thing]:
    """What each name of each module is; constants, which may be the same by accident, are things each on their own."""
    by_identity: dict[Any, Thing] = {}
    found = {}
    for module, names in tables.items():
        for name, value in names.items():
            key: Any = id(value) if callable(value) else (module, name)
            thing = by_identity.setdefault(key, Thing(value))
            thing.places.append((module, name))
            found[module, name] = thing
    for sample in (one for file in samples.files() for one in samples.read(file)):
        for full in sample.names:
            module, _, name = full.rpartition(".")
            if (thing := found.get((module, name))) is None or thing.sample not in (None, sample):
                raise KeyError(f"docs/samples: {full} {'has two samples' if thing else 'is no public name'}")
            thing.sample = sample
    return found


def pages() -> dict[str, str]:
    """The text of each page, by its path below `api/`."""
    tables = modules()
    found = things(tables)
    made = {thing.page: _page(thing, found) for thing in found.values()}
    for module, names in tables.items():
        made[f"{module}/index.md"] = _module(module, {name: found[module, name] for name in names}, found)
    made["index.md"] = _contents(tables)
    repeating = {
        module
        for module, names in tables.items()
        if 2 * sum(found[module, name].home[0] == module for name in names) < len(names)
    }
    return {path: _for_search(path, repeating - BOOST.keys()) + text for path, text in made.items()}


def _for_search(path: str, repeating: set[str]) -> str:
    """Metadata of a page: how search ranks it, and that it leaves out modules which mostly repeat names of others."""
    module, _, name = path.rpartition("/")
    if module in ON_ONE_PAGE or (name == "index.md" and module in repeating):
        return "---\nsearch:\n  exclude: true\n---\n"
    return f"---\nsearch:\n  boost: {BOOST[module]}\n---\n" if module in BOOST else ""


def names_of_modules() -> dict[str, list[str | list[str]]]:
    """The names of each module; those described on a page that is not theirs alone in the module, with that page."""
    tables = modules()
    found = things(tables)
    listed: dict[str, list[str | list[str]]] = {}
    for module, names in tables.items():
        pages_of = {name: found[module, name].page.removesuffix(".md") for name in names}
        listed[module] = [
            name if page == f"{module}/{name}" else [name, page] for name, page in pages_of.items()
        ]
    return listed


def members(made: dict[str, str]) -> dict[str, list[str]]:
    """The members that pages of classes describe, by page."""
    found = {
        path: re.findall(r"(?m)^## (\w+)$", text) for path, text in made.items() if "index.md" not in path
    }
    return {path.removesuffix(".md"): names for path, names in found.items() if names}


def links(made: dict[str, str]) -> dict[str, str]:
    """The page of each name that can be linked to from text, such as `fluid.layers.fc`."""
    return {
        path.removesuffix("/index.md").removesuffix(".md").replace("/", "."): path
        for path in sorted(made, reverse=True)
    }


HEAD = """\
# API

Every public name of Fluid 1.8 that is here, what Paddle 2.0 adds, and fluidlite's own modules. `names.md` tells what of
Fluid is not here; search finds names from their beginnings.
"""


def _contents(tables: dict[str, dict[str, Any]]) -> str:
    parts = [HEAD]
    for title, start in (("fluidlite", "fluidlite"), ("Fluid", "fluid"), ("Paddle", "paddle")):
        parts.append(f"\n## {title}\n\n| Module | Names | What it is |\n|---|--:|---|")
        for module, names in tables.items():
            if module.split(".")[0] == start:
                text = _module_doc(module)
                said = summary(text) if text else ", ".join(f"`{name}`" for name in [*names][:3])
                said += ", ..." if not text and len(names) > 3 else ""
                parts.append(f"| [`{module}`]({module}/index.md) | {len(names)} | {said} |")
    return "\n".join(parts) + "\n"


def _module_doc(module: str) -> str:
    """The docstring of a module without its name, which heads many; "" if it says no more than where names are."""
    real = importlib.import_module(module) if module in OWN else missing.module_here(module)
    text = (inspect.getdoc(real) or "") if real is not None else ""
    after = re.sub(rf"^`{re.escape(module)}`: ", "", text)
    return "" if after.startswith("names of ") else after if after == text else after[:1].upper() + after[1:]


def _module(module: str, names: dict[str, Thing], found: dict[tuple[str, str], Thing]) -> str:
    rows = [f"# {module}\n\n[API](../index.md)\n"]
    if text := _module_doc(module):
        rows.append(markdown(text))
    here = {name: thing for name, thing in names.items() if thing.page == f"{module}/index.md"}
    if module in ON_ONE_PAGE:
        names = {name: thing for name, thing in names.items() if name not in here}
    for title, kind in (("Classes", "class"), ("Functions", "function"), ("Values", "value")):
        chosen = {name: thing for name, thing in names.items() if _kind(thing.value) == kind}
        if chosen:
            rows.append(f"\n## {title}\n\n| Name | What it is |\n|---|---|")
        for name, thing in chosen.items():
            said = (
                summary(inspect.getdoc(thing.value) or "") if kind != "value" else f"`{_shown(thing.value)}`"
            )
            rows.append(f"| {f'`{name}`' if name in here else f'[`{name}`](../{thing.page})'} | {said} |")
    if module in ON_ONE_PAGE:
        rows.extend(f"\n## {name}\n\n{_described(thing, found, 3)}" for name, thing in here.items())
    return "\n".join(rows) + "\n"


def _kind(value: Any) -> str:
    return "class" if inspect.isclass(value) else "function" if callable(value) else "value"


def _page(thing: Thing, found: dict[tuple[str, str], Thing]) -> str:
    module, name = thing.home
    return f"# {module}.{name}\n\n[API](../index.md) / [{module}](index.md)\n\n{_described(thing, found, 2)}"


def _described(thing: Thing, found: dict[tuple[str, str], Thing], level: int) -> str:
    """Signature, docstring and sample of a thing; members of a class below headings of that level."""
    module, name = thing.home
    value = thing.value
    parts = []
    others = sorted((f"`{m}.{n}`" for m, n in thing.places if (m, n) != thing.home), key=len)
    if _kind(value) == "value":
        parts.append(f"```python\n{name} = {_shown(value)}\n```\n")
    else:
        prefix = "class " if inspect.isclass(value) else ""
        parts.append(f"```python\n{prefix}{_signature(value, f'{module}.{name}')}\n```\n")
        parts.append(markdown(_own_doc(value)))
    if thing.sample:
        parts.append(_sample(thing, thing.sample))
    if inspect.isclass(value):
        parts.extend(_class(value, found, "#" * level))
    if others:
        more = f" and in {len(others) - 6} more modules" if len(others) > 6 else ""
        parts.append(f"Also {', '.join(others[:6])}{more}.\n")
    return "\n".join(parts)


def _sample(thing: Thing, sample: samples.Sample) -> str:
    """The code with what it prints; where it is for several names, the lines with this one are marked."""
    between = "\n\n\n" if sample.setup.rpartition("\n")[2].startswith(" ") else "\n\n"
    lines = (sample.setup + between + sample.code if sample.setup else sample.code).split("\n")
    word = re.compile(rf"\b({'|'.join({name for _, name in thing.places})})\b")
    used = [str(n) for n, line in enumerate(lines, 1) if word.search(line)]
    marked = f' hl_lines="{" ".join(used)}"' if len(sample.names) > 1 else ""
    printed = f"\nIt prints, to four digits:\n\n```text\n{sample.printed}\n```\n" if sample.printed else ""
    head = "Another example" if ">>>" in (inspect.getdoc(thing.value) or "") else "Example"
    return "\n".join([f"**{head}**\n\n```python{marked}", *lines, f"```\n{printed}"])


def without_sample() -> list[str]:
    """The functions and classes that neither a sample shows nor `docs/samples/without.md` has a reason for."""
    rows = re.findall(r"(?m)^\| `([^`]+)` \|", (samples.FOLDER / "without.md").read_text(encoding="utf8"))
    reasons = {row: re.sub(r"\*+", lambda stars: ".*" if stars[0] == "**" else r"\w*", row) for row in rows}
    seen = {id(thing): thing for thing in things(modules()).values()}.values()
    names = sorted(
        ".".join(thing.home)
        for thing in seen
        if _kind(thing.value) != "value"
        and not thing.sample
        and ">>>" not in (inspect.getdoc(thing.value) or "")
    )
    idle = [row for row, pattern in reasons.items() if not any(re.fullmatch(pattern, name) for name in names)]
    return [f"docs/samples/without.md: {row} fits nothing" for row in idle] + [
        f"{name} has no sample in docs/samples"
        for name in names
        if not any(re.fullmatch(pattern, name) for pattern in reasons.values())
    ]


def _own_doc(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    return "" if text.startswith(f"{getattr(value, '__name__', '')}(") or text == object.__doc__ else text


def _class(value: type, found: dict[tuple[str, str], Thing], mark: str) -> Iterator[str]:
    """Methods and properties of a class and of its bases without a page of their own; links to the other bases."""
    pages_of = {id(thing.value): thing for thing in found.values()}
    bases = [pages_of[id(base)] for base in value.__mro__[1:] if id(base) in pages_of]
    if bases:
        shown = ", ".join(f"[`{'.'.join(base.home)}`](../{base.page})" for base in bases)
        yield f"Has everything of {shown}.\n"
    for name, member in sorted(_members(value, bases).items()):
        inner = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if isinstance(inner, (property, functools.cached_property)):
            yield f"{mark} {name}\n\n{markdown(inspect.getdoc(inner) or '')}"
        elif callable(inner) and not inspect.isclass(inner):
            yield f"{mark} {name}\n\n```python\n{_signature(inner, name)}\n```\n\n{markdown(_own_doc(inner))}"


def _members(value: type, described: list[Thing]) -> dict[str, Any]:
    """Public members of a class and of its bases in this package, but for what pages of its bases describe."""
    elsewhere = {id(owner) for base in described for owner in base.value.__mro__}
    found: dict[str, Any] = {}
    for owner in value.__mro__:
        if owner is value or (owner.__module__.startswith("fluidlite") and id(owner) not in elsewhere):
            for name, member in vars(owner).items():
                if not name.startswith("_") or name == "__call__":
                    found.setdefault(name, member)
    return found


def _signature(value: Any, name: str) -> str:
    """`name(parameters)`, folded when it is long; types as they are written."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(...)"
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    words = [_unquoted(str(one)) for one in signature.replace(parameters=parameters).parameters.values()]
    slash = [place for place, one in enumerate(parameters) if one.kind is one.POSITIONAL_ONLY]
    if slash:
        words.insert(slash[-1] + 1, "/")
    kinds = [one.kind for one in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        words.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY) + bool(slash), "*")
    result = signature.return_annotation
    end = (
        ")"
        if inspect.isclass(value) or result is signature.empty
        else f") -> {_unquoted(inspect.formatannotation(result))}"
    )
    line = f"{name}({', '.join(words)}{end}"
    return line if len(line) < 90 else f"{name}(\n" + "".join(f"    {word},\n" for word in words) + end


def _unquoted(text: str) -> str:
    """Annotations without the quotes of those that are text, defaults without addresses."""
    text = re.sub(r"^'([^']*)'$", r"\1", re.sub(r": '([^']*)'", r": \1", text))
    return re.sub(
        r"<(?:function|class|built-in function) '?([\w.]+)[^>]*>", r"\1", re.sub(r" at 0x\w+", "", text)
    )


def _shown(value: Any) -> str:
    text = re.sub(r" at 0x\w+", "", " ".join(repr(value).split())).replace("|", "\\|").replace("`", "'")
    return text if len(text) < 300 else text[:300] + " ..."


def run_samples() -> list[str]:
    """Runs the samples of all public docstrings, each in programs of its own; what failed, with what was printed."""
    failures: list[str] = []
    finder = doctest.DocTestFinder(recurse=False)
    seen = {id(thing): thing for thing in things(modules()).values()}
    for thing in seen.values():
        members = vars(thing.value).values() if inspect.isclass(thing.value) else ()
        for value in (thing.value, *members):
            if ">>>" in (getattr(value, "__doc__", None) or ""):
                for test in finder.find(value, ".".join(thing.home), globs={}):
                    failures.extend(_failure(test))
    return failures


def _failure(test: doctest.DocTest) -> list[str]:
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    with (
        mode.guard(None),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        runner.run(test, out=said.append)
    return ["".join(said)] if runner.failures else []
