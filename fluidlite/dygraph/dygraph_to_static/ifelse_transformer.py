"""`fluid.dygraph.dygraph_to_static.ifelse_transformer`: branches on tensors as `fluid.layers.cond`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...base import missing, unique_name
from .control_flow import IsControlFlowVisitor, is_numpy_call
from .static_analysis import AstNodeWrapper, NodeVarType, StaticAnalysisVisitor, TreeStep
from .utils import create_assign_node, create_funcDef_node, generate_name_node, is_candidate_node

__all__ = [
    "FALSE_FUNC_PREFIX",
    "LOGIC_AND_PREFIX",
    "LOGIC_NOT_PREFIX",
    "LOGIC_OR_PREFIX",
    "PLAIN_TENSOR_PREFIX",
    "TRUE_FUNC_PREFIX",
    "IfConditionVisitor",
    "IfElseTransformer",
    "IsControlFlowVisitor",
    "NameVisitor",
    "NodeTestTransformer",
    "create_cond_node",
    "get_name_ids",
    "parse_cond_args",
    "parse_cond_return",
    "transform_if_else",
]

TRUE_FUNC_PREFIX, FALSE_FUNC_PREFIX = "true_fn", "false_fn"
LOGIC_AND_PREFIX, LOGIC_OR_PREFIX, LOGIC_NOT_PREFIX = "logic_and", "logic_or", "logic_not"
PLAIN_TENSOR_PREFIX = "bool_tensor"

Contexts = dict[str, list[ast.AST]]


class NameVisitor(ast.NodeVisitor):
    """The names that statements read and bind, in the order of the text (`ifelse_transformer.NameVisitor`).

    `name_ids` has for each name what is done to it: nodes `ast.Load`, `ast.Store` and, for parameters, `ast.Param`.
    With `end_node` what comes before it counts, and of an `if` that ended before it what both branches bind. Called
    functions, the functions that `IfElseTransformer` makes and what `return` gives do not count.
    """

    def __init__(self, end_node: ast.AST | None = None) -> None:
        self.end_node = end_node
        self.name_ids: Contexts = {}
        self._is_finished = False

    def visit(self, node: ast.AST) -> None:
        """Take the names of a tree, up to the end."""
        if node is self.end_node:
            self._is_finished = True
        if not self._is_finished:
            super().visit(node)

    def visit_If(self, node: ast.If) -> None:
        if self.end_node is None:
            self.generic_visit(node)
            return
        for branch in (node.body, node.orelse):
            if any(inner is self.end_node for stmt in branch for inner in ast.walk(stmt)):
                for stmt in branch:
                    self.visit(stmt)
                return
        then, otherwise = (get_name_ids(branch) for branch in (node.body, node.orelse))
        for name in _stored(then):
            if name in _stored(otherwise):
                self.name_ids.setdefault(name, [ast.Store()])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        self._add(node.id, node.ctx)

    def visit_arg(self, node: ast.arg) -> None:
        self._add(node.arg, ast.Param())

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if not node.name.startswith((TRUE_FUNC_PREFIX, FALSE_FUNC_PREFIX)):
            self.visit(node.args)
            for stmt in node.body:
                self.visit(stmt)

    def visit_Return(self, node: ast.Return) -> None:
        """What is returned does not count."""

    def visit_Call(self, node: ast.Call) -> None:
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            self.visit(node.func)
        elif isinstance(node.func, ast.Attribute) and _called(node.func):
            self.visit(node.func.value)
        for arg in (*node.args, *node.keywords):
            self.visit(arg)

    def _add(self, name: str, context: ast.AST) -> None:
        self.name_ids.setdefault(name, []).append(context)


def _called(node: ast.expr) -> bool:
    """Whether what an attribute is of is something called, as in `f(x).g`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return not isinstance(node, ast.Name)


def _stored(names: Mapping[str, Sequence[ast.AST]]) -> list[str]:
    return [name for name, found in names.items() if any(isinstance(one, ast.Store) for one in found)]


def get_name_ids(nodes: Sequence[ast.AST], end_node: ast.AST | None = None) -> Contexts:
    """The names in `nodes`, before `end_node` if it is given, with what is done to them; see `NameVisitor`."""
    visitor = NameVisitor(end_node)
    for node in nodes:
        visitor.visit(node)
    return visitor.name_ids


def parse_cond_args(
    var_ids_dict: Mapping[str, Sequence[ast.AST]],
    return_ids: Iterable[str] | None = None,
    ctx: type[ast.expr_context] = ast.Load,
) -> ast.arguments:
    """The parameters of a branch's function: what is read before it is bound, and `return_ids`, sorted.

    They are `ast.Name`s with the context `ctx`, as in Fluid.
    """
    names = {name for name, found in var_ids_dict.items() if isinstance(found[0], ast.Load)}
    made: Any = [ast.Name(id=name, ctx=ctx()) for name in sorted(names | set(return_ids or ()))]
    return ast.arguments(
        posonlyargs=[], args=made, vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]
    )


