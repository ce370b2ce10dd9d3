"""`fluid.dygraph.dygraph_to_static.static_analysis`: what kind of value each part of a syntax tree has."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, ClassVar

from ...base import missing
from .utils import is_paddle_api, is_to_variable

__all__ = ["AstNodeWrapper", "AstVarEnv", "AstVarScope", "NodeVarType", "StaticAnalysisVisitor"]


class NodeVarType:
    """Numbers for kinds of values (`fluid.dygraph.dygraph_to_static.NodeVarType`)."""

    ERROR = -1
    UNKNOWN = 0
    STATEMENT = 1
    CALLABLE = 2
    NONE = 100
    BOOLEAN = 101
    INT = 102
    FLOAT = 103
    STRING = 104
    TENSOR = 105
    NUMPY_NDARRAY = 106
    LIST = 200
    SET = 201
    DICT = 202
    PADDLE_DYGRAPH_API = 300
    PADDLE_CONTROL_IF = 301
    PADDLE_CONTROL_WHILE = 302
    PADDLE_CONTROL_FOR = 303
    PADDLE_RETURN_TYPES = 304
    TENSOR_TYPES: ClassVar[set[int]] = {TENSOR, PADDLE_RETURN_TYPES}

    @staticmethod
    def binary_op_output_type(in_type1: int, in_type2: int) -> int:
        """The kind of `a + b`: that of both, the wider of two numbers, a tensor's; else UNKNOWN."""
        pair = {in_type1, in_type2}
        if len(pair) == 1:
            return in_type1
        if NodeVarType.UNKNOWN in pair:
            return max(pair)
        if not pair <= _NUMBERS or pair == {NodeVarType.TENSOR, NodeVarType.NUMPY_NDARRAY}:
            return NodeVarType.UNKNOWN
        return NodeVarType.TENSOR if NodeVarType.TENSOR in pair else max(pair)


_NUMBERS = {
    NodeVarType.BOOLEAN,
    NodeVarType.INT,
    NodeVarType.FLOAT,
    NodeVarType.TENSOR,
    NodeVarType.NUMPY_NDARRAY,
}


class AstNodeWrapper:
    """A node of a syntax tree with its parent, its children and the kinds of its value."""

    def __init__(self, node: ast.AST) -> None:
        self.node = node
        self.parent: AstNodeWrapper | None = None
        self.children: list[AstNodeWrapper] = []
        self.node_var_type: set[int] = {NodeVarType.UNKNOWN}


class TreeStep(ast.NodeTransformer):
    """A step that changes the tree of `wrapper_root`; AssertionError for what is no AstNodeWrapper."""

    def __init__(self, wrapper_root: AstNodeWrapper) -> None:
        if not isinstance(wrapper_root, AstNodeWrapper):
            raise AssertionError(f"expected an AstNodeWrapper, got {type(wrapper_root)}")
        self.wrapper_root = wrapper_root
        self.root = wrapper_root.node


class AstVarScope:
    """The kinds of values of the variables of a script, function or class; those around it are `parent_scope`'s."""

    SCOPE_TYPE_SCRIPT = 0
    SCOPE_TYPE_FUNCTION = 1
    SCOPE_TYPE_CLASS = 2

    def __init__(
        self,
        scope_name: str = "",
        scope_type: int = SCOPE_TYPE_SCRIPT,
        parent_scope: AstVarScope | None = None,
    ) -> None:
        self.sub_scopes: list[AstVarScope] = []
        self.name_to_id: dict[str, set[int]] = {}
        self.scope_name, self.scope_type, self.parent_scope = scope_name, scope_type, parent_scope
        if parent_scope is not None:
            parent_scope.sub_scopes.append(self)

    def add_var_type(self, var_name: str, node_var_type: int | Iterable[int]) -> None:
        """The variable may be of these kinds, too."""
        self.name_to_id.setdefault(var_name, set()).update(_kinds(node_var_type))

    def set_var_type(self, var_name: str, node_var_type: int | Iterable[int]) -> None:
        """The variable is of these kinds."""
        self.name_to_id[var_name] = _kinds(node_var_type)

    def get_var_type(self, var_name: str) -> set[int]:
        """The kinds that a variable may be of, here or around; UNKNOWN for one that nobody knows."""
        if var_name in self.name_to_id:
            return self.name_to_id[var_name]
        if self.parent_scope is None:
            return {NodeVarType.UNKNOWN}
        return self.parent_scope.get_var_type(var_name)


def _kinds(given: int | Iterable[int]) -> set[int]:
    return {given} if isinstance(given, int) else set(given)


class AstVarEnv:
    """The scope that is being looked at."""

    def __init__(self) -> None:
        self.cur_scope = AstVarScope()

    def enter_scope(self, scope_name: str, scope_type: int) -> AstVarScope:
        self.cur_scope = AstVarScope(scope_name, scope_type, parent_scope=self.cur_scope)
        return self.cur_scope

    def exit_scope(self) -> AstVarScope:
        """Back to the scope around; AssertionError if there is none."""
        if self.cur_scope.parent_scope is None:
            raise AssertionError("Call exit_scope in a scope that is the outermost one")
        self.cur_scope = self.cur_scope.parent_scope
        return self.cur_scope

    def get_parent_scope(self) -> AstVarScope:
        if self.cur_scope.parent_scope is None:
            raise AssertionError("Call get_parent_scope in a scope that is the outermost one")
        return self.cur_scope.parent_scope

    def add_var_type(self, var_name: str, node_var_type: int | Iterable[int]) -> None:
        self.cur_scope.add_var_type(var_name, node_var_type)

    def set_var_type(self, var_name: str, node_var_type: int | Iterable[int]) -> None:
        self.cur_scope.set_var_type(var_name, node_var_type)

    def get_var_type(self, var_name: str) -> set[int]:
        return self.cur_scope.get_var_type(var_name)

    def get_scope_var_type(self) -> dict[str, set[int]]:
        """The variables of this scope alone."""
        return self.cur_scope.name_to_id


