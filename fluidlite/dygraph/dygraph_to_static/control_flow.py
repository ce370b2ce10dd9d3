"""Which conditions and loops of a syntax tree hang on tensors, as Fluid's steps of rewriting decide it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from ...base import missing
from .static_analysis import NodeVarType, StaticAnalysisVisitor
from .utils import compare_with_none, is_paddle_api

__all__ = ["IsControlFlowVisitor", "is_control_flow_to_transform", "is_numpy_call", "is_range"]

_STATEMENTS = (ast.If, ast.While, ast.For)


def is_control_flow_to_transform(
    node: ast.AST,
    static_analysis_visitor: StaticAnalysisVisitor | None = None,
    var_name_to_type: Mapping[str, set[int]] | None = None,
) -> bool:
    """Whether a condition, or an `if` or loop by its own condition, needs a tensor's value.

    What is a tensor, `static_analysis_visitor` says, or `var_name_to_type` by name; results of layers and what
    `.numpy()` is called on are in any case. A loop with a `break` or `continue` of its own counts, too. Follows
    `fluid.dygraph.dygraph_to_static.utils.is_control_flow_to_transform`. AssertionError for what is no tree.
    """
    if not isinstance(node, ast.AST):
        raise AssertionError(f"The type of input node must be gast.AST, but received {type(node)}.")
    return IsControlFlowVisitor(node, static_analysis_visitor, node_var_type_map=var_name_to_type).transform()


def is_range(node: ast.AST) -> bool:
    """Whether an expression is a call of `range`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def is_numpy_call(node: ast.AST) -> bool:
    """Whether an expression is `x.numpy()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"


class IsControlFlowVisitor(ast.NodeVisitor):
    """Looks for tensors in a condition, or in that of an `if` or loop (`utils.IsControlFlowVisitor` of Fluid)."""

    def __init__(
        self,
        ast_node: ast.AST,
        static_analysis_visitor: StaticAnalysisVisitor | None = None,
        node_var_type_map: Mapping[str, set[int]] | None = None,
    ) -> None:
        self.ast_root = ast_node
        if static_analysis_visitor is None:
            static_analysis_visitor = StaticAnalysisVisitor(ast_node)
        self.static_analysis_visitor = static_analysis_visitor
        self.node_to_wrapper_map = static_analysis_visitor.get_node_to_wrapper_map()
        self.node_var_type_map = node_var_type_map
        self.is_control_flow_num = 0
        self._compare_node_tenor_set: set[ast.AST] = set()

    def transform(self) -> bool:
        """The answer."""
        node = self.ast_root
        if isinstance(node, ast.If):
            self.visit(node.test)
        elif isinstance(node, (ast.While, ast.For)):
            if any(isinstance(inner, (ast.Break, ast.Continue)) for inner in _of_loop(node)):
                self.is_control_flow_num += isinstance(node, ast.While) or is_range(node.iter)
            if isinstance(node, ast.While):
                self.generic_visit(node.test)
            elif is_range(node.iter):
                self.generic_visit(node.iter)
        else:
            self.visit(node)
        return self.is_control_flow_num > 0

    def get_compare_nodes_with_tensor(self) -> set[ast.AST]:
        """The comparisons that tensors take part in, after `transform`."""
        return self._compare_node_tenor_set

    def visit_Compare(self, node: ast.Compare) -> None:
        if compare_with_none(node):
            return
        before = self.is_control_flow_num
        self.generic_visit(node)
        if self.is_control_flow_num > before:
            self._compare_node_tenor_set.add(node)

    def visit_Call(self, node: ast.Call) -> None:
        if is_paddle_api(node) or is_numpy_call(node):
            self.is_control_flow_num += 1

    def visit_Name(self, node: ast.Name) -> None:
        self.is_control_flow_num += self._is_node_with_tensor(node, node.id)

    def visit_Constant(self, node: ast.Constant) -> None:
        self.is_control_flow_num += self._is_node_with_tensor(node, node.value)

    def _is_node_with_tensor(self, node: ast.AST, name_id: Any) -> bool:
        wrapper = self.node_to_wrapper_map.get(node)
        if wrapper is not None and wrapper.node_var_type & NodeVarType.TENSOR_TYPES:
            return True
        known = self.node_var_type_map
        return bool(known and name_id in known and known[name_id] & NodeVarType.TENSOR_TYPES)


def _of_loop(loop: ast.While | ast.For) -> list[ast.AST]:
    """What a loop's statements are made of, without what belongs to loops and functions inside of it."""
    found: list[ast.AST] = []
    left: list[ast.AST] = [*loop.body]
    while left:
        node = left.pop()
        found.append(node)
        if not isinstance(node, (ast.While, ast.For, ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            left += ast.iter_child_nodes(node)
    return found


__getattr__ = missing.reporter(__name__)
