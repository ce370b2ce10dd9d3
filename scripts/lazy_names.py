"""Writes what is loaded only when somebody asks for it: names of packages, and declarations of operators.

python scripts/lazy_names.py          # write the two tables
python scripts/lazy_names.py --check  # exit 1 if one is out of date

A package that ends in `missing.lazy(__name__)` says under `if TYPE_CHECKING:` what it has, as imports, which type
checkers follow; `fluidlite/base/names/lazy_names.py` gets where each of these names is. `fluidlite/ops/places.py` gets
which module declares which operators.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import generated

sys.path.insert(0, str(Path(__file__).parents[1]))
ROOT = Path(str(importlib.util.find_spec("fluidlite").origin)).parent  # type: ignore[union-attr]
MARKS = ("# ruff: noqa: E501", "# fmt: off")
HEAD = f"Written by scripts/{Path(__file__).name}."


class Recorder(dict[Any, Any]):
    """Declarations, with the module that was being loaded when each was made known."""

    def __init__(self) -> None:
        self.modules: dict[Any, str] = {}

    def __setitem__(self, key: Any, definition: Any) -> None:
        frame = sys._getframe()
        while frame.f_code.co_name != "<module>":
            assert frame.f_back is not None
            frame = frame.f_back
        self.modules[key] = frame.f_globals["__name__"]
        super().__setitem__(key, definition)


def places() -> str:
    """Operator types by the module that declares them."""
    ops = importlib.import_module("fluidlite.ops")
    registry = importlib.import_module("fluidlite.ops.registry")
    for name in list(sys.modules):
        if name.startswith(ops.__name__ + ".") and name.count(".") == 3:
            del sys.modules[name]
    recorder = Recorder()
    registry._OPS = recorder  # type: ignore[attr-defined]
    registry.load_all.cache_clear()
    registry.load_all()
    found: dict[str, list[str]] = {}
    for op_type, module in sorted(recorder.modules.items()):
        found.setdefault(module.removeprefix(ops.__name__ + "."), []).append(op_type)
    lines = [f'"""The modules that declare operators. {HEAD}"""', "", *MARKS]
    lines += ["PLACES = {", *table(found), "}", '"""Operator types by module."""']
    return "\n".join([*lines, ""])


def table(found: dict[str, list[str]]) -> list[str]:
    """The lines of a table of names by module."""
    return [f'    "{module}": "{" ".join(names)}",' for module, names in sorted(found.items())]


def names() -> str:
    """Where the names of packages are, those first that a package passes on as public."""
    lines = [f'"""The modules of lazily loaded names. {HEAD}"""', "", *MARKS]
    lines += ["LAZY: dict[str, tuple[dict[str, str], dict[str, str]]] = {"]
    for path in sorted(ROOT.rglob("__init__.py")):
        tree = ast.parse(path.read_text(encoding="utf8"))
        block = next((node for node in tree.body if lazy(node)), None)
        if block is None or "missing.lazy(" not in ast.unparse(tree):
            continue
        lines.append(f'    "{".".join(path.parent.relative_to(ROOT.parent).parts)}": (')
        for part in parts(path.parent, block):
            lines.append("        {")
            lines += [f'            "{module}": "{" ".join(had)}",' for module, had in part.items()]
            lines.append("        },")
        lines.append("    ),")
    return "\n".join([*lines, "}", ""])


def lazy(node: ast.stmt) -> bool:
    """Whether a statement holds imports of the package itself that only type checkers follow."""
    if not isinstance(node, ast.If) or ast.unparse(node.test) != "TYPE_CHECKING":
        return False
    return all(isinstance(one, ast.ImportFrom) and one.level for one in node.body)


def parts(folder: Path, block: ast.If) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The names of a package by module: those of star imports, and those imported by name ('': modules)."""
    passed_on: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        module = "." * node.level + (node.module or "")
        had = [
            f"{one.asname}={one.name}" if one.asname not in (None, one.name) else one.name
            for one in node.names
        ]
        if had == ["*"]:
            passed_on[module] = public(
                folder.parents[node.level - 2] / node.module if node.level > 1 else folder / node.module
            )
        elif node.level == 1 and node.module == "fluid" and folder == ROOT:
            # Modules of a package that itself holds no names.
            others.setdefault("", []).extend(f"{name}=fluid.{name}" for name in had)
        else:
            others.setdefault(module if node.module else "", []).extend(had)
    for name in [one for part in (passed_on, others) for module in part if module for one in part[module]]:
        # The first import of such a module would put it in the place of the name.
        assert not (folder / f"{name}.py").exists(), f"{folder}: {name} is a module, and a name in one"
    return passed_on, others


def public(module: Path) -> list[str]:
    """The `__all__` of a module; of a package whose imports only type checkers follow, what these pass on."""
    path = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    if path.with_suffix(".pyi").exists():  # written by layer_stubs.py from the module as it is
        path = path.with_suffix(".pyi")
    tree = ast.parse(path.read_text(encoding="utf8"))
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.If) and lazy(node):
            return [name for had in parts(module, node)[0].values() for name in had]
        if isinstance(node, ast.Assign | ast.AugAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == "__all__":
                found += ast.literal_eval(node.value)
    assert found, f"{path} has no __all__"
    return found


if __name__ == "__main__":
    # The names first: loading the operators goes by them.
    late = generated.write({ROOT / "base" / "names" / "lazy_names.py": names()})
    sys.exit(generated.write({ROOT / "ops" / "places.py": places()}) or late)
