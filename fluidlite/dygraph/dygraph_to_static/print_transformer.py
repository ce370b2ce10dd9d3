"""`fluid.dygraph.dygraph_to_static.print_transformer`: `print` of tensors."""

from __future__ import annotations

import ast

from ...base import missing
from .static_analysis import AstNodeWrapper, NodeVarType, StaticAnalysisVisitor, TreeStep

__all__ = ["PrintTransformer"]


class PrintTransformer(TreeStep):
    """`print(x)` becomes `fluid.layers.Print(x)`; `x` has to be the name of a tensor.

    Follows `fluid.dygraph.dygraph_to_static.print_transformer.PrintTransformer`; the tree is changed. Raises
    AssertionError for several arguments or none, NotImplementedError for what is no name, TypeError for a name that is
    not known to be a tensor.
    """

    def __init__(self, wrapper_root: AstNodeWrapper) -> None:
        super().__init__(wrapper_root)
        self.static_analysis_visitor = StaticAnalysisVisitor(self.root)
        self.node_to_wrapper_map = self.static_analysis_visitor.get_node_to_wrapper_map()

    def transform(self) -> None:
        self.visit(self.root)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id == "print"):
            return node
        if len(node.args) != 1:
            raise AssertionError("Now only support print one Variable.")
        (shown,) = node.args
        if not isinstance(shown, ast.Name):
            raise NotImplementedError("cannot transform print with format temporarily.")
        if not self.node_to_wrapper_map[shown].node_var_type & NodeVarType.TENSOR_TYPES:
            raise TypeError("print object type error, only support print Variable now.")
        func = ast.parse("fluid.layers.Print", mode="eval").body
        return ast.copy_location(ast.Call(func=func, args=[shown], keywords=[]), node)


__getattr__ = missing.reporter(__name__)
