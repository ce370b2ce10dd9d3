"""Helpers called by rewritten code: each restores the old behaviour of an expression that is an error today.

Valid expressions are passed through, so that nothing that works changes. `docs/old_scripts.md` has the
list.
"""

from __future__ import annotations

import ast
import inspect
import math
import pkgutil
import re
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np

from ..base.arrays import Convertible
from . import rewriting
from .adapters import ADAPTED
from .finder import for_user
from .names import METHODS
from .notes import installed, note

_SHARED = "__fluidlite_locals__"
"""The name under which a function's frame holds the dictionary that `locals`, `exec` and `eval` share."""
_FLAGS = r"(?<!\\)\(\?[aiLmsux]+\)"
_PLAIN = frozenset({int, float, str, bool})
_CONVERSION = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\*|\d*)(?:\.(\*|\d*))?[hlL]?(.)", re.DOTALL)


def _is_one(value: Any) -> bool:
    """Whether `value` is an array with dimensions and one element that does not convert by itself."""
    return (
        isinstance(value, np.ndarray)
        and value.size == 1
        and value.ndim > 0
        and not isinstance(value, Convertible)
    )


def one(function: Any, value: Any) -> Any:
    """The argument of `float`, `int`, `complex` or a function of `math`: the element of an array that has one."""
    if type(value) in _PLAIN or not _is_one(value) or function not in (float, int, complex, math):
        return value
    note(f"{function.__name__} of an array {list(value.shape)}", "array.item()", sys._getframe(1))
    return value.item()


def values(template: Any, args: Any) -> Any:
    """The operand of `template % args`, with arrays of one element as numbers for numeric conversions."""
    single = type(args) is not tuple
    items = [args] if single else list(args)
    if not isinstance(template, str) or not any(map(_is_one, items)):
        return args
    place = 0
    for width, precision, kind in _CONVERSION.findall(template):
        place += (width == "*") + (precision == "*")
        if kind == "%":
            continue
        if kind in "diouxXeEfFgG" and place < len(items) and _is_one(items[place]):
            note(f"'%{kind}' % an array {list(items[place].shape)}", "array.item()", sys._getframe(1))
            items[place] = items[place].item()
        place += 1
    return items[0] if single else tuple(items)


def element(value: Any, array: Any, indices: int) -> Any:
    """The value for `array[i] = value` with an index for each dimension: an array of one element as its element."""
    if type(array) is not np.ndarray or array.ndim != indices or array.dtype.hasobject or not _is_one(value):
        return value
    note(f"array[i] = an array {list(value.shape)}", "array[i] = value.item()", sys._getframe(1))
    return value[(0,) * value.ndim]


def source(function: Any, text: Any) -> Any:
    """The source for `exec` or `compile`: the user's code, rewritten as well."""
    if not isinstance(text, (str, bytes)) or function not in (exec, compile):
        return text
    future = sys._getframe(1).f_code.co_flags & rewriting.FUTURE
    try:
        if function is exec:
            return rewriting.compiled(text, "<string>", future)
        tree = rewriting.tree(text, "<string>", future)
        compile(tree, "<string>", "exec", future, dont_inherit=True)
        return tree
    except (SyntaxError, ValueError, RecursionError):
        return text  # the function reports the error; it may still compile code too deep for a tree


def pattern(module: Any, text: Any) -> Any:
    """The pattern for a function of `re`, with flags such as `(?i)` moved from its middle to the front."""
    if module is not re or not isinstance(text, (str, bytes)):
        return text
    try:
        re.compile(text)
    except re.error as error:
        if "flags not at the start" not in str(error):
            return text
        note("flags in the middle of a regular expression", "flags at its start", sys._getframe(1))
        flags: re.Pattern[Any] = re.compile(_FLAGS if isinstance(text, str) else _FLAGS.encode())
        nothing: Any = text[:0]
        return nothing.join(flags.findall(text)) + flags.sub(nothing, text)
    return text


def scope(function: Any) -> Any:
    """The result of `locals()` or `vars()`: in a function the same dictionary each time, as before Python 3.13."""
    if function not in (locals, vars):
        return function()
    return _shared_locals(sys._getframe(1))


def namespaces(function: Any) -> tuple[Any, ...]:
    """The namespaces for `exec` or `eval` without any: in a function what `scope` gives, with what was added to it."""
    frame = sys._getframe(1)
    if function not in (exec, eval) or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return ()
    return frame.f_globals, _shared_locals(frame)


def _shared_locals(frame: FrameType) -> Any:
    """The dictionary of a function's variables with what code has added to it; the namespace of other frames."""
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return frame.f_locals
    current = dict(frame.f_locals)
    shared = current.pop(_SHARED, None)
    if shared is None:
        shared = frame.f_locals[_SHARED] = {}
    code = frame.f_code
    for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
        shared.pop(name, None)
    shared.update(current)
    return shared


def owner(value: Any, name: str) -> Any:
    """The object to get the method `name` from: `value`, or a namespace with a replacement for a removed method."""
    if not hasattr(value, name):
        for cls in type(value).__mro__:
            old = METHODS[name].get(f"{cls.__module__}.{cls.__qualname__}")
            if old is not None:
                note(f"{cls.__name__}.{name}", old.instead, sys._getframe(1))
                return SimpleNamespace(**{name: partial(pkgutil.resolve_name(old.target), value)})
    return value


def adapted(function: Any) -> Any:
    """`function`, or for one that has changed its adapter."""
    adapter = _ADAPTED.get(f"{getattr(function, '__module__', None)}.{getattr(function, '__name__', None)}")
    return function if adapter is None else partial(adapter, function)


def _spec(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    spec = function(*args, **kwargs)
    if spec is not None and spec.origin is not None and not installed(spec.origin):
        spec.loader = for_user(spec.loader)
    return spec


_ADAPTED = {**ADAPTED, rewriting.SPEC: _spec}


class Transformer:
    """Rewrites cells of notebooks, as an element of IPython's `ast_transformers`."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._packages: set[str] = set()

    def visit(self, cell: ast.Module) -> ast.Module:
        """The cell, changed in place."""
        self._packages &= sys.modules.keys()
        if rewriting.rewrite(cell, self._packages):
            # No import statement in the cell: magics check for a single expression, and statements run separately.
            self._shell.user_global_ns[rewriting.HELPER] = sys.modules[__name__]
        return cell
