"""`fluid.dygraph.dygraph_to_static.utils`: questions about syntax trees, and small trees."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Sequence
from typing import Any

from ...base import missing
from .rewriting import HELPERS

__all__ = [
    "RenameTransformer",
    "ast_to_func",
    "ast_to_source_code",
    "compare_with_none",
    "create_api_shape_node",
    "create_assign_node",
    "create_funcDef_node",
    "dygraph_class_to_static_api",
    "generate_name_node",
    "get_attribute_full_name",
    "get_constant_variable_node",
    "index_in_list",
    "is_api_in_module",
    "is_candidate_node",
    "is_dygraph_api",
    "is_numpy_api",
    "is_paddle_api",
    "is_to_variable",
    "recover_globals_attribute",
    "to_assign_node",
    "to_static_api",
    "to_static_ast",
    "update_args_of_func",
]

dygraph_class_to_static_api = {
    "CosineDecay": "cosine_decay",
    "ExponentialDecay": "exponential_decay",
    "InverseTimeDecay": "inverse_time_decay",
    "NaturalExpDecay": "natural_exp_decay",
    "NoamDecay": "noam_decay",
    "PiecewiseDecay": "piecewise_decay",
    "PolynomialDecay": "polynomial_decay",
}
"""Schedules of dygraph mode and the layers that do the same."""

_SHORT = {
    "fluid": "paddle.fluid",
    "np": "numpy",
    "layers": "paddle.fluid.layers",
    "dygraph": "paddle.fluid.dygraph",
}


def ast_to_source_code(ast_node: ast.AST) -> str:
    """The text of a syntax tree, with a line break at its end; TypeError for what is none."""
    if not isinstance(ast_node, ast.AST):
        raise TypeError(f"Type of ast_root should be gast.AST or ast.AST, but received {type(ast_node)}.")
    return ast.unparse(ast.fix_missing_locations(ast_node)) + "\n"


def ast_to_func(ast_root: ast.AST, dyfunc: Any, delete_on_exit: bool = True) -> tuple[Any, str]:
    """The function that a tree defines under the name of `dyfunc`, with that one's globals, and a name for it."""
    name = f"<{dyfunc.__name__} of dygraph_to_static>"
    body = ast_root.body if isinstance(ast_root, ast.Module) else [ast_root]
    module = ast.fix_missing_locations(ast.Module(body=body, type_ignores=[]))  # type: ignore[arg-type]
    space = dict(inspect.unwrap(dyfunc).__globals__)
    if any(isinstance(node, ast.Name) and node.id == HELPERS for node in ast.walk(module)):
        from .runtime import helpers  # what rewritten code calls

        space[HELPERS] = helpers
    exec(compile(module, name, "exec"), space)  # noqa: S102 - the tree is the user's own function
    made = space.get(dyfunc.__name__)
    if not isinstance(made, types.FunctionType):
        raise ValueError(f"the tree defines no function {dyfunc.__name__}")
    return made, name


def compare_with_none(node: ast.AST) -> bool:
    """Whether something is compared with None."""
    if not isinstance(node, ast.Compare):
        return False
    parts = [node.left, *node.comparators]
    return any(isinstance(part, ast.Constant) and part.value is None for part in parts)


def is_candidate_node(node: ast.AST) -> bool:
    """Whether a condition may need to become a layer: comparisons, `and`, `or`, and what has one operand."""
    return isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp))


def create_api_shape_node(tensor_shape_node: ast.expr) -> ast.expr:
    """`fluid.layers.shape(x)` for `x.shape`, also where that is indexed; AssertionError for anything else."""
    if isinstance(tensor_shape_node, ast.Subscript):
        tensor_shape_node.value = create_api_shape_node(tensor_shape_node.value)
        return tensor_shape_node
    if not isinstance(tensor_shape_node, ast.Attribute):
        raise AssertionError(f"expected an attribute such as x.shape, got {ast.unparse(tensor_shape_node)}")
    function = ast.parse("fluid.layers.shape", mode="eval").body
    return ast.Call(func=function, args=[tensor_shape_node.value], keywords=[])


def to_assign_node(node: ast.Call) -> ast.Call:
    """`fluid.layers.assign(x)` for a call of `to_variable`, in place; AssertionError for another call."""
    if not is_to_variable(node):
        raise AssertionError(f"expected a call of to_variable, got {ast.unparse(node)}")
    node.func = ast.parse("fluid.layers.assign", mode="eval").body
    if node.args:
        node.args, node.keywords = node.args[:1], []
    else:
        node.keywords = [word for word in node.keywords if word.arg == "value"]
        for word in node.keywords:
            word.arg = "input"
    return node


def create_assign_node(name: str, node: ast.expr) -> tuple[ast.Assign, ast.Name]:
    """`name = node`, and the name to be read."""
    made = ast.Assign(targets=[generate_name_node(name, ctx=ast.Store())], value=node)
    return made, generate_name_node(name)  # type: ignore[return-value]


