"""Rewrites a function so that helpers decide at run time whether a condition is Python's or a tensor's.

    if a > 0:                   def then(): nonlocal y; y = x + 1
        y = x + 1       ->      def orelse(): nonlocal y; y = x - 1
    else:                       _d2s_.if_(a > 0, then, orelse, ...)
        y = x - 1

Variables stay variables of the function: the helpers find them in the cells of the functions that share them. All
code keeps the lines that it has in the user's file.
"""

from __future__ import annotations

import ast
from typing import Any

from . import liveness
from .exits import Exits, own_nodes

HELPERS = "_d2s_"
PREFIX = "_d2s_part_"
_COMPARED = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


class Refusal(Exception):
    """The function cannot be rewritten; it runs unchanged."""


def function(node: ast.FunctionDef) -> ast.FunctionDef:
    """Rewrite a function in place. Raises Refusal for generators and coroutines."""
    inside = [inner for stmt in node.body for inner in own_nodes(stmt)]
    if any(
        isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith))
        for inner in inside
    ):
        raise Refusal("it is a generator or a coroutine")
    node.decorator_list = []
    return _Function(node).made


def expression(node: ast.Lambda) -> ast.Lambda:
    """A rewritten lambda."""
    node.body = Expressions(None).visit(node.body)
    return node


