"""Rewrites expressions of the user's code that today's Python or NumPy would refuse, before it is compiled.

Only the user's code is rewritten: `float(x)` becomes `float(__fluidlite_old__.one(float, x))`, and so on for each
function of `calls.py`. Lines, names and tracebacks stay.
"""

from __future__ import annotations
import __future__

import ast
import functools
import sys
from collections.abc import Collection
from types import CodeType

from ..base.syntax import copied
from .adapters import ADAPTED
from .names import METHODS

HELPER = "__fluidlite_old__"
"""The name of `calls.py` in rewritten code: a dunder, which code that lists a namespace skips."""
FUTURE = functools.reduce(
    int.__or__, [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
)
"""The flags of `from __future__ import ...` in code objects and calls of `compile`."""
SPEC = "_frozen_importlib_external.spec_from_file_location"
"""The function that gives user's modules their loader."""
SHARES_LOCALS = sys.version_info < (3, 13)
"""Whether `locals`, `exec` and `eval` of a function share one dictionary of its variables, as before Python 3.13."""
_NUMBERS = frozenset({"float", "int", "complex"})
_SEARCHES = frozenset("compile findall finditer fullmatch match search split sub subn".split())
_FUNCTIONS = frozenset(name.rpartition(".")[2] for name in (*ADAPTED, SPEC))


def compiled(source: str | bytes, filename: str, future: int = 0) -> CodeType:
    """The code of a user's file, rewritten unless it is nested too deeply; raises SyntaxError.

    `future` has the flags that it inherits from the code around it.
    """
    try:
        code = tree(source, filename, future)
        return compile(code, filename, "exec", future, dont_inherit=True)
    except RecursionError:
        return compile(source, filename, "exec", future, dont_inherit=True)


def tree(source: str | bytes, filename: str, future: int = 0) -> ast.Module:
    """The syntax tree of a user's file, rewritten."""
    parsed = compile(source, filename, "exec", ast.PyCF_ONLY_AST | future, dont_inherit=True)
    assert isinstance(parsed, ast.Module)
    if rewrite(parsed, set()):
        _import_helper(parsed)
    return parsed


def rewrite(module: ast.Module, packages: set[str]) -> bool:
    """Rewrite `module` in place; True if anything was changed.

    `packages`: those imported by earlier code; the module's own imports are added. Code that uses numba is not
    rewritten: numba compiles its bytecode, and does not know the helpers.
    """
    calls, others = _interesting(module, packages)
    if "numba" in packages:
        return False
    methods = set(METHODS) if "pandas" in packages else set(METHODS) - {"append"}
    changed = [_call(node, methods) for node in calls]
    changed += [_format(node) if isinstance(node, ast.BinOp) else _assignment(node) for node in others]
    return any(changed)


def _interesting(
    module: ast.Module, packages: set[str]
) -> tuple[list[ast.Call], list[ast.BinOp | ast.Assign | ast.AugAssign]]:
    """All calls and other nodes that may be rewritten; adds imported packages to `packages`."""
    calls: list[ast.Call] = []
    others: list[ast.BinOp | ast.Assign | ast.AugAssign] = []
    nodes: list[ast.AST] = [module]
    while nodes:  # ast.walk takes three times as long, and every import of user code waits for this
        node = nodes.pop()
        if isinstance(node, ast.Call):
            calls.append(node)
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            others.append(node)
        elif isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mod):
                others.append(node)
        elif isinstance(node, ast.Import):
            packages.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            packages.add((node.module or "").partition(".")[0])
        for name in node._fields:  # other attributes are added by tools, such as the node's parent
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes.extend(each for each in value if isinstance(each, ast.AST))
    return calls, others


def _call(node: ast.Call, methods: Collection[str]) -> bool:
    """Rewrite arguments of functions of numbers or source, and lookups of changed functions."""
    func = node.func
    if any(isinstance(arg, ast.Starred) for arg in node.args[:1]):
        return False
    if isinstance(func, ast.Name) and func.id in _NUMBERS:
        plain = len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Constant)
        return plain and _wrap(node.args, "one", func)
    if isinstance(func, ast.Name) and not SHARES_LOCALS and _share_locals(node, func):
        return True
    if isinstance(func, ast.Name) and (func.id == "exec" or func.id == "compile" and _compiles_module(node)):
        return _wrap(node.args, "source", func)
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "math":
        return _wrap(node.args, "one", func.value)
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "re":
        return func.attr in _SEARCHES and _wrap(node.args, "pattern", func.value)
    found = False
    if isinstance(func, ast.Attribute) and func.attr in methods:
        found = True
        func.value = _helper("owner", func.value, func.value, ast.Constant(func.attr))
    if (func.id if isinstance(func, ast.Name) else getattr(func, "attr", None)) in _FUNCTIONS:
        node.func = _helper("adapted", func, func)
    return found or node.func is not func