def create_funcDef_node(
    nodes: Sequence[ast.stmt], name: str, input_args: ast.arguments, return_name_ids: Sequence[str]
) -> ast.FunctionDef:
    """`def name(input_args)` of these statements, which returns the variables named, if any are."""
    body = list(nodes)
    if return_name_ids:
        body.append(ast.Return(value=generate_name_node(return_name_ids)))
    else:
        body.append(ast.Return(value=None))
    made = ast.parse(f"def {name}(): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.args, made.body = input_args, body
    return made


def generate_name_node(name_ids: str | Sequence[str], ctx: ast.expr_context | None = None) -> ast.expr:
    """A name, or a tuple of several; TypeError for anything else."""
    if isinstance(name_ids, str):
        name_ids = [name_ids]
    if not isinstance(name_ids, (list, tuple, set)):
        raise TypeError(f"name_ids must be list or tuple or set, but received {type(name_ids)}")
    context = ctx or ast.Load()
    names = [ast.Name(id=name, ctx=context) for name in name_ids]
    return names[0] if len(names) == 1 else ast.Tuple(elts=list(names), ctx=context)


def get_attribute_full_name(node: ast.AST) -> str:
    """`a.b.c` of an attribute; AssertionError for other nodes."""
    if not isinstance(node, ast.Attribute):
        raise AssertionError("Input non-Attribute node to get attribute full name")
    return ast.unparse(node)


def get_constant_variable_node(
    name: str, value: Any, shape: Sequence[int] = (1,), dtype: str = "int64"
) -> ast.stmt:
    """`name = fluid.layers.fill_constant(shape, dtype, value)`."""
    text = f"{name} = fluid.layers.fill_constant({list(shape)!r}, {dtype!r}, {value!r})"
    return ast.parse(text).body[0]


def index_in_list(array_list: Sequence[Any], item: Any) -> int:
    """Where `item` is first; -1 if it is not there."""
    return list(array_list).index(item) if item in array_list else -1


def is_api_in_module(node: ast.AST, module_prefix: str) -> bool:
    """Whether a call is of a function of this module, such as 'paddle.fluid', by its usual names."""
    if not isinstance(node, ast.Call):
        raise AssertionError("Input non-Call node for is_dygraph_api")
    first, dot, rest = ast.unparse(node.func).partition(".")
    if not rest.replace(".", "").isidentifier() and rest:  # of what a call gives
        return False
    full = _SHORT.get(first, first) + dot + rest
    if full == "to_variable":
        full = "paddle.fluid.dygraph.to_variable"
    return full.startswith(module_prefix)


def is_dygraph_api(node: ast.AST) -> bool:
    """Whether a call is of `fluid.dygraph`; `to_variable` does not count."""
    return not is_to_variable(node) and is_api_in_module(node, "paddle.fluid.dygraph")


def is_paddle_api(node: ast.AST) -> bool:
    return is_api_in_module(node, "paddle.fluid")


def is_numpy_api(node: ast.AST) -> bool:
    """Whether a call is of NumPy, as `numpy` or `np`."""
    return is_api_in_module(node, "numpy.")


def is_to_variable(node: ast.AST) -> bool:
    """Whether a call is of `to_variable`, by whatever path."""
    if not isinstance(node, ast.Call):
        raise AssertionError("Input non-Call node for is_to_variable")
    return ast.unparse(node.func).rpartition(".")[2] == "to_variable"


def recover_globals_attribute(src_obj: Any, dst_obj: Any) -> None:
    """Give one function's globals to another, but those of builtins and what begins with two underscores."""
    for name, value in inspect.unwrap(src_obj).__globals__.items():
        if not name.startswith("__"):
            dst_obj.__globals__.setdefault(name, value)


def to_static_ast(node: ast.Call, class_node: ast.Call) -> ast.Call:
    """The call `node` of an object as one of the layer that does the same, in place; `class_node` made the object.

    Only schedules of learning rates are known; NotImplementedError for others, IndexError where `node` has arguments.
    """
    if not isinstance(class_node.func, ast.Attribute):
        raise AttributeError(f"{ast.unparse(class_node.func)!r} has no dot: say fluid.dygraph.CosineDecay")
    node.func = ast.parse(f"fluid.layers.{to_static_api(class_node.func.attr)}", mode="eval").body
    update_args_of_func(node, class_node, "forward")
    node.args += class_node.args
    node.keywords += class_node.keywords
    return ast.fix_missing_locations(node)


def update_args_of_func(node: ast.Call, dygraph_node: ast.Call, method_name: str) -> None:
    """Name the positional arguments of the call `node`, in place, after the parameters of a method.

    `dygraph_node` is a call of the class, `method_name` '__init__' or 'forward'; ValueError for another, IndexError for
    more arguments than there are parameters, AttributeError for a class that `fluid.dygraph` does not have.
    """
    if method_name not in ("__init__", "forward"):
        raise ValueError("The method name of class to update args should be '__init__' or 'forward'")
    from ... import dygraph  # which imports this module

    method = getattr(getattr(dygraph, ast.unparse(dygraph_node.func).rpartition(".")[2]), method_name, None)
    names = list(inspect.signature(method).parameters)[1:] if method else []
    node.keywords += [ast.keyword(arg=names[k], value=value) for k, value in enumerate(node.args)]
    node.args = []


def to_static_api(dygraph_class: str) -> str:
    """The layer that does what a schedule of dygraph mode does; NotImplementedError for other classes."""
    if dygraph_class not in dygraph_class_to_static_api:
        raise NotImplementedError(
            f"Paddle dygraph API {dygraph_class} cannot be converted to static graph at present."
        )
    return dygraph_class_to_static_api[dygraph_class]


class RenameTransformer(ast.NodeTransformer):
    """Gives names in a tree, attributes included, another name."""

    def __init__(self, node: ast.AST) -> None:
        self.root = node
        self.old_name = self.new_name = ""

    def rename(self, old_name: str, new_name: str) -> None:
        """Rename in the whole tree; `old_name` may have dots."""
        self.old_name, self.new_name = old_name, new_name
        self.visit(self.root)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id == self.old_name:
            node.id = self.new_name
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if ast.unparse(node) == self.old_name:
            made = ast.parse(self.new_name, mode="eval").body
            made.ctx = node.ctx  # type: ignore[attr-defined]
            return ast.copy_location(made, node)
        return node


__getattr__ = missing.reporter(__name__)
