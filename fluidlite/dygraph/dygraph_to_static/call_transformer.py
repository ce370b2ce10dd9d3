"""`fluid.dygraph.dygraph_to_static.call_transformer`: calls of functions that may have to be rewritten, too."""

from __future__ import annotations

import ast
import builtins

from ...base import missing
from .static_analysis import TreeStep
from .utils import is_paddle_api

__all__ = ["CallTransformer"]


class CallTransformer(TreeStep):
    """`f(x)` becomes `convert_call(f)(x)`, but for builtins, layers and lambdas.

    Follows `fluid.dygraph.dygraph_to_static.call_transformer.CallTransformer`; the tree is changed.
    """

    def transform(self) -> None:
        self.visit(self.root)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if is_paddle_api(node) and not _converts(node.func):
            return node
        if isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id):
            return node
        if isinstance(node.func, ast.Lambda):
            return node
        text = "fluid.dygraph.dygraph_to_static.convert_call"
        convert = ast.parse(text, mode="eval").body
        node.func = ast.copy_location(ast.Call(func=convert, args=[node.func], keywords=[]), node.func)
        return node


def _converts(func: ast.expr) -> bool:
    """Whether something called is itself `convert_call(...)`."""
    return isinstance(func, ast.Call)


__getattr__ = missing.reporter(__name__)