def _share_locals(node: ast.Call, func: ast.Name) -> bool:
    """Let `locals()`, and `exec` and `eval` without namespaces, share one dictionary of variables."""
    if node.keywords:
        return False
    if func.id in ("locals", "vars") and not node.args:
        node.func, node.args = _helper("scope", func).func, [copied(func)]
        return True
    if func.id in ("exec", "eval") and len(node.args) == 1:
        if func.id == "exec":
            _wrap(node.args, "source", func)
        namespaces = _helper("namespaces", func, copied(func))
        node.args.append(ast.copy_location(ast.Starred(namespaces, ast.Load()), func))
        return True
    return False


def _compiles_module(node: ast.Call) -> bool:
    """Whether a call of `compile` certainly makes code of a module, and no tree."""
    flags = [*node.args[3:4], *(keyword.value for keyword in node.keywords if keyword.arg in ("flags", None))]
    if any(not isinstance(flag, ast.Constant) or flag.value != 0 for flag in flags):
        return False
    modes = [*node.args[2:3], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and mode.value == "exec" for mode in modes)


def _format(node: ast.BinOp) -> bool:
    """Rewrite `text % values`, if the left side is a string or the right side a tuple; else it may be arithmetic."""
    text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    if not (text or isinstance(node.right, ast.Tuple) and _repeatable(node.left)):
        return False
    node.right = _helper("values", node.right, copied(node.left), node.right)
    return True


def _assignment(node: ast.Assign | ast.AugAssign) -> bool:
    """Rewrite `array[i] = value` or `array[i] += value`."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if not isinstance(target, ast.Subscript) or not _repeatable(_array(target.value)):
        return False
    indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if any(isinstance(index, (ast.Slice, ast.Starred)) for index in indices):
        return False
    if isinstance(node.value, (ast.Constant, ast.List, ast.Dict, ast.Tuple)):
        return False
    # The value is evaluated first, as in plain Python: it may create the array.
    node.value = _helper("element", node.value, node.value, copied(target.value), ast.Constant(len(indices)))
    return True


def _array(node: ast.expr) -> ast.expr:
    """The innermost of `a[i][j]`, if the indices are names and constants, which may be evaluated twice."""
    while isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Name, ast.Constant)):
        node = node.value
    return node


def _wrap(args: list[ast.expr], helper: str, owner: ast.Name) -> bool:
    """Pass the first argument through `helper`."""
    if not args:
        return False
    args[0] = _helper(helper, args[0], copied(owner), args[0])
    return True


def _helper(name: str, place: ast.expr, *args: ast.expr) -> ast.Call:
    """A call of a function of `calls.py`, at the position of `place`."""
    module = ast.copy_location(ast.Name(HELPER, ast.Load()), place)
    function = ast.copy_location(ast.Attribute(module, name, ast.Load()), place)
    # `fix_missing_locations` would visit all of the arguments, which have positions already.
    given = [each if hasattr(each, "lineno") else ast.copy_location(each, place) for each in args]
    return ast.copy_location(ast.Call(function, given, []), place)


def _repeatable(node: ast.expr) -> bool:
    """Whether an expression is a name, or an attribute of one, which may be evaluated twice."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _import_helper(module: ast.Module) -> None:
    """Import `calls.py` below the docstring and `__future__` imports.

    As a global name: `exec` with two dictionaries would make it local, where functions do not find it.
    """
    place = 0
    for node in module.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        place += 1
    imported = ast.ImportFrom("fluidlite.old_scripts", [ast.alias("calls", HELPER)], 0)
    for statement in (imported, ast.Global([HELPER])):
        ast.copy_location(statement, module.body[min(place, len(module.body) - 1)])
        module.body.insert(place, ast.fix_missing_locations(statement))
