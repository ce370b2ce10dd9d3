"""Reference kernels name only what CuPy has, in all versions that the stand-in was recorded from."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fluidlite
from tests.simulated_cuda.api import API, signature

ROOT = Path(fluidlite.__file__).parent
FILES = [*sorted((ROOT / "ops").rglob("*.py")), ROOT / "base" / "selected_rows.py"]
PLAIN = {*API["functions"], *API["ufuncs"], *API["values"], *API["types"], "cuda", "get_default_memory_pool"}
MODULES = {"linalg": API["linalg"]}


def attributes(tree: ast.AST) -> Iterator[tuple[ast.Attribute, list[str]]]:
    """Every `xp.a` or `xp.a.b`: the outermost node, and ['a'] or ['a', 'b']."""
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or id(node) in inner:
            continue
        parts, at = [], node
        while isinstance(at, ast.Attribute):
            parts.insert(0, at.attr)
            at = at.value  # type: ignore[assignment]
        if isinstance(at, ast.Name) and at.id == "xp":
            yield node, parts


def problem(parts: list[str]) -> str | None:
    """The message if `xp.a` or `xp.a.b` does not exist in CuPy; else None."""
    first, *rest = parts
    if first == "__name__" or first == "cuda":
        return None
    if first in MODULES:
        known = {*MODULES[first], "LinAlgError"}
        return None if rest and rest[0] in known else f"cupy.{'.'.join(parts)} does not exist"
    if first not in PLAIN:
        return f"cupy.{first} does not exist"
    if rest and rest[0] not in API["ufuncs"].get(first, {}).get("methods", ()):
        return f"cupy.{first} has no method {rest[0]}"
    return None


def keywords(call: ast.Call) -> str | None:
    """The message if a call `xp.a(...)` has keywords that CuPy's function does not take; else None."""
    function = call.func
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return None
    parameters = API["functions"].get(function.attr) if function.value.id == "xp" else None
    if parameters is None:
        return None
    taken = signature(parameters).parameters.values()
    wrong = {each.arg for each in call.keywords if each.arg} - {each.name for each in taken}
    if not wrong or any(each.kind is each.VAR_KEYWORD for each in taken):
        return None
    return f"cupy.{function.attr} has no {sorted(wrong)}"


def test_names_and_keywords():
    wrong = []
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf8"))
        found = [(node.lineno, problem(parts)) for node, parts in attributes(tree)]
        found += [(node.lineno, keywords(node)) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        wrong += [f"{path.name}:{line}: {text}" for line, text in found if text]
    assert wrong == []


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["nonsense"], "cupy.nonsense does not exist"),
        (["linalg", "nonsense"], "cupy.linalg.nonsense does not exist"),
        (["logaddexp", "at"], "cupy.logaddexp has no method at"),
    ],
)
def test_what_does_not_exist_is_found(parts, text):
    assert problem(parts) == text


def test_wrong_keywords_are_found():
    wrong, right = ast.parse("xp.concatenate(a, axes=1); xp.concatenate(a, axis=1)").body
    assert keywords(wrong.value) == "cupy.concatenate has no ['axes']" and keywords(right.value) is None
