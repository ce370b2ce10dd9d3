"""What modules of `fluid.dygraph.dygraph_to_static` hold besides steps of Fluid's own rewriting.

This one plays ast_transformer, convert_call_func, variable_trans_func, and the modules of transformers.
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
from .calls import call as convert_call
from .calls import rewritten as convert_to_static
from .utils import dygraph_class_to_static_api

__all__ = [
    "BREAK_NAME_PREFIX",
    "CONTINUE_NAME_PREFIX",
    "DECORATOR_NAMES",
    "FALSE_FUNC_PREFIX",
    "FOR_BODY_PREFIX",
    "FOR_CONDITION_PREFIX",
    "GENERATE_VARIABLE_PREFIX",
    "LOGIC_AND_PREFIX",
    "LOGIC_NOT_PREFIX",
    "LOGIC_OR_PREFIX",
    "PLAIN_TENSOR_PREFIX",
    "TRUE_FUNC_PREFIX",
    "WHILE_BODY_PREFIX",
    "WHILE_CONDITION_PREFIX",
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
BREAK_NAME_PREFIX, CONTINUE_NAME_PREFIX = "__break", "__continue"
TRUE_FUNC_PREFIX, FALSE_FUNC_PREFIX = "true_fn", "false_fn"
LOGIC_AND_PREFIX, LOGIC_OR_PREFIX, LOGIC_NOT_PREFIX = "logic_and", "logic_or", "logic_not"
PLAIN_TENSOR_PREFIX = "bool_tensor"
WHILE_CONDITION_PREFIX, WHILE_BODY_PREFIX = "while_condition", "while_body"
FOR_CONDITION_PREFIX, FOR_BODY_PREFIX = "for_loop_condition", "for_loop_body"
GENERATE_VARIABLE_PREFIX = "generate_variable"

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
