"""`return`, `break` and `continue` inside of conditions and loops, as flags and `else` branches.

What becomes an operator of control flow has one way in and one way out. So

    if a:            if a:                     while a:          left = False
        return x         result = x                if b:         while a and not left:
    y = f(x)         else:                             break         if b:
    return y             y = f(x)                  x = f(x)              left = True
                         result = y                                  else:
                     return result                                       x = f(x)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

RESULT = "_d2s_result"
RETURNED = "_d2s_returned"
Flags = frozenset[str]
NONE: Flags = frozenset()
Block = list[ast.stmt]


class Exits:
    """Rewrites the body of one function."""

    def __init__(self) -> None:
        self._loops = 0

    def function(self, body: Block) -> Block:
        """The body with a single `return` at its end, if its statements contain any."""
        if not any(_leaves(stmt) for stmt in body if not isinstance(stmt, ast.Return)):
            return body
        returns = any(isinstance(node, ast.Return) for stmt in body for node in own_nodes(stmt))
        rewritten, _ = self._block(body, None)
        if not returns:
            return rewritten
        end = _at(
            body[-1],
            ast.parse(
                f"return {RESULT}" if always(body) else f"return _d2s_.result({RETURNED}, lambda: {RESULT})"
            ).body,
        )
        return [*_flag(body[0], RETURNED, False), *rewritten, *end]

    def _block(self, stmts: Sequence[ast.stmt], loop: str | None) -> tuple[Block, Flags]:
        """The statements with exits replaced by flags, and the names of the flags that they may set."""
        out: Block = []
        exits = NONE
        for at, stmt in enumerate(stmts):
            rest = stmts[at + 1 :]
            if isinstance(stmt, ast.If):
                rewritten, flags, done = self._if(stmt, rest, loop)
                out += rewritten
                exits |= flags
                if done:
                    return out, exits
            else:
                rewritten, flags = self._one(stmt, loop)
                out += rewritten
                exits |= flags
                if isinstance(stmt, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
                    return out, exits
            if flags and rest:
                body, more = self._block(rest, loop)
                return [*out, _guarded(rest[0], flags, body)], exits | more
        return out, exits

    def _if(self, stmt: ast.If, rest: Sequence[ast.stmt], loop: str | None) -> tuple[Block, Flags, bool]:
        """An `if`, the flags it may set, and whether the rest of its block has moved into one of its branches."""
        if not _leaves(stmt):
            return [stmt], NONE, False
        body, orelse = list(stmt.body), list(stmt.orelse)
        done = always(body) or always(orelse)
        if done and not always(body):
            body += rest
        elif done and not always(orelse):
            orelse += rest
        yes, one = self._block(body, loop)
        no, other = self._block(orelse, loop)
        return [ast.copy_location(ast.If(stmt.test, yes or _pass(stmt), no), stmt)], one | other, done

    def _one(self, stmt: ast.stmt, loop: str | None) -> tuple[Block, Flags]:
        if isinstance(stmt, ast.Return):
            value = stmt.value or ast.copy_location(ast.Constant(None), stmt)
            kept = ast.copy_location(
                ast.Assign([ast.copy_location(ast.Name(RESULT, ast.Store()), stmt)], value), stmt
            )
            return [kept, *_flag(stmt, RETURNED, True)], Flags({RETURNED})
        if isinstance(stmt, (ast.Break, ast.Continue)) and loop is not None:
            name = f"_d2s_{type(stmt).__name__.lower()}_{loop}"
            return _flag(stmt, name, True), Flags({name})
        if not _leaves(stmt):
            return [stmt], NONE
        if isinstance(stmt, (ast.While, ast.For)):
            return self._loop(stmt)
        exits = NONE
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            items = getattr(stmt, part, None)
            if not items:
                continue
            if part in ("handlers", "cases"):
                for item in items:
                    item.body, flags = self._block(item.body, loop)
                    exits |= flags
                continue
            rewritten, flags = self._block(items, loop)
            if part == "orelse" and exits:  # of a try: nothing of it if its body has been left
                rewritten = [_guarded(items[0], exits, rewritten)]
            setattr(stmt, part, rewritten)
            exits |= flags
        return [stmt], exits

    def _loop(self, stmt: ast.While | ast.For) -> tuple[Block, Flags]:
        self._loops += 1
        number = str(self._loops)
        left, skipped = f"_d2s_break_{number}", f"_d2s_continue_{number}"
        body, exits = self._block(stmt.body, number)
        before: Block = []
        if left in exits:
            before += _flag(stmt, left, False)
        if skipped in exits:
            body = [*_flag(stmt, skipped, False), *body]
        ends = exits - {skipped}
        orelse, stmt.orelse = stmt.orelse, []
        stmt.body = body
        out: Block = [*before, stmt]
        if ends and isinstance(stmt, ast.While):
            test = _none_of(stmt, ends)
            test.values.append(stmt.test)
            stmt.test = test
        elif ends:
            stmt.ends = _none_of(stmt, ends)  # type: ignore[union-attr]
        exits = ends - {left}
        if orelse:
            rewritten, more = self._block(orelse, None)
            out += [_guarded(orelse[0], ends, rewritten)] if ends else rewritten
            exits |= more
        return out, exits


def own_nodes(node: ast.AST) -> list[ast.AST]:
    """A node and its descendants, except the bodies of functions and classes that are defined there."""
    nodes, todo = [], [node]
    while todo:
        node = todo.pop()
        nodes.append(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            todo += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        elif isinstance(node, ast.Lambda):
            todo += [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        elif isinstance(node, ast.ClassDef):
            todo += [*node.decorator_list, *node.bases]
        else:
            todo.extend(ast.iter_child_nodes(node))
    return nodes


def always(stmts: Sequence[ast.stmt]) -> bool:
    """True if control never falls through these statements to the next one of their block."""
    for stmt in stmts:
        if isinstance(stmt, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return True
        if isinstance(stmt, ast.If) and always(stmt.body) and always(stmt.orelse):
            return True
        if isinstance(stmt, ast.With) and always(stmt.body):
            return True
    return False


def _leaves(stmt: ast.stmt, in_loop: bool = False) -> bool:
    """True if a statement contains `return`, `break` or `continue` (also those of its own loops)."""
    if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    return any(isinstance(node, (ast.Return, ast.Break, ast.Continue)) for node in own_nodes(stmt))


def _at(where: ast.AST, stmts: Block) -> Block:
    for stmt in stmts:
        for node in ast.walk(stmt):
            ast.copy_location(node, where)
    return stmts


def _pass(where: ast.AST) -> Block:
    return _at(where, [ast.Pass()])


def _flag(where: ast.AST, name: str, value: bool) -> Block:
    return _at(where, ast.parse(f"{name} = {value}").body)


def _none_of(where: ast.AST, flags: Flags) -> ast.BoolOp:
    """`not a and not b`, as a BoolOp also where there is one flag."""
    terms: list[ast.expr] = [ast.UnaryOp(ast.Not(), ast.Name(name, ast.Load())) for name in sorted(flags)]
    test = ast.BoolOp(ast.And(), terms)
    for node in ast.walk(test):
        ast.copy_location(node, where)
    return test


def _guarded(where: ast.AST, flags: Flags, body: Block) -> ast.stmt:
    return ast.copy_location(ast.If(_none_of(where, flags), body or _pass(where), []), where)
