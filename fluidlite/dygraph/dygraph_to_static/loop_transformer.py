"""`fluid.dygraph.dygraph_to_static.loop_transformer`: loops on tensors as `fluid.layers.while_loop`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ...base import missing, unique_name
from .break_continue_transformer import counted
from .control_flow import is_control_flow_to_transform
from .static_analysis import AstNodeWrapper, NodeVarType, StaticAnalysisVisitor, TreeStep
from .utils import RenameTransformer

__all__ = [
    "FOR_BODY_PREFIX",
    "FOR_CONDITION_PREFIX",
    "GENERATE_VARIABLE_PREFIX",
    "WHILE_BODY_PREFIX",
    "WHILE_CONDITION_PREFIX",
    "LogicalOpTransformer",
    "LoopTransformer",
    "NameVisitor",
    "create_while_node",
]

WHILE_CONDITION_PREFIX, WHILE_BODY_PREFIX = "while_condition", "while_body"
FOR_CONDITION_PREFIX, FOR_BODY_PREFIX = "for_loop_condition", "for_loop_body"
GENERATE_VARIABLE_PREFIX = "generate_variable"

_HERE = "fluid.dygraph.dygraph_to_static.variable_trans_func"
_BASIC = {
    NodeVarType.BOOLEAN,
    NodeVarType.INT,
    NodeVarType.FLOAT,
    NodeVarType.STRING,
    NodeVarType.NONE,
}


def create_while_node(condition_name: str, body_name: str, loop_var_names: Sequence[str]) -> ast.stmt:
    """`names, = fluid.layers.while_loop(condition_name, body_name, [names])`."""
    names = list(loop_var_names)
    targets = f"({', '.join(names)},)" if names else "()"
    return ast.parse(
        f"{targets} = fluid.layers.while_loop({condition_name}, {body_name}, [{', '.join(names)}])"
    ).body[0]


class LogicalOpTransformer(ast.NodeTransformer):
    """`and`, `or` and `not` of an expression as logical layers (`loop_transformer.LogicalOpTransformer` of Fluid)."""

    def __init__(self, node: ast.expr) -> None:
        self.root = node

    def transform(self) -> ast.expr:
        """The expression, changed."""
        made: ast.expr = self.visit(self.root)
        return ast.fix_missing_locations(made)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _layer("logical_not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        made = node.values[0]
        for value in node.values[1:]:
            made = _layer("logical_and" if isinstance(node.op, ast.And) else "logical_or", x=made, y=value)
        return made


def _layer(name: str, *args: ast.expr, **named: ast.expr) -> ast.Call:
    words = [ast.keyword(arg=word, value=value) for word, value in named.items()]
    func = ast.parse(f"fluid.layers.{name}", mode="eval").body
    return ast.Call(func=func, args=list(args), keywords=words)


class NameVisitor(ast.NodeVisitor):
    """Which variables loops carry (`loop_transformer.NameVisitor` of Fluid); `root_node` is looked through at once."""

    def __init__(self, root_node: ast.AST) -> None:
        self.static_analysis_visitor = StaticAnalysisVisitor(root_node)
        self.node_to_wrapper_map = self.static_analysis_visitor.get_node_to_wrapper_map()
        self._seen: list[ast.expr | ast.arg] = []
        self._functions: set[str] = set()
        self._loops: dict[ast.AST, tuple[int, int, int]] = {}
        self.visit(root_node)

    def is_control_flow_loop(self, node: ast.While | ast.For) -> bool:
        """Whether tensors decide how often a loop turns."""
        return is_control_flow_to_transform(node, self.static_analysis_visitor)

    def get_loop_var_names(self, node: ast.While | ast.For) -> tuple[set[str], set[str]]:
        """The variables that a loop of the tree carries, and those of them that it is the first to bind.

        It carries what its condition reads, what was there before, but for numbers and text that it only reads, and
        what it binds and is read after it.
        """
        begin, body, end = self._loops[node]
        before = {_name(one) for one in self._seen[:begin]}
        condition = {_name(one) for one in self._seen[begin:body]} - self._functions
        after = {_name(one) for one in self._seen[end:] if _reads(one)}
        inside: dict[str, list[Any]] = {}
        for one in self._seen[begin:end]:
            inside.setdefault(_name(one), []).append(one)
        carried, created = set(), set()
        for name, uses in inside.items():
            bound = any(not _reads(one) for one in uses)
            if "." in name and name.partition(".")[0] not in before:
                continue
            if name in condition or (name in before and not (not bound and self._basic(uses))):
                carried.add(name)
            elif name not in before and bound and name in after and "." not in name:
                carried.add(name)
                created.add(name)
        return carried, created

    def _basic(self, uses: Sequence[ast.AST]) -> bool:
        kinds = [
            self.node_to_wrapper_map[one].node_var_type for one in uses if one in self.node_to_wrapper_map
        ]
        return bool(kinds) and all(found & _BASIC for found in kinds)

    def visit_Name(self, node: ast.Name) -> None:
        self._seen.append(node)

    def visit_arg(self, node: ast.arg) -> None:
        self._seen.append(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            inner = inner.value
        if isinstance(inner, ast.Name):
            self._seen.append(node)
        else:
            self.visit(inner)

    def visit_Call(self, node: ast.Call) -> None:
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            self.visit(node.func)
        elif isinstance(node.func, ast.Attribute) and not isinstance(_root(node.func), ast.Name):
            self.visit(_root(node.func))
        for arg in (*node.args, *node.keywords):
            self.visit(arg)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._functions.add(node.name)
        self.visit(node.args)
        for stmt in node.body:
            self.visit(stmt)

    def visit_While(self, node: ast.While) -> None:
        begin = len(self._seen)
        self.visit(node.test)
        self._body(node, begin)

    def visit_For(self, node: ast.For) -> None:
        begin = len(self._seen)
        self.visit(node.target)
        self.visit(node.iter)
        self._body(node, begin)

    def _body(self, node: ast.While | ast.For, begin: int) -> None:
        body = len(self._seen)
        for stmt in node.body:
            self.visit(stmt)
        self._loops[node] = begin, body, len(self._seen)
        for stmt in node.orelse:
            self.visit(stmt)


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _name(node: ast.expr | ast.arg) -> str:
    return node.arg if isinstance(node, ast.arg) else ast.unparse(node)


def _reads(node: ast.expr | ast.arg) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


class LoopTransformer(TreeStep):
    """A loop that tensors end becomes two functions and `fluid.layers.while_loop` of them.

    Variables that the loop is the first to bind are made before it, numbers that it changes become tensors; functions
    take them in the order of the alphabet. Follows
    `fluid.dygraph.dygraph_to_static.loop_transformer.LoopTransformer`; the tree is changed.
    """

    def __init__(self, wrapper_root: AstNodeWrapper) -> None:
        super().__init__(wrapper_root)
        self.name_visitor = NameVisitor(self.root)

    def transform(self) -> None:
        self.visit(self.root)
        ast.fix_missing_locations(self.root)

    def visit_While(self, node: ast.While) -> Any:
        return self.get_while_stmt_nodes(node)

    def visit_For(self, node: ast.For) -> Any:
        return self.get_for_stmt_nodes(node)

    def get_for_stmt_nodes(self, node: ast.For) -> list[ast.stmt]:
        """The statements that stand for a loop; itself alone where no tensor decides."""
        found = counted(node) if self.name_visitor.is_control_flow_loop(node) else None
        names = self.name_visitor.get_loop_var_names(node)
        self.generic_visit(node)
        if found is None:
            return [node]
        first, condition, step = found
        names = names[0], names[1] - {ast.unparse(node.target)}
        node.body.append(step)
        return self._functions(node, names, [first], condition, (FOR_CONDITION_PREFIX, FOR_BODY_PREFIX))

    def get_while_stmt_nodes(self, node: ast.While) -> list[ast.stmt]:
        """The statements that stand for a loop; itself alone where no tensor decides."""
        of_tensors = self.name_visitor.is_control_flow_loop(node)
        names = self.name_visitor.get_loop_var_names(node)
        self.generic_visit(node)
        if not of_tensors:
            return [node]
        test = LogicalOpTransformer(node.test).transform()
        return self._functions(node, names, [], test, (WHILE_CONDITION_PREFIX, WHILE_BODY_PREFIX))

    def _functions(
        self,
        node: ast.While | ast.For,
        names: tuple[set[str], set[str]],
        head: list[ast.stmt],
        condition: ast.expr,
        prefixes: tuple[str, str],
    ) -> list[ast.stmt]:
        carried = sorted(names[0])
        made = [
            ast.parse(
                f"{name} = {_HERE}.data_layer_not_check(name={name!r}, shape=[-1], dtype='float32')"
            ).body[0]
            for name in sorted(names[1])
        ]
        made += head
        made += [ast.parse(f"{name} = {_HERE}.to_static_variable({name})").body[0] for name in carried]
        test = self._function(prefixes[0], carried, [ast.Return(value=condition)])
        body = self._function(prefixes[1], carried, node.body)
        return [*made, test, body, create_while_node(test.name, body.name, carried), *node.orelse]

    def _function(self, prefix: str, names: Sequence[str], body: Sequence[ast.stmt]) -> ast.FunctionDef:
        """A function of variables, attributes among them by other names, which gives them unless it says what."""
        given = [unique_name.generate(GENERATE_VARIABLE_PREFIX) if "." in name else name for name in names]
        made = ast.parse(f"def {unique_name.generate(prefix)}({', '.join(given)}): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.body = list(body)
        for name, other in zip(names, given, strict=True):
            if other != name:
                RenameTransformer(made).rename(name, other)
        if not isinstance(made.body[-1], ast.Return):
            made.body += ast.parse(f"return {', '.join(given)}").body if given else [ast.Return(value=None)]
        return made


__getattr__ = missing.reporter(__name__)
