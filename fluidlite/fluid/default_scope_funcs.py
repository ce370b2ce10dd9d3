"""`fluid.default_scope_funcs`: a stack of scopes for each thread, and the variables of the innermost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..base import missing
from ..executor.scope import Scope, ScopeVariable

__all__ = ["enter_local_scope", "find_var", "get_cur_scope", "leave_local_scope", "scoped_function", "var"]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.scopes = [Scope()]


_stack = _Stack()


def get_cur_scope() -> Scope:
    """The innermost scope of this thread; it has nothing to do with `fluid.global_scope()`."""
    if not _stack.scopes:
        _stack.scopes.append(Scope())
    return _stack.scopes[-1]


def enter_local_scope() -> None:
    """Go into a new scope inside the current one."""
    _stack.scopes.append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """Leave the current scope, which drops its variables and those of scopes made in it."""
    get_cur_scope()
    _stack.scopes.pop()
    get_cur_scope().drop_kids()


def var(name: str) -> ScopeVariable:
    """The variable `name` of the current scope, made if there is none."""
    return get_cur_scope().var(name)


def find_var(name: str) -> ScopeVariable | None:
    """The variable `name` of the current scope or of one around it, or None."""
    return get_cur_scope().find_var(name)


def scoped_function(func: Callable[[], Any]) -> None:
    """Call `func` inside a scope of its own."""
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()


__getattr__ = missing.reporter(__name__)
