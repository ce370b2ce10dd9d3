"""`fluid.dygraph.dygraph_to_static.tensor_shape_transformer`: sizes of tensors that programs have to find out."""

from __future__ import annotations

import ast
from typing import Any

from ...base import missing
from ...base.syntax import copied
from .control_flow import is_range
from .static_analysis import AstNodeWrapper, NodeVarType, StaticAnalysisVisitor, TreeStep
from .utils import create_api_shape_node, is_paddle_api

__all__ = ["TensorShapeTransformer"]


class TensorShapeTransformer(TreeStep):
    """`x.shape` of a tensor becomes `fluid.layers.shape(x)` among arguments of layers and in conditions.

    So do names that such a shape, or a part of it, was given before. Follows
    `fluid.dygraph.dygraph_to_static.tensor_shape_transformer.TensorShapeTransformer`; the tree is changed.
    """

    def __init__(self, wrapper_root: AstNodeWrapper) -> None:
        super().__init__(wrapper_root)
        self.name_to_tensor_shape: dict[str, ast.expr] = {}
        self.static_analysis_visitor = StaticAnalysisVisitor(self.root)
        self.node_to_wrapper_map = self.static_analysis_visitor.get_node_to_wrapper_map()
        self._rewrites = ""

    def transform(self) -> None:
        self.visit(self.root)

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            value = node.value
            if isinstance(value, ast.Name) and value.id in self.name_to_tensor_shape:
                self.name_to_tensor_shape[target.id] = self.name_to_tensor_shape[value.id]
                return node
            if self.is_tensor_shape(value):
                self.name_to_tensor_shape[target.id] = copied(value)
                return node
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return create_api_shape_node(node) if self._rewrites and self.is_tensor_shape(node) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        shape = self.name_to_tensor_shape.get(node.id)
        if shape is None or not self._rewrites or not isinstance(node.ctx, ast.Load):
            return node
        return create_api_shape_node(copied(shape))

    def visit_Call(self, node: ast.Call) -> ast.Call:
        if not isinstance(node.func, (ast.Name, ast.Attribute)) or not is_paddle_api(node):
            around = self._rewrites
            if around == "argument":  # of the layer, not of this call
                self._rewrites = ""
            self.generic_visit(node)
            self._rewrites = around
            return node
        node.args = [self._rewritten(arg, "argument") for arg in node.args]
        for word in node.keywords:
            word.value = self._rewritten(word.value, "argument")
        return node

    def visit_If(self, node: ast.If) -> ast.If:
        node.test = self._rewritten(node.test)
        return self._statements(node)

    def visit_While(self, node: ast.While) -> ast.While:
        node.test = self._rewritten(node.test)
        return self._statements(node)

    def visit_For(self, node: ast.For) -> ast.For:
        if is_range(node.iter):
            assert isinstance(node.iter, ast.Call)
            node.iter.args = [self._rewritten(arg) for arg in node.iter.args]
        else:
            node.iter = self.visit(node.iter)
        return self._statements(node)

    def _statements(self, node: Any) -> Any:
        node.body = [self.visit(stmt) for stmt in node.body]
        node.orelse = [self.visit(stmt) for stmt in node.orelse]
        return node

    def _rewritten(self, node: ast.expr, what: str = "condition") -> ast.expr:
        around, self._rewrites = self._rewrites, what
        made: ast.expr = self.visit(node)
        self._rewrites = around
        return made

    def is_tensor_shape(self, node: ast.AST) -> bool:
        """Whether an expression is the shape of a tensor that has a name, or one size of it."""
        if isinstance(node, ast.Subscript):
            node = node.value
        if not (isinstance(node, ast.Attribute) and node.attr == "shape"):
            return False
        wrapper = self.node_to_wrapper_map.get(node.value)
        return (
            isinstance(node.value, ast.Name)
            and wrapper is not None
            and bool(wrapper.node_var_type & NodeVarType.TENSOR_TYPES)
        )


__getattr__ = missing.reporter(__name__)
