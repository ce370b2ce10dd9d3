"""Recompiles functions: finds the source in the user's file, rewrites it, compiles it with its line numbers."""

from __future__ import annotations

import ast
import linecache
import sys
import textwrap
import threading
import types
from typing import Any

from ....base.syntax import copied
from ....old_scripts import rewriting as old
from . import rewriting
from .rewriting import HELPERS, PREFIX, Refusal

_FILES_KEPT = 64
_FUNCTION = "_d2s_function"

_lock = threading.RLock()
_files: dict[tuple[str, bool], tuple[int, dict[int, list[Any]]]] = {}
_made: dict[types.CodeType, types.CodeType | str] = {}


def node_of(function: types.FunctionType) -> Any:
    """The syntax tree of a function, a FunctionDef or Lambda; Refusal if it cannot be found."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise Refusal(f"there is no source of {code.co_filename!r}")
    text = "".join(lines)
    updated = old.HELPER in function.__globals__
    known = _files.get((code.co_filename, updated))
    if known is None or known[0] != hash(text):
        try:
            tree = old.tree(text, code.co_filename) if updated else ast.parse(text, code.co_filename)
        except (SyntaxError, RecursionError) as error:
            raise Refusal(f"its source cannot be read: {error}") from None
        by_line: dict[int, list[Any]] = {}
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                begin = min([node.lineno, *[one.lineno for one in getattr(node, "decorator_list", ())]])
                by_line.setdefault(begin, []).append(node)
        while len(_files) >= _FILES_KEPT:
            _files.pop(next(iter(_files)))
        known = _files[code.co_filename, updated] = hash(text), by_line
    fitting = [node for node in known[1].get(code.co_firstlineno, ()) if _fits(node, code)]
    if len(fitting) > 1:
        fitting = [node for node in fitting if _covers(node, code)]
    if len(fitting) != 1:
        raise Refusal(f"line {code.co_firstlineno} of {code.co_filename} has no such function, or several")
    return fitting[0]


def _fits(node: Any, code: types.CodeType) -> bool:
    args = node.args
    parameters = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    named = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    if named != code.co_name:
        return False
    count = code.co_argcount + code.co_kwonlyargcount
    return len(parameters) == count


def _covers(node: Any, code: types.CodeType) -> bool:
    """True if the source positions of a lambda's instructions lie within the node (always before Python 3.11)."""
    if sys.version_info < (3, 11):
        return True
    body = node.body
    places = [(line, column) for line, _, column, end in code.co_positions() if line and end]
    first, last = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return all(first <= place <= last for place in places)


def _rewritten(node: Any) -> Any:
    fresh = copied(node)
    new = rewriting.function(fresh) if isinstance(fresh, ast.FunctionDef) else rewriting.expression(fresh)
    if not any(isinstance(inner, ast.Name) and inner.id == HELPERS for inner in ast.walk(new)):
        raise Refusal("there is nothing to rewrite")
    return new


def compiled(function: types.FunctionType) -> types.CodeType:
    """The rewritten code of a function, with the helpers as its free variable `_d2s_`. Raises Refusal."""
    code = function.__code__
    with _lock:
        result = _made.get(code)
        if result is None:
            try:
                result = _compiled(function)
            except Refusal as refusal:
                result = str(refusal)
            _made[code] = result
    if isinstance(result, str):
        raise Refusal(result)
    return result


def _compiled(function: types.FunctionType) -> types.CodeType:
    code = function.__code__
    node = _rewritten(node_of(function))
    outer = function.__qualname__.split(".")
    owner = outer[-2] if len(outer) > 1 and outer[-2] != "<locals>" else None
    inner: ast.stmt = node if isinstance(node, ast.FunctionDef) else ast.Expr(node)
    if isinstance(node, ast.FunctionDef):
        node.name = _FUNCTION  # inside, the function's own name refers to the global or cell
    free = [name for name in code.co_freevars if name != "__class__"]
    if owner is not None:  # for name mangling of self.__x, which strips leading underscores of the class
        inner = ast.ClassDef(f"___{owner}", [], [], [inner], [])
    arguments = ast.arguments(
        [], [ast.arg(name) for name in [HELPERS, "__class__", *free]], None, [], [], None, []
    )
    factory = ast.FunctionDef("_d2s_factory", arguments, [inner], [])
    module = ast.fix_missing_locations(ast.Module([factory], []))
    outermost = compile(module, code.co_filename, "exec", flags=code.co_flags & old.FUTURE, dont_inherit=True)
    return _named(_inside(outermost, _FUNCTION if isinstance(node, ast.FunctionDef) else "<lambda>"), code)


def _inside(outer: types.CodeType, name: str) -> types.CodeType:
    """The code object called `name` among the constants of the module's code object."""
    for item in outer.co_consts:
        if isinstance(item, types.CodeType):
            return item if item.co_name == name else _inside(item, name)
    raise Refusal("it was not compiled")


def _named(new: types.CodeType, code: types.CodeType) -> types.CodeType:
    """The code with the function's name, also for its nested parts, so that tracebacks show it."""
    consts = tuple(
        [
            _named(item, code)
            if isinstance(item, types.CodeType) and item.co_name.startswith(PREFIX)
            else item
            for item in new.co_consts
        ]
    )
    changes: dict[str, Any] = {"co_name": code.co_name, "co_consts": consts}
    if hasattr(code, "co_qualname"):
        changes["co_qualname"] = code.co_qualname
    return new.replace(**changes)


def rewritten(function: types.FunctionType, helpers: Any) -> types.FunctionType:
    """A copy of `function` with rewritten code. Raises Refusal if it cannot be rewritten."""
    code = compiled(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[HELPERS] = types.CellType(helpers)
    if any(name not in cells for name in code.co_freevars):
        raise Refusal("it uses variables of an enclosing function that it has no cells for")
    new = types.FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple([cells[name] for name in code.co_freevars]),
    )
    new.__kwdefaults__ = function.__kwdefaults__
    new.__qualname__, new.__module__, new.__doc__ = (
        function.__qualname__,
        function.__module__,
        function.__doc__,
    )
    new.__dict__.update(function.__dict__)
    new.__dict__["_d2s_original"] = function
    return new


def text_of(function: types.FunctionType) -> str:
    """The rewritten source of a function. Raises Refusal if it cannot be rewritten."""
    node = _rewritten(node_of(function))
    return textwrap.dedent(ast.unparse(ast.fix_missing_locations(node))) + "\n"