class _Function:
    def __init__(self, node: ast.FunctionDef) -> None:
        args = node.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        parameters = {arg.arg for arg in (*every, args.vararg, args.kwarg) if arg is not None}
        first = every[0].arg if every and (args.posonlyargs or args.args) else None
        own = [inner for stmt in node.body for inner in own_nodes(stmt)]
        self._global = {name for inner in own if isinstance(inner, ast.Global) for name in inner.names}
        nonlocals = {name for inner in own if isinstance(inner, ast.Nonlocal) for name in inner.names}
        body = Exits().function(node.body)
        self._parts = 0
        self._expressions = Expressions(first)
        always = liveness.escaping(body) | self._global | nonlocals
        liveness.live_before(body, always)
        self._always = always
        statements = self._block(body)
        local = [
            name for name in liveness.assigned(body) if name not in parameters | self._global | nonlocals
        ]
        head: list[ast.stmt] = []
        if self._global:
            head.append(ast.Global(sorted(self._global)))
        if nonlocals:
            head.append(ast.Nonlocal(sorted(nonlocals)))
        if local:  # makes the compiler treat them as variables of this function
            unset = ast.Assign([ast.Name(name, ast.Store()) for name in local], ast.Constant(None))
            head.append(ast.If(ast.Constant(False), [unset], []))
        for stmt in head:
            for inner in ast.walk(stmt):
                ast.copy_location(inner, body[0])
        document = (
            statements[:1]
            if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            else []
        )
        node.body = [*document, *head, *statements[len(document) :]]
        self.made = node

    def _block(self, stmts: list[ast.stmt]) -> list[ast.stmt]:
        return [new for stmt in stmts for new in self._statement(stmt)]

    def _statement(self, stmt: ast.stmt) -> list[ast.stmt]:
        if isinstance(stmt, ast.If):
            return self._if(stmt)
        if isinstance(stmt, ast.While):
            return [*self._while(stmt), *self._block(stmt.orelse)]
        if isinstance(stmt, ast.For):
            return [*self._for(stmt), *self._block(stmt.orelse)]
        if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [stmt]
        if isinstance(stmt, (ast.Global, ast.Nonlocal)):
            return [ast.copy_location(ast.Pass(), stmt)]
        if isinstance(stmt, ast.Assert):
            message = stmt.msg or ast.copy_location(ast.Constant(None), stmt)
            call = self._call(stmt, "assert_", self._visit(stmt.test), _delayed(self._visit(message)))
            return [_expression(stmt, call)]
        if isinstance(stmt, ast.Raise) and stmt.exc is not None:
            stmt.exc = self._call(stmt, "raised", _delayed(self._visit(stmt.exc)))
            return [stmt]
        for part in ("body", "orelse", "finalbody"):
            items = getattr(stmt, part, None)
            if isinstance(items, list):
                setattr(stmt, part, self._block(items))
        for each in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
            each.body = self._block(each.body)
        for field, value in ast.iter_fields(stmt):
            if isinstance(value, ast.expr):
                setattr(stmt, field, self._visit(value))
            elif field in ("targets", "items") and isinstance(value, list):
                setattr(stmt, field, [self._visit(item) for item in value])
        return [stmt]

    def _visit(self, node: Any) -> Any:
        return self._expressions.visit(node)

    def _if(self, stmt: ast.If) -> list[ast.stmt]:
        body, orelse = self._block(stmt.body), self._block(stmt.orelse)
        binds = liveness.assigned([*stmt.body, *stmt.orelse])
        changed = liveness.attributes([*stmt.body, *stmt.orelse])
        if _plain_test(stmt.test):
            plain = ast.If(self._visit(stmt.test), body, orelse)
            return [ast.copy_location(plain, stmt)]
        then, one = self._part(stmt, body, binds)
        other, two = self._part(stmt, orelse or [ast.copy_location(ast.Pass(), stmt)], binds)
        call = self._call(
            stmt.test,
            "if_",
            self._visit(stmt.test),
            one,
            two,
            *self._described(stmt, binds, changed, self._live(stmt)),
        )
        return [then, other, _expression(stmt, call)]

    def _while(self, stmt: ast.While) -> list[ast.stmt]:
        binds = liveness.assigned([stmt.test, *stmt.body])
        changed = liveness.attributes(stmt.body)
        test, one = self._part(stmt, [ast.copy_location(ast.Return(self._visit(stmt.test)), stmt)], binds)
        body, two = self._part(stmt, self._block(stmt.body), binds)
        described = self._described(stmt, binds, changed, self._live(stmt), self._live(stmt, "carried"))
        return [test, body, _expression(stmt, self._call(stmt.test, "while_", one, two, *described))]

    def _for(self, stmt: ast.For) -> list[ast.stmt]:
        binds = liveness.assigned([stmt.target, *stmt.body])
        changed = liveness.attributes([stmt.target, *stmt.body])
        item = f"{PREFIX}item"
        value = ast.copy_location(ast.Name(item, ast.Load()), stmt.target)
        target, one = self._part(
            stmt.target, [ast.copy_location(ast.Assign([stmt.target], value), stmt.target)], binds, item
        )
        body, two = self._part(stmt, self._block(stmt.body), binds)
        ends: ast.expr = ast.copy_location(ast.Constant(None), stmt)
        out = [target, body]
        if hasattr(stmt, "ends"):
            part, ends = self._part(stmt, [ast.copy_location(ast.Return(self._visit(stmt.ends)), stmt)], {})
            out.append(part)
        described = self._described(stmt, binds, changed, self._live(stmt), self._live(stmt, "carried"))
        call = self._call(stmt.iter, "for_", self._visit(stmt.iter), one, two, ends, *described)
        return [*out, _expression(stmt, call)]

    def _live(self, stmt: ast.stmt, what: str = "live") -> liveness.Names:
        return getattr(stmt, what, liveness.NO) | self._always  # type: ignore[no-any-return]

    def _part(
        self, where: ast.AST, body: list[ast.stmt], binds: dict[str, None], argument: str | None = None
    ) -> tuple[ast.stmt, ast.expr]:
        """A nested function with the statements `body`, which shares the variables `binds`, and its name."""
        self._parts += 1
        name = f"{PREFIX}{self._parts}"
        head: list[ast.stmt] = []
        shared = sorted(set(binds) - self._global)
        everywhere = sorted(set(binds) & self._global)
        if everywhere:
            head.append(ast.Global(everywhere))
        if shared:
            head.append(ast.Nonlocal(shared))
        args = ast.arguments([], [ast.arg(argument)] if argument else [], None, [], [], None, [])
        function = ast.FunctionDef(name, args, [*head, *body], [])
        for node in (function, args, *args.args, *head):
            ast.copy_location(node, where)
        return function, ast.copy_location(ast.Name(name, ast.Load()), where)

    def _described(
        self, stmt: ast.stmt, binds: dict[str, None], changed: dict[str, ast.Attribute], *live: liveness.Names
    ) -> list[ast.expr]:
        """The arguments of helpers: names bound, the live ones of them, and (label, object, attribute) of changes."""
        args: list[ast.expr] = [_constant(stmt, tuple(binds))]
        args += [_constant(stmt, tuple([name for name in binds if name in these])) for these in live]
        pairs: list[ast.expr] = []
        for label, target in changed.items():
            owner = ast.parse(ast.unparse(target.value), mode="eval").body
            pairs.append(
                ast.Tuple([ast.Constant(label), _delayed(owner), ast.Constant(target.attr)], ast.Load())
            )
        objects = ast.Tuple(pairs, ast.Load())
        for node in ast.walk(objects):
            ast.copy_location(node, stmt)
        return [*args, objects]

    def _call(self, where: ast.AST, helper: str, *args: ast.expr) -> ast.expr:
        return helper_call(where, helper, *args)


