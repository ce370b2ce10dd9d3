"""What modules of `fluid.dygraph.dygraph_to_static` hold besides steps of Fluid's own rewriting.

This one plays ast_transformer, convert_call_func and variable_trans_func.
"""

from __future__ import annotations

import ast
import builtins
import types
from typing import Any

from ...base import missing
from ...framework import Variable, default_main_program
from ...layers import fill_constant
from ..jit.translator import ProgramTranslator
from . import rewriting
from .runtime.calls import call as convert_call
from .runtime.calls import rewritten as convert_to_static
from .static_analysis import AstNodeWrapper
from .utils import dygraph_class_to_static_api

__all__ = [
    "DygraphToStaticAst",
    "DECORATOR_NAMES",
    "convert_call",
    "convert_to_static",
    "create_fill_constant_node",
    "create_static_variable_gast_node",
    "data_layer_not_check",
    "dygraph_class_to_static_api",
    "is_builtin",
    "is_paddle_func",
    "program_translator",
    "to_static_func",
    "to_static_variable",
    "to_static_variable_gast_node",
]

DECORATOR_NAMES = ["declarative", "dygraph_to_static_func"]
"""Decorators that rewriting takes off."""
program_translator = ProgramTranslator()
_OURS = __name__.partition(".")[0]


def is_builtin(func: Any) -> bool:
    """Whether `func` is one of Python's built-in functions."""
    return isinstance(func, types.BuiltinFunctionType) and func in vars(builtins).values()


def is_paddle_func(func: Any) -> bool:
    """Whether `func` is of this package."""
    return str(getattr(func, "__module__", "")).partition(".")[0] == _OURS


def to_static_func(dygraph_func: Any) -> Any:
    """`dygraph_func` as it builds programs; functions that cannot be rewritten are given back as they are."""
    return convert_to_static(dygraph_func)


def to_static_variable(x: Any) -> Any:
    """A bool, integer or real as a Variable of shape [1]; anything else as it is."""
    kinds = {bool: "bool", int: "int64", float: "float64"}
    return fill_constant([1], kinds[type(x)], x) if type(x) in kinds else x


def data_layer_not_check(name: str, shape: Any, dtype: Any = "float32", lod_level: int = 0) -> Variable:
    """A variable to be fed whose shape and type are not checked then; None and -1 are any size."""
    made: Variable = (
        default_main_program()
        .global_block()
        .create_var(
            name=name,
            shape=[-1 if size is None else size for size in shape],
            dtype=dtype,
            lod_level=lod_level,
            stop_gradient=True,
            is_data=True,
            need_check_feed=False,
        )
    )
    return made


class DygraphToStaticAst:
    """Rewrites the tree of a function (`fluid.dygraph.dygraph_to_static.DygraphToStaticAst`).

    What the rewritten code calls, `utils.ast_to_func` gives to the function that it makes of it.
    """

    def __init__(self) -> None:
        self._name = ""

    def get_static_ast(self, root: ast.AST) -> AstNodeWrapper:
        """The tree of a function, alone or in a module, with its function rewritten in place.

        ValueError if there is none, or of a kind that is not rewritten.
        """
        found = [node for node in getattr(root, "body", []) if isinstance(node, ast.FunctionDef)]
        node = root if isinstance(root, ast.FunctionDef) else found[0] if found else None
        if node is None:
            raise ValueError("the tree holds no function")
        self._name = node.name
        try:
            rewriting.function(node)
        except rewriting.Refusal as refusal:
            raise ValueError(f"{node.name} is not rewritten: {refusal}") from None
        return AstNodeWrapper(ast.fix_missing_locations(root))

    def get_module_name(self) -> str:
        """The name of the function."""
        return self._name

    def get_feed_name_to_idx(self) -> dict[str, int]:
        """Nothing: arguments are found when the function runs."""
        return {}


_HERE = "fluid.dygraph.dygraph_to_static.variable_trans_func"


def create_static_variable_gast_node(name: str) -> ast.stmt:
    """The statement that makes `name` a variable to be fed."""
    return ast.parse(
        f"{name} = {_HERE}.data_layer_not_check(name={name!r}, shape=[-1], dtype='float32')"
    ).body[0]


def to_static_variable_gast_node(name: str) -> ast.stmt:
    """The statement that makes the value of `name` a Variable."""
    return ast.parse(f"{name} = {_HERE}.to_static_variable({name})").body[0]


def create_fill_constant_node(name: str, value: Any) -> ast.stmt | None:
    """The statement that makes `name` a constant of a program; None for what is no bool, integer or real."""
    kinds = {bool: "bool", int: "int64", float: "float64"}
    if type(value) not in kinds:
        return None
    kind = kinds[type(value)]
    return ast.parse(f"{name} = fluid.layers.fill_constant(shape=[1], dtype={kind!r}, value={value!r})").body[
        0
    ]


__getattr__ = missing.reporter(__name__)
