"""Imports inside the package go one way: a folder imports those above it in this list and none below."""

import ast
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import fluidlite
from fluidlite.base.names.fluid_modules import TOP

ROOT = Path(fluidlite.__file__).parent

LAYERS = [
    {"_ext"},
    {"base"},
    {"old_scripts"},
    {"backend"},
    {"distributed"},
    {"ops"},
    {"framework"},
    {"executor"},
    {"eager"},
    {"reader"},
    # The public building blocks, and thin modules that give Fluid's names to what stands above.
    {f"fluid.{name}" for name in (
        "layer_helper_base",
        "param_attr", "initializer", "regularizer", "clip", "layer_helper", "op_functions", "optimizer", "layers",
        "nets", "metrics", "io", "profiler", "data", "evaluator", "op", "small_modules",
        "core", "data_feeder", "unique_name", "inference", "proto", "trainer_desc", "__init__",
    )},
    {"fluid.dygraph"},
    {"fluid.contrib", "onnx", "weights"},
    {"fluid.graphviz"},
    {f"fluid.{name}" for name in ("debugger", "transpiler")},
    {"fluid.communicator"},
    {"fluid.incubate"},
    {"__init__"},
    {"dataset"},
    {"paddle"},
    {"visual"},
    {"as_paddle", "commands", "__main__"},
]  # fmt: skip
EXECUTOR = [
    "failures", "lod_tensor", "tensor_files", "scope", "ir", "control_flow", "frontend", "passes", "cpu", "cuda",
    "compile", "feeding", "parameter_server", "interpreter", "reading", "plan_cache", "executor", "functions",
    "parallel", "__init__",
]  # fmt: skip
"""The files and folders of `executor/`, in the same order; what only types need may come from further down."""

RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def module_of(path):
    """`ops/tensor/fill.py` -> ('ops', 'fill'); `ops/__init__.py` -> ('ops',); `__init__.py` -> ()."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


@dataclass
class Source:
    """What a file says: its imports, inside functions as well, as (line, module), and the rest that is asked here."""

    imports: list[tuple[int, list[str]]] = field(default_factory=list)
    for_types: set[int] = field(default_factory=set)
    """The lines of imports that only type checkers follow."""
    strings: list[tuple[int, str]] = field(default_factory=list)
    topic: str = ""


@cache
def source(path):
    """A file of the package, without its tree: those of all files together are large."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    found = Source(topic=(ast.get_docstring(tree) or "").split("\n\n")[0])
    package = ("fluidlite", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.imports += [(node.lineno, alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            found.imports += [(node.lineno, [*base, alias.name]) for alias in node.names]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.for_types.update(range(node.lineno, node.body[-1].end_lineno + 1))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.strings.append((node.lineno, node.value.partition(".")[0]))
    return found


def imported(path, for_types=True):
    """(line, module of this package) for every import in a file; without those `for_types` if they do not count."""
    found = source(path)
    for line, parts in found.imports:
        if parts[0] == "fluidlite" and (for_types or line not in found.for_types):
            yield line, parts[1:]


def top(parts):
    """The folder or top-level module, below `fluid/` as well; names in `fluidlite/__init__.py` count as that."""
    if parts and parts[0] == "fluid":
        name = f"fluid.{parts[1]}" if len(parts) > 1 else "fluid.__init__"
        return name if name in RANK else "fluid.__init__"
    return parts[0] if parts and parts[0] in RANK else "__init__"


FILES = sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)
FOLDERS = sorted({path.parent for path in FILES})


def test_imports_go_one_way():
    wrong = []
    for path in FILES:
        here = top(module_of(path))
        assert here in RANK, f"say in LAYERS where {path} belongs"
        for line, parts in imported(path):
            there = top(parts)
            if RANK[there] > RANK[here]:
                wrong.append(f"{path}:{line}: {here} imports {there}, which is built on it")
            if here == "_ext" != there:
                wrong.append(f"{path}:{line}: _ext imports nothing of the package")
    assert wrong == []


def test_imports_inside_the_executor_go_one_way():
    wrong = []
    for path in (path for path in FILES if module_of(path)[0] == "executor"):
        here = EXECUTOR.index((*module_of(path), "__init__")[1])
        for line, parts in imported(path, for_types=False):
            if parts[0] == "executor" and EXECUTOR.index(parts[1]) > here:
                wrong.append(f"{path}:{line}: {EXECUTOR[here]} imports {parts[1]}")
    assert wrong == []


def test_only_the_gpu_backend_imports_cupy():
    wrong = []
    for path in (path for path in FILES if module_of(path)[:2] != ("backend", "cupy_")):
        named = [(line, parts[0]) for line, parts in source(path).imports] + source(path).strings
        wrong += [f"{path}:{line} imports {name}" for line, name in named if name in ("cupy", "cupyx")]
    assert wrong == []


def test_every_folder_and_module_is_listed():
    found = {"fluid.__init__"}
    for prefix, folder in (("", ROOT), ("fluid.", ROOT / "fluid")):
        found |= {prefix + path.stem for path in folder.glob("*.py")}
        found |= {prefix + path.parent.name for path in folder.glob("*/__init__.py")}
    assert found - {"fluid"} == set(RANK)
    assert {name for name in found if "." not in name} - {"__init__", "__main__"} == TOP


def test_files_of_a_folder_do_not_import_each_other_in_circles():
    circles = []
    for folder in FOLDERS:
        here = list(folder.relative_to(ROOT).parts)
        imports = {}
        for path in folder.glob("*.py"):
            if path.name != "__init__.py":
                parts = [found for _, found in imported(path, for_types=False)]
                imports[path.stem] = {
                    found[len(here)] for found in parts if found[: len(here)] == here != found
                }
        reached = {name: set(found) for name, found in imports.items()}
        for middle in imports:
            for found in reached.values():
                if middle in found:
                    found |= reached[middle]
        circles += [f"{folder}: {name} imports itself" for name, found in reached.items() if name in found]
    assert circles == []


def test_each_folder_says_its_topic_in_a_sentence():
    topics = {folder: source(folder / "__init__.py").topic.rstrip() for folder in FOLDERS}
    assert [str(folder) for folder, topic in topics.items() if not topic.endswith((".", "..."))] == []