class Expressions(ast.NodeTransformer):
    """Rewrites expressions; `first` is the function's first parameter, the implicit argument of `super()`."""

    def __init__(self, first: str | None) -> None:
        self._first = first

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node  # rewritten when it is called

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if _binds(node):
            return node
        helper = "and_" if isinstance(node.op, ast.And) else "or_"
        values = [self.visit(value) for value in node.values]
        return helper_call(node, helper, *[_delayed(value) for value in values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return helper_call(node, "not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1 or _binds(node):
            self.generic_visit(node)
            return node
        terms: list[ast.expr] = []
        for op, value in zip(node.ops, node.comparators, strict=True):
            terms += [_constant(node, _COMPARED[type(op)]), _delayed(self.visit(value))]
        return helper_call(node, "compare", self.visit(node.left), *terms)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        plain = _plain_test(node.test)
        binds = _binds(node)
        self.generic_visit(node)
        if plain or binds:
            return node
        return helper_call(node, "choose", node.test, _delayed(node.body), _delayed(node.orelse))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr == "shape" and isinstance(node.ctx, ast.Load):
            return helper_call(node, "shape", node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        named = isinstance(node.slice, (ast.Name, ast.Attribute, ast.BinOp, ast.Subscript, ast.Call))
        load = isinstance(node.ctx, ast.Load)
        return helper_call(node, "at", node.value, node.slice) if named and load else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        func = node.func
        if isinstance(func, ast.Name) and func.id == "super" and not node.args and not node.keywords:
            if self._first is None:
                return node
            args = [ast.Name("__class__", ast.Load()), ast.Name(self._first, ast.Load())]
            node.args = [ast.copy_location(arg, node) for arg in args]
            return node
        if isinstance(func, ast.Name) and func.id in (
            "super",
            "locals",
            "globals",
            "isinstance",
            "hasattr",
            "type",
            HELPERS,
        ):
            self.generic_visit(node)
            return node
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == HELPERS:
            return node
        self.generic_visit(node)
        if isinstance(func, ast.Attribute) and func.attr == "numpy" and not node.args and not node.keywords:
            return helper_call(node, "numpy", func.value)
        node.func = helper_call(func, "call", node.func)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = helper_call(node.iter, "rows", node.iter)
        node.ifs = [helper_call(test, "known", test) for test in node.ifs]
        return node


def helper_call(where: ast.AST, helper: str, *args: ast.expr) -> ast.Call:
    """`_d2s_.helper(*args)` with the source position of `where`."""
    name = ast.copy_location(ast.Name(HELPERS, ast.Load()), where)
    return ast.copy_location(
        ast.Call(ast.copy_location(ast.Attribute(name, helper, ast.Load()), where), list(args), []), where
    )


def _delayed(node: ast.expr) -> ast.expr:
    nothing = ast.copy_location(ast.arguments([], [], None, [], [], None, []), node)
    return ast.copy_location(ast.Lambda(nothing, node), node)


def _constant(where: ast.AST, value: Any) -> ast.expr:
    return ast.copy_location(ast.Constant(value), where)


def _expression(where: ast.AST, value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Expr(value), where)


def _binds(node: ast.AST) -> bool:
    """True if an expression binds names, awaits or yields, so that it cannot move into a lambda."""
    return any(
        isinstance(inner, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for inner in ast.walk(node)
    )


def _plain_test(test: ast.expr) -> bool:
    """True if a condition cannot be a tensor: `x is None`, `isinstance(x, list)`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _plain_test(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(_plain_test(value) for value in test.values)
    if isinstance(test, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
        return test.func.id in ("isinstance", "hasattr", "callable", "issubclass")
    return isinstance(test, ast.Constant)
