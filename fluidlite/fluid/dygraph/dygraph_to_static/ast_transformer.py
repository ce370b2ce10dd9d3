"""`fluid.dygraph.dygraph_to_static.ast_transformer`: the translation of syntax trees, without running the function."""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

from . import rewriting
from .runtime.calls import rewritten as convert_to_static

__all__ = ["AstNodeWrapper", "DygraphToStaticAst", "ast_to_func", "convert_to_static"]


class AstNodeWrapper:
    """A syntax tree as `DygraphToStaticAst` returns it, in `node`."""

    def __init__(self, node: ast.AST) -> None:
        self.node = node


class DygraphToStaticAst:
    """Translates the syntax tree of a function (`fluid.dygraph.dygraph_to_static.DygraphToStaticAst`).

    `ast_to_func` compiles the tree; the helpers that it calls are not importable from scripts.
    """

    def __init__(self) -> None:
        self._name = ""

    def get_static_ast(self, root: ast.AST) -> AstNodeWrapper:
        """Translate, in place, the first function of a module, or a function.

        Raises ValueError if `root` holds no function, or one that cannot be translated.
        """
        functions = [node for node in (root, *getattr(root, "body", [])) if isinstance(node, ast.FunctionDef)]
        if not functions:
            raise ValueError("the tree holds no function")
        self._name = functions[0].name
        try:
            rewriting.function(functions[0])
        except rewriting.Refusal as refusal:
            raise ValueError(f"{self._name} is not rewritten: {refusal}") from None
        return AstNodeWrapper(ast.fix_missing_locations(root))

    def get_module_name(self) -> str:
        """The name of the function."""
        return self._name

    def get_feed_name_to_idx(self) -> dict[str, int]:
        """An empty dict: inputs are determined when the function is called."""
        return {}


def ast_to_func(ast_root: ast.AST, dyfunc: Any, delete_on_exit: bool = True) -> tuple[Any, str]:
    """Compile a tree that defines a function of the name of `dyfunc`, with the globals of `dyfunc`.

    Returns the function and the name of its code's file.
    """
    from . import runtime  # imports layers, which import this package

    file = f"<{dyfunc.__name__} of dygraph_to_static>"
    body = ast_root.body if isinstance(ast_root, ast.Module) else [ast_root]
    module = ast.fix_missing_locations(ast.Module(body=body, type_ignores=[]))  # type: ignore[arg-type]
    space = {**inspect.unwrap(dyfunc).__globals__, rewriting.HELPERS: runtime}
    exec(compile(module, file, "exec"), space)  # noqa: S102 - the tree is the user's own function
    function = space.get(dyfunc.__name__)
    if not isinstance(function, types.FunctionType):
        raise ValueError(f"the tree defines no function {dyfunc.__name__}")
    return function, file