_LITERALS: dict[type, int] = {
    bool: NodeVarType.BOOLEAN,
    int: NodeVarType.INT,
    float: NodeVarType.FLOAT,
    str: NodeVarType.STRING,
    bytes: NodeVarType.STRING,
    type(None): NodeVarType.NONE,
}


class StaticAnalysisVisitor:
    """Looks through a syntax tree for the kinds of values (`StaticAnalysisVisitor`).

    Follows `fluid.dygraph.dygraph_to_static.StaticAnalysisVisitor`; `ast_root`: a node of Python's `ast`.
    """

    def __init__(self, ast_root: ast.AST | None = None) -> None:
        if ast_root is not None:
            self.run(ast_root)

    def run(self, ast_root: ast.AST) -> None:
        """Look through another tree."""
        self.node_wrapper_root: AstNodeWrapper | None = None
        self.ancestor_wrappers: list[AstNodeWrapper] = []
        self.node_to_wrapper_map: dict[ast.AST, AstNodeWrapper] = {}
        self.var_env = AstVarEnv()
        self.dfs_visit(ast_root)

    def dfs_visit(self, node: ast.AST) -> set[int]:
        """The kinds of the value of `node`, after those of its children."""
        wrapper = self.node_to_wrapper_map.setdefault(node, AstNodeWrapper(node))
        if self.node_wrapper_root is None:
            self.node_wrapper_root = wrapper
        if self.ancestor_wrappers:
            wrapper.parent = self.ancestor_wrappers[-1]
            wrapper.parent.children.append(wrapper)
        self.ancestor_wrappers.append(wrapper)
        scope = _scope(node)
        if scope is not None:
            self.var_env.set_var_type(scope[0], NodeVarType.UNKNOWN)
            self.var_env.enter_scope(*scope)
        for child in _in_order(node):
            self.dfs_visit(child)
        self.ancestor_wrappers.pop()
        wrapper.node_var_type = self._get_node_var_type(wrapper)
        if scope is not None:
            self.var_env.exit_scope()
        return wrapper.node_var_type

    def get_node_wrapper_root(self) -> AstNodeWrapper | None:
        return self.node_wrapper_root

    def get_node_to_wrapper_map(self) -> dict[ast.AST, AstNodeWrapper]:
        return self.node_to_wrapper_map

    def get_var_env(self) -> AstVarEnv:
        return self.var_env

    def _kinds_of(self, node: ast.AST) -> set[int]:
        return self.node_to_wrapper_map[node].node_var_type

    def _get_node_var_type(self, cur_wrapper: AstNodeWrapper) -> set[int]:
        node = cur_wrapper.node
        if isinstance(node, ast.Constant):
            return {_LITERALS.get(type(node.value), NodeVarType.UNKNOWN)}
        if isinstance(node, (ast.BoolOp, ast.Compare)):
            return {NodeVarType.BOOLEAN}
        if isinstance(node, ast.Dict):
            return {NodeVarType.DICT}
        if isinstance(node, ast.Set):
            return {NodeVarType.SET}
        if isinstance(node, ast.UnaryOp):
            return self._kinds_of(node.operand)
        if isinstance(node, ast.BinOp):
            return {
                NodeVarType.binary_op_output_type(left, right)
                for left in self._kinds_of(node.left)
                for right in self._kinds_of(node.right)
            }
        if isinstance(node, ast.Assign):
            kinds = self._kinds_of(node.value)
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.node_to_wrapper_map[target].node_var_type = kinds
                    self.var_env.set_var_type(target.id, kinds)
            return kinds
        if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            self.var_env.set_var_type(node.target.id, self._kinds_of(node.value))
            return self._kinds_of(node.value)
        if isinstance(node, ast.Name):
            return self.var_env.get_var_type(node.id)
        if isinstance(node, ast.Call):
            return self._called(node)
        return {NodeVarType.STATEMENT}

    def _called(self, node: ast.Call) -> set[int]:
        """Of what this package gives, a tensor or a layer; of what was given by it, the same."""
        if isinstance(node.func, ast.Attribute) and is_to_variable(node):
            return {NodeVarType.TENSOR}
        if is_paddle_api(node):
            return {NodeVarType.PADDLE_RETURN_TYPES}
        if isinstance(node.func, ast.Name):
            return self.var_env.get_var_type(node.func.id)
        return {NodeVarType.STATEMENT}


def _scope(node: ast.AST) -> tuple[str, int] | None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name, AstVarScope.SCOPE_TYPE_FUNCTION
    return (node.name, AstVarScope.SCOPE_TYPE_CLASS) if isinstance(node, ast.ClassDef) else None


def _in_order(node: ast.AST) -> list[Any]:
    """The children of a node, values before what they are assigned to."""
    children = list(ast.iter_child_nodes(node))
    return children[::-1] if isinstance(node, ast.Assign) else children


__getattr__ = missing.reporter(__name__)
