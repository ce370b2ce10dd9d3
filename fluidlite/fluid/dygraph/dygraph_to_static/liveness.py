"""Liveness analysis: the local variables and attributes that statements read and write, and which are live."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from .exits import own_nodes

Names = frozenset[str]
NO: Names = frozenset()
CHANGING = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add"})
"""Methods that change lists, dicts and sets."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned(stmts: Iterable[ast.AST]) -> dict[str, None]:
    """The names that statements bind in their function, in order."""
    names: dict[str, None] = {}

    def visit(node: ast.AST, own: bool) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names[node.name] = None
            # Its `nonlocal` names may change wherever the function is called.
            for inner in ast.walk(node):
                if isinstance(inner, ast.Nonlocal):
                    names.update(dict.fromkeys(inner.names))
            return
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.Name) and own and isinstance(node.ctx, (ast.Store, ast.Del)):
            names[node.id] = None
        elif isinstance(node, ast.NamedExpr):
            names[node.target.id] = None
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name.partition(".")[0], None) for alias in node.names)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            names[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names[node.rest] = None
        inside = own and not isinstance(node, _COMPREHENSIONS)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    for stmt in stmts:
        visit(stmt, True)
    return names


def attributes(stmts: Iterable[ast.AST]) -> dict[str, ast.Attribute]:
    """The attributes of named objects (`self.h`, `self.a.b`) that statements set, or whose list or dict they change."""
    targets: dict[str, ast.Attribute] = {}
    for stmt in stmts:
        for node in own_nodes(stmt):
            target: ast.AST | None = None
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
                target = node
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
                target = node.value
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CHANGING
            ):
                target = node.func.value
            if isinstance(target, ast.Attribute) and _dotted(target):
                targets.setdefault(ast.unparse(target), target)
    return targets


def _dotted(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def escaping(body: Sequence[ast.stmt]) -> Names:
    """The names that nested functions use; these are always live."""
    names: set[str] = set()
    for stmt in body:
        for node in ast.walk(stmt):
            if isinstance(node, _SCOPES):
                names.update(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                names.update(node.names)
    return frozenset(names)


def loads(node: ast.AST | None) -> Names:
    """The names that an expression or statement may read."""
    if node is None:
        return NO
    names = {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Store)
    }
    if isinstance(node, ast.AugAssign):
        names |= {inner.id for inner in ast.walk(node.target) if isinstance(inner, ast.Name)}
    return frozenset(names)


def live_before(stmts: Sequence[ast.stmt], live: Names) -> Names:
    """The names that are live before the statements, if `live` are live after them.

    Every `if` and loop gets an attribute `live`, the names that are live after it; loops get `carried` too, the names
    that are live at the beginning of an iteration.
    """
    for stmt in reversed(stmts):
        live = _before(stmt, live)
    return live


def _before(stmt: ast.stmt, live: Names) -> Names:
    if isinstance(stmt, ast.If):
        stmt.live = live  # type: ignore[attr-defined]
        return loads(stmt.test) | live_before(stmt.body, live) | live_before(stmt.orelse, live)
    if isinstance(stmt, (ast.While, ast.For)):
        stmt.live = live  # type: ignore[union-attr]
        test = loads(stmt.test) if isinstance(stmt, ast.While) else loads(getattr(stmt, "ends", None))
        target = NO if isinstance(stmt, ast.While) else frozenset(assigned([stmt.target]))
        carried = live | test
        while True:
            begin = (live_before(stmt.body, carried) - target) | (
                NO if isinstance(stmt, ast.While) else loads(stmt.target)
            )
            if begin <= carried:
                break
            carried |= begin
        stmt.carried = carried  # type: ignore[union-attr]
        first = NO if isinstance(stmt, ast.While) else loads(stmt.iter)
        return carried | first | live_before(stmt.orelse, live)
    if isinstance(stmt, (ast.Assign, ast.AnnAssign)):
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target] if stmt.value else []
        sure: Names = frozenset(name.id for target in targets for name in _plain(target))
        return (live - sure) | loads(stmt)
    if isinstance(stmt, (ast.With, ast.AsyncWith)):
        return live_before(stmt.body, live).union(*[loads(item) for item in stmt.items])
    if isinstance(stmt, ast.Try):
        inside = live_before(stmt.finalbody, live)
        after = live_before(stmt.orelse, inside)
        for handler in stmt.handlers:
            after |= live_before(handler.body, inside) | loads(handler.type)
        everywhere = after | inside  # an exception may be raised anywhere
        return live_before(stmt.body, everywhere) | everywhere
    if isinstance(stmt, ast.Match):
        before = live | loads(stmt.subject)
        for case in stmt.cases:
            before |= live_before(case.body, live) | loads(case.guard) | loads(case.pattern)
        return before
    return live | loads(stmt)


def _plain(target: ast.expr) -> list[ast.Name]:
    """The names that an assignment to a target binds for sure."""
    if isinstance(target, ast.Name):
        return [target]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for item in target.elts for name in _plain(item)]
    return _plain(target.value) if isinstance(target, ast.Starred) else []
