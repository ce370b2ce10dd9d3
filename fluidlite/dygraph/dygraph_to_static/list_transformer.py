"""`fluid.dygraph.dygraph_to_static.list_transformer`: lists that programs fill in branches and loops."""

from __future__ import annotations

import ast
from typing import Any

from ...base import missing
from .control_flow import is_control_flow_to_transform
from .static_analysis import AstNodeWrapper, NodeVarType, StaticAnalysisVisitor, TreeStep

__all__ = ["ListTransformer"]


class ListTransformer(TreeStep):
    """A list to which a branch or loop on tensors appends becomes an array of tensors, `append` `array_write`.

    So does then `a[i] = x` where `x` is a tensor. Follows
    `fluid.dygraph.dygraph_to_static.list_transformer.ListTransformer`; the tree is changed.
    """

    def __init__(self, wrapper_root: AstNodeWrapper) -> None:
        super().__init__(wrapper_root)
        self.list_name_to_updated: dict[str, bool] = {}
        self.static_analysis_visitor = StaticAnalysisVisitor(self.root)
        self.node_to_wrapper_map = self.static_analysis_visitor.get_node_to_wrapper_map()
        self._made: dict[str, list[ast.Assign]] = {}

    def transform(self) -> None:
        self.visit(self.root)
        for name, updated in self.list_name_to_updated.items():
            for made in self._made[name] if updated else ():
                made.value = ast.parse("fluid.layers.create_array(dtype='float32')", mode="eval").body

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            if isinstance(node.value, ast.List):
                self.list_name_to_updated[target.id] = False
                self._made.setdefault(target.id, []).append(node)
            else:
                self.list_name_to_updated.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            return self._written(node, target)
        return node

    def visit_If(self, node: ast.If) -> ast.If:
        return self._statements(node)

    def visit_While(self, node: ast.While) -> ast.While:
        return self._statements(node)

    def visit_For(self, node: ast.For) -> ast.For:
        return self._statements(node)

    def _statements(self, node: Any) -> Any:
        self.generic_visit(node)
        if is_control_flow_to_transform(node, self.static_analysis_visitor):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call):
                    self._append(inner)
        return node

    def _append(self, node: ast.Expr) -> None:
        call = node.value
        assert isinstance(call, ast.Call)
        func = call.func
        if not (
            isinstance(func, ast.Attribute) and func.attr == "append" and isinstance(func.value, ast.Name)
        ):
            return
        name = func.value.id
        if name in self.list_name_to_updated:
            self.list_name_to_updated[name] = True
            length = f"fluid.layers.array_length({name})"
            made = ast.parse(f"fluid.layers.array_write(x=0, i={length}, array={name})", mode="eval").body
            assert isinstance(made, ast.Call)
            made.keywords[0].value = call.args[0]
            node.value = made

    def _written(self, node: ast.Assign, target: ast.Subscript) -> ast.Assign:
        owner, index = target.value, target.slice
        tensor = self.node_to_wrapper_map[node.value].node_var_type & NodeVarType.TENSOR_TYPES
        if not (
            isinstance(owner, ast.Name)
            and self.list_name_to_updated.get(owner.id)
            and not isinstance(index, ast.Slice)
            and tensor
        ):
            return node
        at = f"fluid.dygraph.dygraph_to_static.variable_trans_func.to_static_variable({ast.unparse(index)})"
        made = ast.parse(
            f"{owner.id} = fluid.layers.array_write("
            f"x=0, i=fluid.layers.cast(x={at}, dtype='int64'), array={owner.id})"
        ).body[0]
        assert isinstance(made, ast.Assign) and isinstance(made.value, ast.Call)
        made.value.keywords[0].value = node.value
        return ast.copy_location(made, node)


__getattr__ = missing.reporter(__name__)