def parse_cond_return(
    parent_vars_dict: Mapping[str, Sequence[ast.AST]],
    if_vars_dict: Mapping[str, Sequence[ast.AST]],
    else_vars_dict: Mapping[str, Sequence[ast.AST]],
) -> tuple[list[str], list[str]]:
    """What branches give, and which of it was there before, both sorted.

    They give what both bind, and what one of them binds that was there before.
    """
    then, otherwise = set(_stored(if_vars_dict)), set(_stored(else_vars_dict))
    changed = (then | otherwise) & set(parent_vars_dict)
    return sorted(changed | (then & otherwise)), sorted(changed)


def transform_if_else(node: ast.If, root: ast.AST) -> tuple[ast.FunctionDef, ast.FunctionDef, list[str]]:
    """The functions that stand for the branches of an `if` in the tree `root`, and the names that they give."""
    before = get_name_ids([root], node)
    then, otherwise = get_name_ids(node.body), get_name_ids(node.orelse)
    gives, changed = parse_cond_return(before, then, otherwise)
    made = []
    for names, stmts, prefix in (
        (then, node.body, TRUE_FUNC_PREFIX),
        (otherwise, node.orelse, FALSE_FUNC_PREFIX),
    ):
        args = parse_cond_args(names, changed)
        args.args = [ast.arg(arg=arg.id) for arg in args.args]  # type: ignore[attr-defined]
        made.append(create_funcDef_node(stmts, unique_name.generate(prefix), args, gives))
    return made[0], made[1], gives


def create_cond_node(
    return_name_ids: Sequence[str],
    pred: ast.expr,
    true_func: ast.FunctionDef | ast.expr,
    false_func: ast.FunctionDef | ast.expr,
    is_if_expr: bool = False,
) -> ast.stmt | ast.expr:
    """`names = fluid.layers.cond(pred, lambda: true_func(...), lambda: false_func(...))`.

    The functions are called with their own parameters' names; with `is_if_expr` they are the values themselves. Without
    names the call alone.
    """

    def delayed(part: Any) -> str:
        if is_if_expr:
            return f"lambda: {ast.unparse(part)}"
        names = [arg.arg for arg in part.args.args]
        return f"lambda: {part.name}({', '.join(names)})"

    call = ast.parse(f"fluid.layers.cond(0, {delayed(true_func)}, {delayed(false_func)})", mode="eval").body
    assert isinstance(call, ast.Call)
    call.args[0] = pred
    if not return_name_ids:
        return call
    return ast.Assign(targets=[generate_name_node(list(return_name_ids), ctx=ast.Store())], value=call)


class NodeTestTransformer(ast.NodeTransformer):
    """A condition as layers: `and`, `or` and `not` as logical ones, what is no tensor as a constant of the program.

    `compare_nodes_with_tensor` are the comparisons that tensors take part in, which stay, `node_to_wrapper_map` has the
    kinds of values. Follows `fluid.dygraph.dygraph_to_static.ifelse_transformer.NodeTestTransformer`.
    """

    def __init__(
        self,
        ast_node: ast.expr,
        compare_nodes_with_tensor: set[ast.AST] | None = None,
        node_to_wrapper_map: Mapping[ast.AST, AstNodeWrapper] | None = None,
    ) -> None:
        self.ast_root = ast_node
        self._compare_nodes_with_tensor = compare_nodes_with_tensor or set()
        self._node_to_wrapper_map = node_to_wrapper_map or {}
        self._new_assign_nodes: list[ast.stmt] = []

    def transform(self) -> ast.expr:
        """The condition, changed; what has to stand before it, `get_new_assign_nodes` gives."""
        alone = not is_candidate_node(self.ast_root) and not is_numpy_call(self.ast_root)
        made: ast.expr = self.visit(self.ast_root)
        return self._named(PLAIN_TENSOR_PREFIX, f"cast(x={_text(made)}, dtype='bool')") if alone else made

    def get_new_assign_nodes(self) -> list[ast.stmt]:
        return self._new_assign_nodes

    def set_compare_nodes_with_tensor(self, nodes_set: set[ast.AST]) -> set[ast.AST]:
        self._compare_nodes_with_tensor = set(nodes_set)
        return self._compare_nodes_with_tensor

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if is_numpy_call(node):
            assert isinstance(node.func, ast.Attribute)
            return node.func.value
        self.generic_visit(node)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return self._named(LOGIC_NOT_PREFIX, f"logical_not({_text(node.operand)})")

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        for k, value in enumerate(node.values):
            if not is_candidate_node(value) and not is_numpy_call(value):
                node.values[k] = self._as_bool(value)
        self.generic_visit(node)
        both = (
            ("logical_and", LOGIC_AND_PREFIX)
            if isinstance(node.op, ast.And)
            else ("logical_or", LOGIC_OR_PREFIX)
        )
        made = node.values[0]
        for value in node.values[1:]:
            made = self._named(both[1], f"{both[0]}(x={_text(made)}, y={_text(value)})")
        return made

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if node not in self._compare_nodes_with_tensor:
            return self._constant(node)
        self.generic_visit(node)
        return node

    def _as_bool(self, node: ast.expr) -> ast.expr:
        wrapper = self._node_to_wrapper_map.get(node)
        if wrapper is not None and wrapper.node_var_type & NodeVarType.TENSOR_TYPES:
            return self._named(PLAIN_TENSOR_PREFIX, f"cast(x={_text(node)}, dtype='bool')")
        return self._constant(node)

    def _constant(self, node: ast.expr) -> ast.expr:
        made = f"fill_constant(shape=[1], dtype='bool', value=bool({_text(node)}))"
        return self._named(PLAIN_TENSOR_PREFIX, made)

    def _named(self, prefix: str, layer: str) -> ast.Name:
        """What a layer gives, by a name that it is assigned to beforehand."""
        call = ast.parse(f"fluid.layers.{layer}", mode="eval").body
        stmt, name = create_assign_node(unique_name.generate(prefix), call)
        self._new_assign_nodes.append(stmt)
        return name


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


