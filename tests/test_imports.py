"""Imports inside the package go one way: a folder imports those above it in this list and none below."""

import ast
from functools import cache
from pathlib import Path

import pytest

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
        "nets", "metrics", "io", "profiler", "data", "input", "evaluator", "op", "small_modules",
        "core", "data_feeder", "unique_name", "weight_norm", "inference", "proto", "trainer_desc", "__init__",
    )},
    {"fluid.dygraph"},
    {"fluid.contrib", "onnx", "weights"},
    {"fluid.graphviz"},
    {f"fluid.{name}" for name in ("install_check", "debugger", "transpiler")},
    {"fluid.communicator"},
    {"fluid.incubate"},
    {"__init__"},
    {"dataset"},
    {"paddle"},
    {"visual"},
    {"as_paddle", "commands", "__main__"},
]  # fmt: skip
EXECUTOR = [
    "failures", "tensor_memory", "lod_tensor", "scope", "ir", "control_flow", "frontend", "passes", "cpu", "cuda",
    "compile", "feeding", "parameter_server", "interpreter", "reading", "plan_cache", "executor", "functions",
    "parallel", "__init__",
]  # fmt: skip
"""The files and folders of `executor/`, in the same order; what only types need may come from further down."""

RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def module_of(path):
    """`ops/tensor/fill.py` -> ('ops', 'fill'); `ops/__init__.py` -> ('ops',); `__init__.py` -> ()."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf8"))


def imported(path):
    """(line, module of this package) for every import in a file, inside functions as well."""
    package = ("fluidlite", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            found = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for parts in found:
            if parts[0] == "fluidlite":
                yield node.lineno, parts[1:]


def top(parts):
    """The folder or top-level module, below `fluid/` as well; names in `fluidlite/__init__.py` count as that."""
    if parts and parts[0] == "fluid":
        name = f"fluid.{parts[1]}" if len(parts) > 1 else "fluid.__init__"
        return name if name in RANK else "fluid.__init__"
    return parts[0] if parts and parts[0] in RANK else "__init__"


FILES = sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    here = top(module_of(path))
    assert here in RANK, f"say in LAYERS where {path} belongs"
    for line, parts in imported(path):
        there = top(parts)
        assert RANK[there] <= RANK[here], f"{path}:{line}: {here} imports {there}, which is built on it"
        if here == "_ext":
            assert there == "_ext", f"{path}:{line}: _ext imports nothing of the package"


@pytest.mark.parametrize("path", [path for path in FILES if module_of(path)[0] == "executor"], ids=str)
def test_imports_inside_the_executor_go_one_way(path):
    here = EXECUTOR.index((*module_of(path), "__init__")[1])
    for_types = {
        line
        for node in parsed(path).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for line in range(node.lineno, node.end_lineno + 1)
    }
    for line, parts in imported(path):
        if parts[0] == "executor" and line not in for_types:
            there = parts[1]
            assert EXECUTOR.index(there) <= here, f"{path}:{line}: {EXECUTOR[here]} imports {there}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_gpu_backend_imports_cupy(path):
    if module_of(path)[:2] == ("backend", "cupy_"):
        return
    for node in ast.walk(parsed(path)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        names += [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
        for name in names:
            assert name.split(".")[0] not in ("cupy", "cupyx"), f"{path}:{node.lineno} imports {name}"


def test_every_folder_and_module_is_listed():
    found = {"fluid.__init__"}
    for prefix, folder in (("", ROOT), ("fluid.", ROOT / "fluid")):
        found |= {prefix + path.stem for path in folder.glob("*.py")}
        found |= {prefix + path.parent.name for path in folder.glob("*/__init__.py")}
    assert found - {"fluid"} == set(RANK)
    assert {name for name in found if "." not in name} - {"__init__", "__main__"} == TOP


def for_types(tree):
    """The lines of imports that only type checkers follow."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for line in range(node.lineno, node.body[-1].end_lineno + 1)
    }


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=str)
def test_files_of_a_folder_do_not_import_each_other_in_circles(folder):
    imports = {}
    for path in folder.glob("*.py"):
        if path.name != "__init__.py":
            lines = for_types(parsed(path))
            here = list(folder.relative_to(ROOT).parts)
            parts = [found for line, found in imported(path) if line not in lines]
            imports[path.stem] = {found[len(here)] for found in parts if found[: len(here)] == here != found}
    reached = {name: set(found) for name, found in imports.items()}
    for middle in imports:
        for found in reached.values():
            if middle in found:
                found |= reached[middle]
    circle = {name for name, found in reached.items() if name in found}
    assert not circle, f"{folder}: {sorted(circle)} import each other"


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=str)
def test_each_folder_says_its_topic_in_a_sentence(folder):
    first = (ast.get_docstring(parsed(folder / "__init__.py")) or "").split("\n\n")[0]
    assert first.rstrip().endswith((".", "..."))
