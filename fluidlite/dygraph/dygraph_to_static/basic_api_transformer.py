"""`fluid.dygraph.dygraph_to_static.basic_api_transformer`: what dygraph mode calls otherwise than programs."""

from __future__ import annotations

import ast

from ...base import missing, unique_name
from ...base.syntax import copied
from .static_analysis import AstNodeWrapper, TreeStep
from .utils import (
    dygraph_class_to_static_api,
    is_dygraph_api,
    is_to_variable,
    to_assign_node,
    to_static_ast,
    update_args_of_func,
)

__all__ = ["BasicApiTransformer"]


class BasicApiTransformer(TreeStep):
    """`to_variable` becomes `assign`, a call of a schedule of learning rates its layer, where statements call them.

    Statements that make schedules, or call `to_variable` for nothing, go. Follows
    `fluid.dygraph.dygraph_to_static.basic_api_transformer.BasicApiTransformer`; the tree is changed.
    """

    def __init__(self, wrapper_root: AstNodeWrapper) -> None:
        super().__init__(wrapper_root)
        self.class_node_dict: dict[str, ast.Call] = {}
        self.feed_name_to_arg_id: dict[str, str] = {}

    def transform(self) -> AstNodeWrapper:
        """The tree, changed."""
        self.visit(self.root)
        return self.wrapper_root

    def get_feed_name_to_arg_id(self) -> dict[str, str]:
        """A new name for each `to_variable(x)`, and the name of what it is given."""
        return self.feed_name_to_arg_id

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        if self._makes_schedule(node):
            return None
        self._calls(node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        calls = [inner for inner in ast.walk(node.value) if isinstance(inner, ast.Call)]
        if any(is_dygraph_api(call) or is_to_variable(call) for call in calls):
            return None
        self._calls(node.value)
        return node

    def _makes_schedule(self, node: ast.Assign) -> bool:
        made = node.value
        if not (isinstance(made, ast.Call) and is_dygraph_api(made)):
            return False
        if not isinstance(made.func, ast.Attribute):
            raise AttributeError(f"{ast.unparse(made)!r} does not call a class by its name")
        if made.func.attr not in dygraph_class_to_static_api:
            return False
        update_args_of_func(made, made, "__init__")
        self.class_node_dict[ast.unparse(node.targets[0])] = made
        return True

    def _calls(self, tree: ast.AST) -> None:
        for node in [inner for inner in ast.walk(tree) if isinstance(inner, ast.Call)]:
            if is_to_variable(node):
                given = [*node.args, *(word.value for word in node.keywords if word.arg == "value")]
                if given and isinstance(given[0], ast.Name):
                    name = given[0].id
                    self.feed_name_to_arg_id[unique_name.generate(name)] = name
                to_assign_node(node)
            elif ast.unparse(node.func) in self.class_node_dict:
                to_static_ast(node, copied(self.class_node_dict[ast.unparse(node.func)]))


__getattr__ = missing.reporter(__name__)