class IfConditionVisitor:
    """A condition: whether it hangs on tensors, and as layers (`ifelse_transformer.IfConditionVisitor`)."""

    def __init__(
        self,
        node: ast.expr,
        static_analysis_visitor: StaticAnalysisVisitor | None = None,
        node_var_type_map: Mapping[str, set[int]] | None = None,
    ) -> None:
        self.node = node
        self.visitor = IsControlFlowVisitor(node, static_analysis_visitor, node_var_type_map)
        self.transformer = NodeTestTransformer(node, node_to_wrapper_map=self.visitor.node_to_wrapper_map)
        self._of_tensors = False

    def is_control_flow(self) -> bool:
        """Whether tensors decide."""
        self._of_tensors = self.visitor.transform()
        self.transformer.set_compare_nodes_with_tensor(self.visitor.get_compare_nodes_with_tensor())
        return self._of_tensors

    def transform(self) -> tuple[ast.expr, list[ast.stmt]]:
        """The condition as layers, and what has to stand before it, once `is_control_flow` said yes."""
        if not self._of_tensors:
            return self.node, []
        return self.transformer.transform(), self.transformer.get_new_assign_nodes()


class IfElseTransformer(TreeStep):
    """An `if` on tensors becomes two functions and `fluid.layers.cond` of them, `x.numpy()` becomes `x`.

    Follows `fluid.dygraph.dygraph_to_static.ifelse_transformer.IfElseTransformer`; the tree is changed.
    """

    def __init__(self, wrapper_root: AstNodeWrapper) -> None:
        super().__init__(wrapper_root)
        self.static_analysis_visitor = StaticAnalysisVisitor(self.root)
        self._before: list[ast.stmt] = []

    def transform(self) -> None:
        self.visit(self.root)
        ast.fix_missing_locations(self.root)

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.stmt) or isinstance(node, ast.If):
            return super().visit(node)
        around, self._before = self._before, []
        made = super().visit(node)
        before, self._before = self._before, around
        return [*before, made] if before else made

    def visit_If(self, node: ast.If) -> Any:
        condition = IfConditionVisitor(node.test, self.static_analysis_visitor)
        of_tensors = condition.is_control_flow()
        around, self._before = self._before, []
        self.generic_visit(node)
        before, self._before = self._before, around
        if not of_tensors:
            return [*before, node] if before else node
        then, otherwise, gives = transform_if_else(node, self.root)
        test, made = condition.transform()
        call = create_cond_node(gives, test, then, otherwise)
        last = call if isinstance(call, ast.stmt) else ast.Expr(value=call)
        return [then, otherwise, *before, *made, last]

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        condition = IfConditionVisitor(node.test, self.static_analysis_visitor)
        of_tensors = condition.is_control_flow()
        self.generic_visit(node)
        if not of_tensors:
            return node
        test, before = condition.transform()
        self._before += before
        made = create_cond_node([], test, node.body, node.orelse, is_if_expr=True)
        assert isinstance(made, ast.expr)
        return made

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if is_numpy_call(node):
            assert isinstance(node.func, ast.Attribute)
            return node.func.value
        return node


__getattr__ = missing.reporter(__name__)
